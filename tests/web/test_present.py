"""Cells, rows and sentences."""

from __future__ import annotations

import pytest

from kernelhub.core.selectors import LooseVsGates
from kernelhub.web.present import (
    Finding,
    cells,
    counted_words,
    listed,
    marks,
    plural,
    rate_sentence,
    row_label,
    submitted_words,
    verdict_sentence,
    wilson,
)
from tests.web.samples import gate_results
from verifier import records
from verifier.records import GateId, GateStatus


def findings(
    fail: tuple[GateId, ...] = (),
    hard: tuple[GateId, ...] = (),
    maybe: tuple[GateId, ...] = (),
) -> list[Finding]:
    results = gate_results(fail, hard=hard, maybe=maybe)
    return [Finding.from_payload(records.to_json(one)) for one in results]


def test_twelve_cells_stand_in_order_whatever_came_first() -> None:
    row = cells(reversed(findings()))
    assert [cell.gate.number for cell in row] == list(range(1, 13))


def test_a_gate_without_a_finding_waits_and_the_current_one_runs() -> None:
    row = cells(findings()[:2], running="G3")
    assert [cell.look.css for cell in row[:4]] == ["pass", "pass", "run", "wait"]


def test_a_failed_cell_counts_its_cases_and_names_its_reason() -> None:
    cell = cells(findings(fail=(GateId.RANGE,)))[9]
    assert cell.fact == "3 of 9 cases"
    assert "88.7" in cell.label
    assert cell.label.startswith("Gate 10, Range, fail")


def test_every_state_has_a_glyph_of_its_own() -> None:
    row = cells(
        [Finding(gate, status) for gate, status in zip(GateId, GateStatus, strict=False)],
        running="G6",
    )
    assert len({cell.look.glyph for cell in row[:7]}) == 7


def test_a_row_is_read_out_with_what_failed_first() -> None:
    label = row_label(marks(findings(fail=(GateId.NONFINITE,), maybe=(GateId.HONEST,))))
    assert label == (
        "fail: 2 Non-finite; inconclusive: 12 Honest; not applicable: 6 Accumulation; pass: 9"
    )


@pytest.mark.parametrize(
    ("fail", "hard", "loose", "sentence"),
    [
        (
            (GateId.NONFINITE, GateId.RANGE),
            (GateId.NONFINITE,),
            True,
            "The loose test accepts this kernel; two gates reject it, "
            "one of them without a tolerance.",
        ),
        (
            (GateId.RANGE,),
            (),
            False,
            "The loose test rejects this kernel too: one gate rejects it, "
            "within the reach of a tolerance.",
        ),
        (
            (GateId.MEMORY,),
            (GateId.MEMORY,),
            None,
            "One gate rejects it, and no tolerance had a part in it.",
        ),
    ],
)
def test_a_rejection_is_said_in_one_sentence(
    fail: tuple[GateId, ...], hard: tuple[GateId, ...], loose: bool | None, sentence: str
) -> None:
    assert verdict_sentence("rejected", findings(fail, hard), loose) == sentence


def test_an_acceptance_names_what_did_not_apply() -> None:
    assert verdict_sentence("accepted", findings(), True) == (
        "11 gates pass and 1 does not apply; the loose test accepts it as well."
    )


def test_an_undecided_verdict_is_not_called_passed() -> None:
    sentence = verdict_sentence("undecided", findings(maybe=(GateId.HONEST,)), True)
    assert sentence == "Nothing failed, but 1 gate stays open: 12 Honest. Open is not passed."


def test_the_rate_never_comes_without_its_counts_and_interval() -> None:
    assert rate_sentence(7, 11) == (
        "7 of the 11 kernels that the loose test accepts are wrong: 64% (95% interval 35% to 85%)."
    )


def test_no_rate_is_made_of_nothing() -> None:
    assert "no illusion rate" in rate_sentence(0, 0)


def test_the_rate_says_over_which_kernels_it_is() -> None:
    assert rate_sentence(7, 11, "corpus kernel").startswith("7 of the 11 corpus kernels that")
    assert "accepted no submitted kernel yet" in rate_sentence(0, 0, "submitted kernel")


def test_a_table_says_whom_it_counts_and_whom_it_leaves_out() -> None:
    assert counted_words(LooseVsGates(both_accept=3), "corpus kernel") == (
        "3 corpus kernels judged, each by its latest verdict."
    )
    assert counted_words(LooseVsGates(1, undecided=2, unmeasured=1), "corpus kernel") == (
        "4 corpus kernels judged, each by its latest verdict; "
        "left out: 2 undecided and 1 without a loose test."
    )


def test_submitted_kernels_are_told_apart_from_the_corpus() -> None:
    assert submitted_words(LooseVsGates()) == ""
    assert submitted_words(LooseVsGates(both_accept=2, illusions=1)) == (
        "Submitted kernels are counted apart: 3 judged; 2 accepted; "
        "1 rejected, 1 of them accepted by the loose test."
    )


def test_wilson_agrees_with_the_published_example_and_stays_inside_0_and_1() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263 and 0 of 20.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_words_agree_in_number() -> None:
    assert [plural(1, "run"), plural(1200, "run"), plural(2, "entry", "entries")] == [
        "1 run",
        "1,200 runs",
        "2 entries",
    ]
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a"]) == "a"
