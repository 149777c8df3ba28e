"""Gates tried on kernels in this very process: no sandbox, for kernels that we wrote ourselves.

Importing this module puts Triton into interpreter mode where no CUDA device is found.
"""

from __future__ import annotations

import os
import re
import sys
import time
import types
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from verifier.contract import load_task
from verifier.gate import Finding, Gate
from verifier.records import CaseRecord, DeviceMode, GateStatus, Language
from verifier.referee.bench import Bench, load_reference
from verifier.referee.eager import copy_with_layout, storage_bytes
from verifier.subject import ORDINARY, Arg, CallOptions, OutputInfo, Poison, Reply, ReplyKind

CUDA: Final = torch.cuda.is_available()
if not CUDA:
    os.environ["TRITON_INTERPRET"] = "1"
    # Small tensors: a second thread spins on a core that another test needs.
    torch.set_num_threads(1)

HERE: Final = Path(__file__).parent
TASKS: Final = HERE / "tasks"
TILE: Final = re.compile(r"\bBLOCK\w*\s*(?::[^=\n]*)?=\s*(\d+)")


def device() -> torch.device:
    return torch.device("cuda:0" if CUDA else "cpu")


def make_bench(task: str | Path, kernel: Path | None = None, seed: int = 7) -> Bench:
    """A bench for a task folder (by name below tests/gates/tasks, or by path)."""
    loaded = load_task(TASKS / task if isinstance(task, str) else task)
    text = kernel.read_text(encoding="utf-8") if kernel else "import triton"
    return Bench(
        contract=loaded.contract,
        reference=load_reference(loaded),
        mode=DeviceMode.CUDA if CUDA else DeviceMode.CPU_INTERPRET,
        device=device(),
        seed=seed,
        language=Language.TRITON if "import triton" in text else Language.TORCH,
        constants=tuple(sorted({int(n) for n in TILE.findall(text)})),
    )


