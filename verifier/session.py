"""A warm verifier: one device, one sandbox, many kernels one after the other."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import torch

from verifier.candidate.client import Candidate, Sandbox
from verifier.candidate.gpu import wait_asleep
from verifier.candidate.limits import Limits
from verifier.contract import load_task
from verifier.deep.examine import examine
from verifier.device_lock import DeviceBusyError, DeviceLock, device_lock
from verifier.environment import choose_device, read_environment
from verifier.gradients import GradientBench, backward_choice
from verifier.health.watch import watch_begin
from verifier.pipeline import (
    BACKWARD_GATES,
    TOTAL_S,
    Cancelled,
    Deep,
    Emit,
    Request,
    Verification,
    build_backward,
    build_bench,
)
from verifier.records import (
    DeepResult,
    DeviceMode,
    Environment,
    GateId,
    KernelRef,
    Language,
    Progress,
    Verdict,
)
from verifier.referee.bench import Bench
from verifier.source import SourceFacts, read_source
from verifier.subject import InfrastructureError

MAX_SEED: Final = 2**63 - 1

THREADS: Final[Mapping[DeviceMode, int]] = {DeviceMode.CPU_INTERPRET: 1, DeviceMode.CUDA: 4}
"""Threads that the referee's own torch uses. In the interpreter its tensors are small, and a second
thread only waits for a core that the kernel or a neighbour is using."""

TRIVIAL: Final = b"def run(x):\n    return x + 1\n"


class UsageError(ValueError):
    """What was asked for makes no sense; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Job:
    """One verification as somebody asks for it."""

    task: Path
    kernel: Path
    entry: str = "run"
    seed: int | None = None
    gates: tuple[GateId, ...] = tuple(GateId)
    timed: bool = True
    total_s: float = TOTAL_S
    fail_fast: bool = False
    deep: bool = False


def parse_gates(names: Iterable[str] | None) -> tuple[GateId, ...]:
    """Gate ids from 'G4' or '4'. Raises UsageError for anything else."""
    if names is None:
        return tuple(GateId)
    known = {gate.value: gate for gate in GateId} | {str(gate.number): gate for gate in GateId}
    unknown = [name for name in names if name.upper() not in known]
    if unknown:
        raise UsageError(f"unknown gates {', '.join(unknown)}; known are G1 to G12")
    return tuple(known[name.upper()] for name in names)


def read_kernel(path: Path) -> bytes:
    """A kernel's source. Raises UsageError when there is no such file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def source_of(kernel: KernelRef) -> bytes:
    """The source that rides in a verdict or report. Raises UsageError when it is not the one whose
    sha256 the document names: what was judged then is something else."""
    source = kernel.source.encode("utf-8", errors="surrogatepass")
    if read_source(source).sha256 != kernel.sha256:
        raise UsageError("the kernel's source in this document does not have the sha256 it names")
    return source


class Session:
    """Holds the sandbox open between jobs. Use it as a context manager."""

    def __init__(
        self,
        device: str = "auto",
        *,
        unsafe: bool = False,
        limits: Limits | None = None,
        sharers: int = 1,
    ) -> None:
        """``sharers`` verifiers, this one included, judge on the device at the same time."""
        self.mode, self.device = choose_device(device)
        if self.mode is DeviceMode.CUDA:
            wait_asleep(self.device.index or 0)
        torch.set_num_threads(min(torch.get_num_threads(), THREADS[self.mode]))
        self._stack = ExitStack()
        self.sandbox = self._stack.enter_context(
            Sandbox.open(
                mode=self.mode,
                device=str(self.device),
                limits=limits or Limits(),
                unsafe=unsafe,
                compiler=True,
            )
        )
        self.environment: Environment = read_environment(
            self.mode, self.device, self.sandbox.description
        )
        self.lock: DeviceLock = device_lock(self.environment)
        self._stack.callback(self.lock.close)
        self.watch = watch_begin(self.environment, self.device, self.lock, sharers=sharers)
        self.sandbox.heed = self.watch.heed
        with self.lock.shared():
            self._try_out()

    def _try_out(self) -> None:
        """Run a kernel that cannot be wrong. Raises InfrastructureError if it does not return:
        what is broken then is this machine, and no kernel may be blamed for it."""
        candidate = self.sandbox.load(source=TRIVIAL, entry="run", convention="function")
        try:
            reply = candidate.call([torch.ones(2)])
            if not reply.returned:
                last = candidate.log.strip().splitlines()[-1:]
                detail = ": ".join([reply.detail, *last])
                raise InfrastructureError(f"the sandbox cannot run a trivial kernel: {detail}")
        finally:
            candidate.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the sandbox and everything in it."""
        self._stack.close()

    def judge(
        self, job: Job, emit: Emit = lambda progress: None, check: Callable[[], None] = lambda: None
    ) -> Verdict:
        """Judge one kernel. Raises TaskError, UsageError, InfrastructureError or Cancelled."""
        source = read_kernel(job.kernel)
        request = make_request(job, read_source(source))
        self.watch.glance()
        with self.lock.shared(check):
            bench = build_bench(request, self.mode, self.device)
            derived = build_backward(bench)
        emit = self.watch.gated(emit)
        if request.facts.problem:
            return Verification(
                request, None, bench, self.environment, emit, check, self.lock
            ).run()
        if GateId.HONEST in job.gates and request.facts.language is Language.TRITON:
            self.sandbox.compiler_begin()
        candidate = self.sandbox.load(source=source, **request.choice.options())
        try:
            with self._backward(request, derived, source, check) as backward:
                return Verification(
                    request,
                    candidate,
                    bench,
                    self.environment,
                    emit,
                    check,
                    self.lock,
                    backward,
                    deep=self._deep(request, source) if request.deep else None,
                ).run()
        finally:
            self._end(candidate, check)

    def _deep(self, request: Request, source: bytes) -> Deep:
        """The deep mode for one kernel."""

        def look(bench: Bench, check: Callable[[], None]) -> Iterable[DeepResult]:
            return examine(self.sandbox, source, request.choice.options(), bench, check)

        return look

    @contextmanager
    def _backward(
        self,
        request: Request,
        derived: GradientBench | None,
        source: bytes,
        check: Callable[[], None],
    ) -> Iterator[Verification | None]:
        """The same kernel in a process of its own, which goes backward at each call; None for a
        task without gradients."""
        if derived is None:
            yield None
            return
        choice = backward_choice(request.choice, request.task.contract)
        candidate = self.sandbox.load(source=source, **choice.options())
        try:
            yield Verification(
                request,
                candidate,
                derived,
                self.environment,
                _unheard,
                check,
                self.lock,
                gates=BACKWARD_GATES,
            )
        finally:
            self._end(candidate, check)

    def _end(self, candidate: Candidate, check: Callable[[], None]) -> None:
        """End its process. The context on the device goes too, which nobody's timing should feel;
        who has called the job off is not kept waiting for that."""
        with suppress(Cancelled, DeviceBusyError), self.lock.shared(check):
            candidate.close()
        candidate.close()


