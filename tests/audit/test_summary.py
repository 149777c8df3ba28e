"""What an audit counts, and what it leaves out of its shares."""

from __future__ import annotations

import pytest

from tests.audit.rows import kernel, row, verdict
from verifier.audit.corpus import Content
from verifier.audit.render import markdown, terminal
from verifier.audit.summary import loose_accepts, ran, summarise
from verifier.records import GateId, GateStatus, RecordError

FAIL, OPEN = GateStatus.FAIL, GateStatus.INCONCLUSIVE


def test_a_soft_failure_is_a_violation_and_not_broken() -> None:
    group = summarise([], [row("a", verdict({GateId.AGREEMENT: FAIL}))]).kernels
    assert (group.violation.hits, group.broken.hits) == (1, 0)


def test_a_hard_failure_is_both() -> None:
    group = summarise([], [row("a", verdict({GateId.NONFINITE: FAIL}, hard=True))]).kernels
    assert (group.violation.hits, group.broken.hits) == (1, 1)


def test_an_open_gate_is_neither_and_makes_the_kernel_undecided() -> None:
    group = summarise([], [row("a", verdict({GateId.MEMORY: OPEN}))]).kernels
    assert (group.violation.hits, group.undecided, group.accepted) == (0, 1, 0)
    assert group.inconclusive.hits == 1


def test_compositions_of_library_calls_enter_no_share_of_kernels() -> None:
    rows = [row("a", verdict(), content=Content.LIBRARY), row("b", verdict())]
    summary = summarise([], rows)
    assert (summary.kernels.n, summary.library.n) == (1, 1)


def test_the_two_by_two_counts_each_corner() -> None:
    broken = {GateId.SHAPES: FAIL}
    rows = [
        row("a", verdict()),
        row("b", verdict(broken)),
        row("c", verdict(broken)),
        row("d", verdict(loose=False)),
        row("e", verdict(broken, loose=False)),
        row("f", verdict(loose=None)),
    ]
    table = summarise([], rows).kernels.table
    assert (table.both_accept, table.only_loose, table.only_verifier, table.neither) == (1, 2, 1, 1)
    assert table.left_out == 1
    assert table.test.p_value == pytest.approx(1.0)


def test_what_the_device_cannot_run_has_no_loose_result() -> None:
    unsupported = verdict(loose=False, detail="trial 1 of 5: unsupported: it asks for a GPU")
    assert loose_accepts(unsupported) is None


def test_a_kernel_that_raised_at_once_did_not_run() -> None:
    found = verdict({GateId.AGREEMENT: FAIL}, loose=False, detail="trial 1 of 5: raised: no")
    assert not ran(found)


def test_a_kernel_with_wrong_values_did_run() -> None:
    found = verdict({GateId.AGREEMENT: FAIL}, loose=False, detail="trial 1 of 5: allclose fails")
    assert ran(found)


def test_a_gate_alone_is_one_without_which_the_kernel_would_stand() -> None:
    rows = [
        row("a", verdict({GateId.LAYOUT: FAIL})),
        row("b", verdict({GateId.LAYOUT: FAIL, GateId.MEMORY: FAIL})),
    ]
    gates = {one.gate: one for one in summarise([], rows).kernels.gates}
    assert (gates[GateId.LAYOUT].failed, gates[GateId.LAYOUT].alone) == (2, 1)
    assert gates[GateId.MEMORY].alone == 0


def test_our_own_errors_are_in_no_share() -> None:
    broken = row("a", error_kind="infrastructure", error="the verifier died")
    summary = summarise([], [broken, row("b", verdict())])
    assert summary.kernels.n == 1
    assert summary.errors == (("the verifier died", 1),)


def test_kernels_with_a_problem_are_counted_by_reason() -> None:
    corpus = [kernel("a", problem="not Python code"), kernel("b")]
    summary = summarise(corpus, [])
    assert summary.not_judged == (("not Python code", 1),)
    assert summary.left == 1


def test_a_row_has_a_verdict_or_an_error() -> None:
    with pytest.raises(RecordError):
        row("a", verdict(), error_kind="task", error="no")


def test_a_title_cannot_break_the_table() -> None:
    text = markdown(summarise([], [row("a", verdict(), category="a | b\n# c")]))
    assert "a \\| b # c" in text


def test_the_terminal_shows_every_gate() -> None:
    lines = "\n".join(terminal(summarise([], [row("a", verdict())])))
    assert all(f"{one.value} " in lines for one in GateId)
