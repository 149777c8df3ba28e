"""Figures are pure: rows in, plain JSON out."""

from __future__ import annotations

import json

import pytest

from kernelhub.web.figures import (
    GateCount,
    TimingRow,
    figure_json,
    gate_figure,
    interval_text,
    timing_figure,
)


def timing(subject: str, latency_ms: float = 0.0662, *, workload: str = "8192 x 4096") -> TimingRow:
    return TimingRow(
        workload, subject, latency_ms, latency_ms - 0.001, latency_ms + 0.002, 300, None
    )


def test_the_kernel_has_the_accent_and_the_rest_is_grey() -> None:
    bar = figure_json(timing_figure([timing("kernel"), timing("eager"), timing("compile")]))[
        "data"
    ][0]
    assert dict(zip(bar["y"], bar["marker"]["color"], strict=True)) == {
        "this kernel": "var(--accent)",
        "torch.compile": "var(--bar)",
        "eager": "var(--bar)",
    }


def test_whiskers_span_the_interval() -> None:
    bar = figure_json(timing_figure([timing("kernel")]))["data"][0]
    assert bar["error_x"]["array"] == pytest.approx([0.002])
    assert bar["error_x"]["arrayminus"] == pytest.approx([0.001])
    assert "n = 300" in bar["hovertext"][0]


def test_the_figure_of_a_bar_stands_beyond_its_whisker() -> None:
    bars, texts = figure_json(timing_figure([timing("kernel"), timing("eager")]))["data"]
    assert texts["mode"] == "text"
    assert texts["textposition"] == "middle right"
    assert list(texts["x"]) == pytest.approx([0.0682, 0.0682])
    assert (list(texts["y"]), "text" in bars) == (list(bars["y"]), False)


def test_several_workloads_are_told_apart() -> None:
    rows = [timing("kernel", workload="small"), timing("kernel", workload="large")]
    bar = figure_json(timing_figure(rows))["data"][0]
    assert sorted(bar["y"][0]) == ["large", "small"]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (TimingRow("w", "kernel", 0.0662, 0.0651, 0.0673, 9, None), "0.066 ±0.001 ms"),
        (TimingRow("w", "kernel", 12.3456, 11.9, 12.9, 9, None), "12.3 ±0.5 ms"),
        (TimingRow("w", "kernel", 1.5, 1.5, 1.5, 9, None), "1.5 ms"),
    ],
)
def test_no_more_digits_than_the_interval_earns(row: TimingRow, text: str) -> None:
    assert interval_text(row) == text


def test_all_twelve_gates_are_drawn_also_those_that_found_nothing() -> None:
    figure = figure_json(gate_figure([GateCount("G10", 4, 1)]))
    illusions, others = figure["data"]
    assert len(illusions["y"]) == 12
    at = illusions["y"].index("10 Range")
    assert (illusions["x"][at], others["x"][at]) == (4, 1)
    assert sum(illusions["x"]) == 4


def test_figures_are_plain_json_and_name_colours_by_token() -> None:
    text = json.dumps(figure_json(gate_figure([])))
    assert "#" not in text
    assert "template" not in text


def test_no_row_makes_an_empty_figure_and_no_error() -> None:
    assert figure_json(timing_figure([]))["data"][0]["x"] == []