def _unheard(_: Progress) -> None:
    """What the gates say of gradients is told as a part of what they say of the kernel."""


def make_request(job: Job, facts: SourceFacts) -> Request:
    """The request of a job, with a seed of its own when it names none."""
    if not job.entry.isidentifier():
        raise UsageError(f"entry {job.entry!r} is no Python name")
    seed = secrets.randbelow(MAX_SEED) if job.seed is None else job.seed
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"seed {seed} is not between 0 and {MAX_SEED}")
    gates = frozenset(job.gates)
    if not job.total_s > 0:
        raise UsageError(f"a time limit of {job.total_s:g} s leaves no time")
    task = load_task(job.task)
    return Request(
        task, facts, job.entry, seed, gates, job.timed, job.total_s, job.fail_fast, job.deep
    )


def job_from_json(document: Mapping[str, Any]) -> Job:
    """The job in one line of `serve`'s input. Raises UsageError naming what is wrong."""
    seed, gates = document.get("seed"), document.get("gates")
    if seed is not None and type(seed) is not int:
        raise UsageError(f"seed {seed!r} is no whole number")
    if gates is not None and not (isinstance(gates, list) and all(map(_is_text, gates))):
        raise UsageError(f"gates {gates!r} is no list of names such as 'G4'")
    limit_s = document.get("time_limit_s", TOTAL_S)
    if isinstance(limit_s, bool) or not isinstance(limit_s, int | float):
        raise UsageError(f"time_limit_s {limit_s!r} is no number of seconds")
    return Job(
        task=_path(document, "task"),
        kernel=_path(document, "kernel"),
        entry=str(document.get("entry", "run")),
        seed=seed,
        gates=parse_gates(gates),
        timed=bool(document.get("measure", True)),
        total_s=float(limit_s),
        deep=bool(document.get("deep", False)),
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _path(document: Mapping[str, Any], name: str) -> Path:
    """A path that the system can take: text, without NUL, with bytes of its own."""
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise UsageError(f"a job needs '{name}', a path")
    try:
        usable = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise UsageError(f"{name} {value!r} is no path")
    return Path(value)


def printable(value: Any) -> Any:
    """A JSON document without NUL and lone surrogates, which PostgreSQL and UTF-8 refuse."""
    if isinstance(value, str):
        clean = value.replace("\0", "\\x00")
        return clean.encode("utf-8", errors="backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {printable(key): printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable(item) for item in value]
    return value


def progress_line(progress: Progress, job: str | None = None) -> str:
    """One line of the event stream; strict JSON (a NaN never reaches it as a number)."""
    document: dict[str, Any] = {} if job is None else {"id": job}
    document |= {"t": progress.t, "event": progress.event.value}
    document["payload"] = printable(dict(progress.payload))
    return json.dumps(document, allow_nan=False, separators=(",", ":"))
