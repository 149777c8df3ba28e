"""What the sweep counts as right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.caged import ROOT
from tests.perf.sweep import Known, Line, known_kernels, summary
from verifier.records import DeviceMode, Outcome


def line(role: str, outcome: Outcome) -> Line:
    known = Known(ROOT / "tests/kernel.py", Path("task"), role)
    return Line(known, outcome, "+" * 12, 1.0)


@pytest.mark.parametrize("role", ["control", "twin"])
@pytest.mark.parametrize("outcome", Outcome)
def test_an_honest_kernel_must_be_accepted(role: str, outcome: Outcome) -> None:
    assert line(role, outcome).right is (outcome is Outcome.ACCEPTED)


@pytest.mark.parametrize("role", ["bug", "illusion", "violator", "hostile"])
@pytest.mark.parametrize("outcome", Outcome)
def test_a_wrong_kernel_must_be_rejected(role: str, outcome: Outcome) -> None:
    assert line(role, outcome).right is (outcome is Outcome.REJECTED)


def test_the_summary_counts_by_role() -> None:
    lines = [line("bug", Outcome.REJECTED), line("bug", Outcome.UNDECIDED)]
    assert summary(lines) == "bug 1/2"


def test_every_corpus_and_every_gate_is_swept() -> None:
    folders = {one.kernel.parent.name for one in known_kernels()}
    assert {"p1_replica", "illusions26", *(f"g{n:02d}" for n in range(1, 13))} <= folders


def test_hostile_kernels_are_swept_where_they_can_be_judged() -> None:
    here = {one.kernel.parent.name for one in known_kernels() if one.role == "hostile"}
    there = {one.kernel.parent.name for one in known_kernels("", DeviceMode.CUDA)}
    assert "engine_specific" in here - {"stale_graph"}
    assert {"stale_graph", "side_stream"} <= there - here
