"""Counterexamples as pages show them, whatever a node sent."""

from __future__ import annotations

from typing import Any

from kernelhub.web.evidence import evidence
from tests.web.samples import counterexample
from verifier import records
from verifier.records import GateId


def shown(**changes: Any) -> Any:
    document = records.to_json(counterexample(GateId.RANGE, 7))
    return evidence("G10", True, {**document, **changes}, "verdict-8f3c.json")


def test_it_names_case_place_and_values() -> None:
    found = shown()
    assert (found.label, found.seed, found.output, found.index) == (
        "spike above the exp limit",
        "7",
        "out",
        ("0", "0"),
    )
    assert [(row.name, row.values, row.bad) for row in found.slices][-1] == (
        "got",
        ("nan", "0.0"),
        True,
    )


def test_columns_are_indices_where_all_rows_start_at_one() -> None:
    assert shown().columns == ("[0, 0]", "[0, 1]")


def test_columns_are_offsets_where_rows_start_apart() -> None:
    slices = records.to_json(counterexample(GateId.RANGE, 7))["slices"]
    slices[0]["start"] = [3, 1]
    assert shown(slices=slices).columns == ("+0", "+1")


def test_the_replay_command_reads_the_file_that_the_page_gives() -> None:
    assert shown().replay == (".venv/bin/python -m verifier replay verdict-8f3c.json --gate G10")


def test_a_document_without_anything_still_makes_a_page() -> None:
    found = evidence("G1", False, {}, "v.json")
    assert (found.detail, found.columns, found.slices) == ("", (), ())


def test_a_document_of_wrong_types_still_makes_a_page() -> None:
    found = shown(case=["no"], slices="no", index={"a": 1}, dims=3, detail={"x": "\x1b[31m"})
    assert found.slices == ()
    assert "\x1b" not in found.detail


def test_a_thousand_values_do_not_widen_the_page() -> None:
    slices = records.to_json(counterexample(GateId.RANGE, 7))["slices"]
    slices[0]["values"] = ["1.0"] * 1000
    assert len(shown(slices=slices).columns) == 12
