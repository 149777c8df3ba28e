"""The control sweep: eager and torch.compile, submitted as kernels, are accused of nothing.

A task's own reference becomes the source of a kernel, which goes the way of any kernel: sandbox,
twelve gates. What torch computes is right by definition here, so each FAIL, INCONCLUSIVE and ERROR
is a fault of a gate. Gate 12 asks whether a kernel did the work itself, which these do not claim:
they are judged on a copy of the contract that permits library calls, and is the same otherwise.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verifier.candidate.limits import Limits
from verifier.contract import Task, TaskError, load_task
from verifier.records import DeviceMode, GateId, GateResult, GateStatus, Verdict
from verifier.session import Job, Session
from verifier.studies import Control, ControlGate, ControlRow

JUDGED_AS: Final = (
    "a copy of the contract with behaviour.library_calls = true, called as a plain function"
)
"""What the contracts of this sweep say that those of the suites do not."""

LIMITS: Final = Limits(call_s=240.0, load_s=120.0)
"""torch.compile builds in the call that first meets a size, in C++ on a machine without GPU."""

TOTAL_S: Final = 1800.0

CPU_COMPILER: Final = "g++"
"""What Inductor looks for."""

_CALL: Final = '''

# --- control: the reference above, as a kernel


def _control_exact(allow_tf32):
    """Full fp32 products unless the contract permits TF32, as eager is run by the referee."""
    import contextlib

    import torch

    @contextlib.contextmanager
    def scope():
        matmul, conv = torch.backends.cuda.matmul, torch.backends.cudnn
        before = matmul.allow_tf32, conv.allow_tf32
        matmul.allow_tf32 = conv.allow_tf32 = allow_tf32
        try:
            yield
        finally:
            matmul.allow_tf32, conv.allow_tf32 = before

    return scope()


def _control_tuple(result):
    return tuple(result) if isinstance(result, list) else result
'''

_EAGER: Final = """

def run(*args):
    import torch

    wanted = any(getattr(arg, "requires_grad", False) for arg in args)
    with torch.set_grad_enabled(wanted), _control_exact({allow_tf32}):
        return _control_tuple(reference(*args))
"""

_COMPILE: Final = """

import torch

_control_ran = []


def _control_inductor(graph, inputs):
    from torch._inductor.compile_fx import compile_fx

    compiled = compile_fx(graph, inputs)

    def counted(*args):
        _control_ran.append(None)
        return compiled(*args)

    return counted


# Else what is compiled for a size depends on the sizes met before, and so do the last bits.
_compiled = torch.compile(reference, backend=_control_inductor, dynamic=False)


def run(*args):
    _control_ran.clear()
    wanted = any(getattr(arg, "requires_grad", False) for arg in args)
    with torch.set_grad_enabled(wanted), _control_exact({allow_tf32}):
        result = _control_tuple(_compiled(*args))
    # Wherever torch.compile will not compile, it goes on eagerly and says nothing.
    if not _control_ran:
        raise RuntimeError("nothing that torch.compile has compiled ran: this is eager once more")
    return result
"""

_TAILS: Final = {Control.EAGER: _EAGER, Control.COMPILE: _COMPILE}


def control_source(task: Task, control: Control) -> str:
    """A kernel's source: the task's reference, and an entry point ``run`` that calls it."""
    tail = _TAILS[control].format(allow_tf32=task.contract.behaviour.allow_tf32)
    return task.reference_source.rstrip() + "\n" + _CALL + tail


def control_task(folder: Path, copy: Path) -> Path:
    """A copy of a task folder whose contract permits library calls; the copy's path."""
    document = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    document.setdefault("behaviour", {})["library_calls"] = True
    document["convention"] = "function"
    copy.mkdir(parents=True)
    (copy / "task.json").write_text(json.dumps(document), encoding="utf-8")
    (copy / "reference.py").write_bytes((folder / "reference.py").read_bytes())
    return copy


@dataclass(frozen=True, slots=True)
class Trial:
    """One control on one task of one suite."""

    suite: str
    folder: Path
    control: Control

    @property
    def name(self) -> str:
        return f"{self.suite}/{self.folder.name}"


def find_trials(
    suites: Iterable[Path], controls: Sequence[Control], only: Sequence[str] = ()
) -> list[Trial]:
    """Every control on every task below the suites' folders, in order; ``only`` keeps the tasks
    whose name holds one of these texts."""
    found = [
        Trial(suite_name(suite), path.parent, control)
        for suite in suites
        for path in sorted(suite.rglob("task.json"))
        for control in controls
    ]
    return [one for one in found if not only or any(text in one.name for text in only)]


def suite_name(folder: Path) -> str:
    """'fuzzoracle' for benchmarks/fuzzoracle and for its tasks/ alike."""
    whole = folder.resolve()
    return whole.parent.name if whole.name == "tasks" else whole.name


def sweep(
    session: Session,
    trials: Iterable[Trial],
    *,
    seed: int,
    tell: Callable[[ControlRow], None] = lambda row: None,
) -> Iterator[ControlRow]:
    """Judge each trial. Raises InfrastructureError; an unusable task is a row that says so."""
    for trial in trials:
        with tempfile.TemporaryDirectory(prefix="selfcheck-") as scratch:
            row = _judged(session, trial, Path(scratch), seed)
        tell(row)
        yield row


def _judged(session: Session, trial: Trial, scratch: Path, seed: int) -> ControlRow:
    started = time.perf_counter()
    digest = error = ""
    gates: tuple[ControlGate, ...] = ()
    try:
        task = load_task(trial.folder)
        digest = task.digest
        kernel = scratch / "kernel.py"
        kernel.write_text(control_source(task, trial.control), encoding="utf-8")
        job = Job(
            control_task(trial.folder, scratch / "task"),
            kernel,
            seed=seed,
            timed=False,
            total_s=TOTAL_S,
        )
        gates = _unasked(trial.control, session.mode) or _gates(session.judge(job))
    except TaskError as problem:
        error = str(problem)
    seconds = time.perf_counter() - started
    return ControlRow(trial.suite, trial.folder.name, digest, trial.control, gates, seconds, error)


def _unasked(control: Control, mode: DeviceMode) -> tuple[ControlGate, ...]:
    """What to say where this control cannot be made at all; nothing where it can."""
    if control is Control.EAGER or mode is DeviceMode.CUDA or shutil.which(CPU_COMPILER):
        return ()
    reason = f"for a CPU torch.compile writes C++, and there is no {CPU_COMPILER} here"
    return tuple(ControlGate(gate, GateStatus.NOT_APPLICABLE, 0, reason, "", ()) for gate in GateId)


def _gates(verdict: Verdict) -> tuple[ControlGate, ...]:
    return tuple(_gate(result) for result in verdict.gates)


def _gate(result: GateResult) -> ControlGate:
    example = result.counterexample
    case = "" if example is None else _case_text(example.case)
    return ControlGate(result.gate, result.status, result.passed, result.reason, case, result.notes)


def _case_text(case: Any) -> str:
    dims = ", ".join(f"{name}={size}" for name, size in case.dims.items())
    dtypes = "/".join(case.dtypes.values())
    return f"{case.label}: {dims} {dtypes} fill={case.fill} seed={case.seed}"
