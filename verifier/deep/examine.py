"""One kernel, looked into by each check of the tool in a process of its own.

No gate and no part of any: what comes out stands beside the gates. A kernel that takes over its own
process can blind the tool, which lives in there; so CLEAN is a word about kernels that do not try.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, Final

from verifier.candidate.client import Sandbox
from verifier.candidate.deep import DeepCandidate, Ended
from verifier.deep.report import Report, ReportError, read_report
from verifier.deep.tool import NAME, Check, Sanitizer, find_sanitizer
from verifier.records import CaseRecord, DeepResult, DeepStatus, GateId
from verifier.referee.bench import Bench
from verifier.subject import Arg, Reply, ReplyKind

_POLL_S: Final = 0.1
_CORES_EACH: Final = 3
"""A cold import of torch, the tool, and a compiler: with fewer cores they only slow each other."""
_ELEMENTS: Final = 1 << 19
"""Greatest number of elements of an input or output: a tool makes each access some 100 times slower
and errors of memory and of order show at few tiles."""
_WORDS_CHARS: Final = 200
_LAST: Final = frozenset(
    {ReplyKind.CRASHED, ReplyKind.TIMED_OUT, ReplyKind.MEMORY, ReplyKind.LOAD_FAILED}
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call that is made under every check."""

    label: str
    args: Sequence[Arg]


@dataclass(frozen=True, slots=True)
class Kernel:
    """What is looked into: as ``Sandbox.load`` takes it, with the calls to make."""

    sandbox: Sandbox
    source: bytes
    how: Mapping[str, Any]
    calls: tuple[Call, ...]


def examine(
    sandbox: Sandbox,
    source: bytes,
    how: Mapping[str, Any],
    bench: Bench,
    check: Callable[[], None] = lambda: None,
) -> Iterator[DeepResult]:
    """A result for each check of the tool; a single one where it is not to be had. ``check`` is
    called all the while and may raise. Raises InfrastructureError."""
    sanitizer = find_sanitizer()
    absent = _absent(sandbox, sanitizer)
    if absent or sanitizer is None:
        yield DeepResult(NAME, DeepStatus.NOT_AVAILABLE, absent)
        return
    calls = tuple(Call(case.label.removeprefix("deep "), bench.args(case)) for case in cases(bench))
    kernel = Kernel(sandbox, source, how, calls)
    yield from look(kernel, sanitizer, check)


def _absent(sandbox: Sandbox, sanitizer: Sanitizer | None) -> str:
    """Why the tool is not to be had here; '' where it is."""
    if not sandbox.cuda:
        return f"there is no GPU here, and {NAME} looks into nothing else"
    if sanitizer is None:
        return f"{NAME} was not found; it comes with the CUDA toolkit (bin/ on PATH, or CUDA_HOME)"
    if sandbox.plan.bubblewrap is None:
        return f"{NAME} runs in a bubblewrap only, which does not work here"
    return ""


def cases(bench: Bench) -> Iterator[CaseRecord]:
    """The usual shape, a ragged one, a small one; the fixed one alone where the contract has it."""
    wanted = {"usual": bench.small_dims(), "ragged": bench.odd_dims(), "small": _least_dims(bench)}
    if bench.contract.behaviour.fixed_shape:
        wanted = {"usual": bench.contract.usual_dims()}
    seen: list[Mapping[str, int]] = []
    for label, dims in wanted.items():
        dims = _cut(bench, dims)
        if dims not in seen:
            seen.append(dims)
            yield bench.case(GateId.MEMORY, f"deep {label}", dims=dims)


def _cut(bench: Bench, dims: Mapping[str, int]) -> dict[str, int]:
    """With the greatest dims at smaller candidates until it is few elements, if it can be."""
    cut = dict(dims)
    while bench.elements(cut) > _ELEMENTS and (smaller := bench.shrink_once(cut)) is not None:
        cut = smaller
    return cut


