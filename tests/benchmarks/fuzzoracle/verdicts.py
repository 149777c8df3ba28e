"""What every verdict over the corpora must say, and how the corpora are cut into test files.

A file of tests names its share as ``ENTRIES`` and imports the tests that hold for it; conftest.py
hands each test the kernels of its role. Several files, because a file of tests is judged by one
worker alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.fuzzoracle.scoring import Judged
from benchmarks.fuzzoracle.suite import CorpusEntry, read_group
from tests.benchmarks.fuzzoracle.conftest import Judge
from verifier.records import GateId, GateStatus, Outcome, Verdict

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "activations": ("relu", "leaky-relu", "elu", "silu", "sigmoid", "tanh"),
    "elementwise": ("gelu-tanh", "gelu-erf", "softplus", "add-bcast", "swiglu"),
    "reductions": ("sum", "mean", "amax", "argmax"),
    "scans": ("logsumexp", "cumsum", "softmax"),
    "rows": ("layernorm", "rmsnorm", "l2norm", "cross-entropy", "rope"),
    "products": ("matmul", "embedding-bwd", "causal-attention", "flash-attention"),
}
"""The 26 ops and the flash variant, by the file that judges them."""

WITNESSES: Final[Mapping[GateId, str]] = {
    GateId.AGREEMENT: "argmax_last_tie",
    GateId.NONFINITE: "amax_swallows_nan",
    GateId.DETERMINISM: "sum_clock_split",
    GateId.SHAPES: "causal_attention_no_offset",
    GateId.DTYPES: "sigmoid_returns_fp32",
    GateId.ACCUMULATION: "matmul_fp16_accumulator",
    GateId.LAYOUT: "add_bcast_assumes_dense",
    GateId.SIDE_EFFECTS: "swiglu_reuses_output",
    GateId.MEMORY: "add_bcast_unmasked_store",
    GateId.RANGE: "elu_cancels",
    GateId.METAMORPHIC: "softmax_no_max",
    GateId.HONEST: "rope_memoised",
}
"""For each gate, an illusion that it catches."""


def distinct(part: str) -> tuple[CorpusEntry, ...]:
    """The kernels of one part of the 26 distinct ops."""
    tasks = {f"op-{op}" for op in PARTS[part]}
    return tuple(entry for entry in read_group("illusions26") if entry.task in tasks)


def replica(role: str) -> tuple[CorpusEntry, ...]:
    """The controls, or the bugs, of the replica."""
    return tuple(entry for entry in read_group("p1_replica") if entry.role == role)


def judged(entries: tuple[CorpusEntry, ...], judge: Judge) -> dict[str, Judged]:
    """Outcome and loose verdict by label, for scoring."""
    verdicts = {entry.label: judge(entry) for entry in entries}
    return {
        label: Judged(verdict.outcome, verdict.loose.accepted if verdict.loose else None)
        for label, verdict in verdicts.items()
    }


def explain(verdict: Verdict) -> str:
    return "; ".join(f"{g.gate} {g.status}: {g.reason}" for g in verdict.gates if g.reason)


# --- tests, for the files that import them


def test_a_control_is_accepted(control: CorpusEntry, judge: Judge) -> None:
    verdict = judge(control)
    assert verdict.outcome is Outcome.ACCEPTED, explain(verdict)


def test_the_loose_test_accepts_a_control(control: CorpusEntry, judge: Judge) -> None:
    loose = judge(control).loose
    assert loose is not None
    assert loose.accepted, loose.detail


def test_a_bug_of_the_replica_is_flagged(bug: CorpusEntry, judge: Judge) -> None:
    assert judge(bug).outcome is Outcome.REJECTED


def test_the_loose_test_accepts_an_illusion(illusion: CorpusEntry, judge: Judge) -> None:
    loose = judge(illusion).loose
    assert loose is not None
    assert loose.accepted, loose.detail


def test_an_illusion_is_caught(illusion: CorpusEntry, judge: Judge) -> None:
    assert judge(illusion).outcome is Outcome.REJECTED


def test_a_gate_catches_its_witness(witness: CorpusEntry, gate: GateId, judge: Judge) -> None:
    assert judge.by_gate(witness, gate).gates[gate.number - 1].status is GateStatus.FAIL
