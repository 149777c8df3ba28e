"""Gates tried on kernels in the real sandbox, the way that the pipeline does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.gates.inprocess import CUDA, Judged, device
from verifier.candidate.client import Candidate, Sandbox
from verifier.contract import load_task
from verifier.gate import Finding, Gate
from verifier.records import CaseRecord, DeviceMode, GateStatus
from verifier.referee.bench import Bench, load_reference
from verifier.source import read_source
from verifier.subject import Subject

ROOT: Final = Path(__file__).parents[2]
MARK: Final = "# task: "


def task_folder(kernel: Path) -> Path:
    """The folder that the kernel's first line names."""
    first = kernel.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(MARK), f"{kernel} does not start with '{MARK}'"
    return ROOT / first.removeprefix(MARK).strip()


def bench_for(kernel: Path, *, task: Path | None = None, seed: int = 7) -> Bench:
    """The bench that the pipeline would build: language and tile sizes read from the source."""
    loaded = load_task(task or task_folder(kernel))
    facts = read_source(kernel.read_bytes())
    return Bench(
        contract=loaded.contract,
        reference=load_reference(loaded),
        mode=DeviceMode.CUDA if CUDA else DeviceMode.CPU_INTERPRET,
        device=device(),
        seed=seed,
        language=facts.language,
        constants=facts.tile_sizes,
    )


def judge_kernel(
    gate: Gate, sandbox: Sandbox, kernel: Path, *, task: Path | None = None, only: str = ""
) -> Judged:
    """Eager first, then the kernel, on each case whose label starts with ``only``."""
    bench = bench_for(kernel, task=task)
    candidate = sandbox.load(source=kernel.read_bytes(), entry="run")
    try:
        return Judged(tuple(_judge(gate, bench, candidate, only)))
    finally:
        candidate.close()


def _judge(
    gate: Gate, bench: Bench, candidate: Candidate, only: str
) -> Iterator[tuple[CaseRecord, Finding]]:
    reason = gate.applies(bench)
    cases: Iterable[CaseRecord] = [] if reason else gate.cases(bench)
    if reason:
        case = bench.case(gate.info.id, "applies")
        yield case, Finding(GateStatus.NOT_APPLICABLE, reason)
    for case in cases:
        if case.label.startswith(only):
            yield case, _one(gate, bench, case, candidate)


def _one(gate: Gate, bench: Bench, case: CaseRecord, candidate: Subject) -> Finding:
    reason = bench.cannot_judge(case)
    if reason is None and gate.self_check:
        eager = gate.judge(bench, case, bench.new_eager())
        reason = None if eager.passed else eager.detail
    if reason is not None:
        return Finding(GateStatus.NOT_APPLICABLE, reason)
    return gate.judge(bench, case, candidate)