def _least_dims(bench: Bench) -> dict[str, int]:
    """Each dim at its least candidate that the contract allows beside the others."""
    dims = bench.small_dims()
    for name in dims:
        for size in sorted(bench.contract.dims[name].candidates):
            if 0 < size < dims[name] and bench.contract.allows({**dims, name: size}):
                dims[name] = size
                break
    return dims


def look(kernel: Kernel, sanitizer: Sanitizer, check: Callable[[], None]) -> Iterator[DeepResult]:
    """A result for each check: side by side where there are cores for that, told in their order."""
    runs = [Run(kernel, sanitizer, one) for one in Check]
    workers = max(1, min(len(runs), (os.cpu_count() or 1) // _CORES_EACH))
    with ThreadPoolExecutor(workers) as pool:
        try:
            for future in [pool.submit(run.result) for run in runs]:
                yield _awaited(future, check)
        finally:  # whoever calls it off waits for no tool
            pool.shutdown(wait=False, cancel_futures=True)
            for run in runs:
                run.stop()


def _awaited(future: Future[DeepResult], check: Callable[[], None]) -> DeepResult:
    while not future.done():
        check()
        wait([future], _POLL_S)
    return future.result()


class Run:
    """One check of one kernel."""

    def __init__(self, kernel: Kernel, sanitizer: Sanitizer, check: Check) -> None:
        self._kernel = kernel
        self._sanitizer = sanitizer
        self._check = check
        order = sanitizer.order(check)
        how = {"env": {}, **kernel.how}
        self._candidate = DeepCandidate(kernel.sandbox, kernel.source, how, order)
        self.printed = ""
        """By the kernel and the tool, once there is a result."""

    def stop(self) -> None:
        """End what is still running, from any thread."""
        self._candidate.stop()

    def result(self) -> DeepResult:
        """Raises InfrastructureError."""
        start = time.perf_counter()
        try:
            result = self._result()
        finally:
            self._candidate.close()
        took_ms = (time.perf_counter() - start) * 1e3
        return replace(result, version=self._sanitizer.version, duration_ms=took_ms)

    def _result(self) -> DeepResult:
        replies: dict[str, Reply] = {}
        for number, call in enumerate(self._kernel.calls):
            replies[call.label] = self._candidate.examine(call.args, number)
            if replies[call.label].kind in _LAST:
                break
        ended = self._candidate.finish()
        self.printed = self._candidate.log
        source = self._kernel.source.decode(errors="replace")
        return conclude(self._check, replies, ended, source, self.printed)


def conclude(
    check: Check,
    replies: Mapping[str, Reply],
    ended: Ended | None,
    source: str = "",
    printed: str = "",
) -> DeepResult:
    """What replies and reports amount to. The replies are the kernel's word, and so is most of what
    was printed: they can make a result undecided, and never clean."""
    called = tuple(label for label, reply in replies.items() if reply.returned)
    failed = [f"{label}: {reply.detail}" for label, reply in replies.items() if not reply.returned]
    try:
        report = _report(ended, source)
    except ReportError as error:
        reason = "; ".join([str(error), *failed[:1], *_last_words(printed)])
        return DeepResult(check, DeepStatus.UNDECIDED, reason, cases=called)
    status = DeepStatus.FINDINGS if report.count else DeepStatus.CLEAN
    broke = any(reply.kind in _LAST for reply in replies.values())
    if not report.count and (broke or not called):
        status = DeepStatus.UNDECIDED
    reason = f"no call returned: {failed[0]}" if not called else "; ".join(failed)
    return DeepResult(
        check, status, reason, report.count, report.findings, report.elsewhere, called
    )


def _last_words(printed: str) -> Iterator[str]:
    lines = printed.strip().splitlines()
    if lines:
        yield f"the last that was printed: {lines[-1][:_WORDS_CHARS]}"


def _report(ended: Ended | None, source: str) -> Report:
    if ended is None:
        raise ReportError("the tool was not started")
    if ended.reason:
        raise ReportError(f"it used more {ended.reason} than allowed")
    if ended.status is None:
        raise ReportError("the tool did not end in time")
    xml, text = ended.reports
    if xml is None or text is None:
        raise ReportError("the report is too large")
    return read_report(xml, text, source)