def load_entry(path: Path) -> Any:
    """``run`` of a kernel file, executed afresh."""
    module = types.ModuleType(f"kernel_{path.parent.name}_{path.stem}_{time.monotonic_ns()}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    source = path.read_text(encoding="utf-8")
    exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102 - our own kernels
    return module.__dict__["run"]


class InProcess:
    """A kernel file as a subject, with poisoned allocations but without guard zones or tracing."""

    name = "kernel"

    def __init__(self, path: Path, on: torch.device | None = None) -> None:
        self.path = path
        self.calls = 0
        self._device = on or device()
        self._held: tuple[torch.Tensor, ...] = ()
        self._entry: Any = None

    def restart(self) -> None:
        self._entry, self._held = None, ()

    def other(self) -> InProcess:
        self.restart()
        return self

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        self.calls += 1
        try:
            if self._entry is None:
                self._entry = load_entry(self.path)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            return Reply(ReplyKind.LOAD_FAILED, f"{type(error).__name__}: {error}")
        # Two arguments that share a storage share it at the kernel too.
        placed = _place(args, self._device)
        started = time.perf_counter()
        try:
            with warnings.catch_warnings(), torch.no_grad(), poisoned(options.poison):
                warnings.simplefilter("ignore")
                result = self._entry(*placed)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            return Reply(ReplyKind.RAISED, f"{type(error).__name__}: {error}")
        outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if not all(isinstance(out, torch.Tensor) for out in outputs):
            return Reply(ReplyKind.BAD_OUTPUT, f"{type(result).__name__} is no tensor")
        reply = Reply(
            ReplyKind.RETURNED,
            outputs=tuple(out.detach().to("cpu", copy=True).contiguous() for out in outputs),
            infos=tuple(self._info(out, outputs, placed) for out in outputs),
            inputs_after=tuple(
                storage_bytes(a).cpu().clone() if isinstance(a, torch.Tensor) else None
                for a in placed
            ),
            previous_outputs=tuple(out.cpu().clone() for out in self._held),
            wall_s=time.perf_counter() - started,
        )
        self._held = outputs
        return reply

    def _info(
        self, out: torch.Tensor, outputs: Sequence[torch.Tensor], placed: Sequence[Arg]
    ) -> OutputInfo:
        inputs = [(i, a) for i, a in enumerate(placed) if isinstance(a, torch.Tensor)]
        return OutputInfo(
            stride=out.stride(),
            device=out.device.type,
            exact_tensor=type(out) is torch.Tensor,
            requires_grad=out.requires_grad,
            alias_inputs=tuple(i for i, a in inputs if _shares(out, a)),
            alias_outputs=tuple(
                i for i, other in enumerate(outputs) if other is not out and _shares(out, other)
            ),
            alias_previous=any(_shares(out, held) for held in self._held),
        )


def _shares(left: torch.Tensor, right: torch.Tensor) -> bool:
    pointer = left.untyped_storage().data_ptr()
    return left.numel() > 0 and pointer == right.untyped_storage().data_ptr()


def _place(args: Sequence[Arg], on: torch.device) -> list[Arg]:
    copies: dict[int, torch.Tensor] = {}
    placed: list[Arg] = []
    for arg in args:
        if not isinstance(arg, torch.Tensor):
            placed.append(arg)
            continue
        pointer = arg.untyped_storage().data_ptr()
        if pointer and pointer in copies:
            twin = torch.empty(0, dtype=arg.dtype, device=on)
            storage = copies[pointer].untyped_storage()
            placed.append(twin.set_(storage, arg.storage_offset(), arg.shape, arg.stride()))
        else:
            copies[pointer] = copy_with_layout(arg, on)
            placed.append(copies[pointer])
    return placed


POISON: Final = {Poison.NAN: float("nan"), Poison.BIG: 2.0**100, Poison.INT_MAX: 2.0**31}


def _dirty(tensor: torch.Tensor, poison: Poison) -> torch.Tensor:
    if tensor.dtype is torch.float16 and poison is not Poison.NAN:
        return tensor.fill_(2.0**14)
    if tensor.is_floating_point():
        return tensor.fill_(POISON[poison])
    if tensor.dtype is torch.bool:
        return tensor.fill_(True)
    return tensor if tensor.is_complex() else tensor.fill_(torch.iinfo(tensor.dtype).max)


class poisoned:
    """torch.empty and torch.empty_like give poisoned memory within the block."""

    def __init__(self, poison: Poison) -> None:
        self._poison = poison
        self._saved = torch.empty, torch.empty_like

    def __enter__(self) -> None:
        empty, empty_like = self._saved

        def fill(make: Any) -> Any:
            return lambda *args, **kwargs: _dirty(make(*args, **kwargs), self._poison)

        torch.empty, torch.empty_like = fill(empty), fill(empty_like)

    def __exit__(self, *_: object) -> None:
        torch.empty, torch.empty_like = self._saved


@dataclass(frozen=True, slots=True)
class Judged:
    """What a gate said about one subject, case by case."""

    findings: tuple[tuple[CaseRecord, Finding], ...]

    @property
    def status(self) -> GateStatus:
        statuses = {finding.status for _, finding in self.findings}
        for status in (
            GateStatus.FAIL,
            GateStatus.ERROR,
            GateStatus.INCONCLUSIVE,
            GateStatus.PASS,
        ):
            if status in statuses:
                return status
        return GateStatus.NOT_APPLICABLE

    @property
    def failures(self) -> list[tuple[CaseRecord, Finding]]:
        return [(case, finding) for case, finding in self.findings if finding.failed]

    def explain(self) -> str:
        return "\n".join(f"{c.label}: {f.status} {f.detail}" for c, f in self.findings)


def judge(gate: Gate, bench: Bench, path: Path) -> Judged:
    """Put a kernel file through one gate as the pipeline does: eager first, then the kernel."""
    reason = gate.applies(bench)
    if reason is not None:
        dummy = bench.case(gate.info.id, "applies")
        return Judged(((dummy, Finding(GateStatus.NOT_APPLICABLE, reason)),))
    subject = InProcess(path, bench.device)
    return Judged(tuple(judge_cases(gate, bench, subject, gate.cases(bench))))


def judge_cases(
    gate: Gate, bench: Bench, subject: InProcess, cases: Iterable[CaseRecord]
) -> Iterable[tuple[CaseRecord, Finding]]:
    for case in cases:
        reason = bench.cannot_judge(case)
        if reason is None and gate.self_check:
            eager = gate.judge(bench, case, bench.new_eager())
            if eager.failed:
                reason = f"reference does not satisfy: {eager.detail}"
        if reason is not None:
            yield case, Finding(GateStatus.NOT_APPLICABLE, reason)
        else:
            yield case, gate.judge(bench, case, subject)


def judge_eager(gate: Gate, bench: Bench) -> Judged:
    """Put eager itself through the gate."""
    if gate.applies(bench) is not None:
        return Judged(())
    return Judged(
        tuple((case, gate.judge(bench, case, bench.new_eager())) for case in gate.cases(bench))
    )
