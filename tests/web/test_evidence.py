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
    assert [column.name for column in found.columns] == ["x", "expected", "got"]
    assert [[value.text for value in place.values] for place in found.places] == [
        ["89.0", "0.731058579", "nan"],
        ["88.0", "0.268941421", "0.0"],
    ]


def slices_of(**got: Any) -> list[Any]:
    """The slices of the sample, with that of the kernel's output changed."""
    slices: list[Any] = records.to_json(counterexample(GateId.RANGE, 7))["slices"]
    return [*slices[:-1], {**slices[-1], **got}]


def test_rows_are_indices_where_all_slices_start_at_one() -> None:
    assert [place.index for place in shown().places] == ["[0, 0]", "[0, 1]"]


def test_rows_are_offsets_where_slices_start_apart() -> None:
    slices = slices_of()
    slices[0]["start"] = [3, 1]
    assert [place.index for place in shown(slices=slices).places] == ["+0", "+1"]


def test_the_offending_index_is_marked() -> None:
    places = shown(index=[0, 1]).places
    assert [place.offending for place in places] == [False, True]
    assert not any(place.offending for place in shown(index=[4, 1]).places)


def test_what_equals_the_expected_value_is_not_called_wrong() -> None:
    slices = slices_of(values=["0.0", "0.2689414322376251"])
    slices[1]["values"] = ["0.7310585786300049", "0.2689414213699951"]
    wrong = [[value.wrong for value in place.values] for place in shown(slices=slices).places]
    assert wrong == [[False, False, True], [False, False, False]]


def test_the_offending_value_is_wrong_even_where_only_its_sign_is() -> None:
    slices = slices_of(values=["0.0", "0.0"])
    slices[1]["values"] = ["-0.0", "-0.0"]
    places = shown(slices=slices).places
    assert [place.values[-1].wrong for place in places] == [True, False]
    assert places[0].values[1].text == "-0.0"


def test_values_have_no_more_digits_than_their_dtype() -> None:
    places = shown(slices=slices_of(values=["0.7310585975646973", "-inf"])).places
    assert [place.values[-1].text for place in places] == ["0.731058598", "-inf"]


def test_the_replay_command_reads_the_file_that_the_page_gives() -> None:
    assert shown().replay == (".venv/bin/python -m verifier replay verdict-8f3c.json --gate G10")


def test_a_document_without_anything_still_makes_a_page() -> None:
    found = evidence("G1", False, {}, "v.json")
    assert (found.detail, found.columns, found.places) == ("", (), ())


def test_a_document_of_wrong_types_still_makes_a_page() -> None:
    found = shown(case=["no"], slices="no", index={"a": 1}, dims=3, detail={"x": "\x1b[31m"})
    assert found.places == ()
    assert "\x1b" not in found.detail


def test_a_thousand_values_do_not_lengthen_the_page_and_the_offending_one_is_shown() -> None:
    places = shown(slices=slices_of(values=["1.0"] * 1000), index=[0, 900]).places
    assert len(places) == 12
    assert [place.index for place in places if place.offending] == ["[0, 900]"]
