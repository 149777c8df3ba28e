"""Figures: pure functions from rows to Plotly figures.

Colours are named by token (`var(--accent)`), so one figure serves both themes: charts.js puts the
values of the current theme in their place before it draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go

from kernelhub.web.catalogue import GATES
from verifier.statistics import Share

FigureJson = dict[str, Any]
"""A figure as the plain JSON that plotly.js draws."""

INK: Final = "var(--ink)"
MUTED: Final = "var(--ink-3)"
LINE: Final = "var(--line)"
ACCENT: Final = "var(--accent)"
GREY: Final = "var(--bar)"
FAIL: Final = "var(--fail)"


@dataclass(frozen=True, slots=True)
class TimingRow:
    """One measured subject of one workload, with its interval."""

    workload: str
    subject: str
    latency_ms: float
    low_ms: float
    high_ms: float
    n: int
    speedup: float | None


@dataclass(frozen=True, slots=True)
class GateCount:
    """How many rejected runs a gate failed, split by what the loose test had said."""

    gate: str
    illusions: int
    others: int


@dataclass(frozen=True, slots=True)
class RulePoint:
    """What one factor of the soft rule rejects: wrong kernels and controls, with intervals."""

    factor: float
    wrong: Share
    controls: Share


SUBJECT_WORDS: Final = {"kernel": "this kernel", "eager": "eager", "compile": "torch.compile"}
SUBJECT_ORDER: Final = ("kernel", "compile", "eager")
BAR_HEIGHT_PX: Final = 30
TOOLS_PX: Final = 30
"""Room above the bars for Plotly's tools, which show on hover and must not cover the first one."""
AXIS_PX: Final = 32
MARGIN_PX: Final = TOOLS_PX + AXIS_PX + 12


def quiet_layout(figure: go.Figure, *, height_px: int) -> go.Figure:
    """Our template: no title, no box, hairlines, direct labels."""
    axis = {"gridcolor": LINE, "linecolor": LINE, "zeroline": False, "ticks": ""}
    return figure.update_layout(
        height=height_px,
        margin={"l": 8, "r": 8, "t": TOOLS_PX, "b": AXIS_PX},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": MUTED, "activecolor": INK},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12, "color": MUTED},
        hoverlabel={"bgcolor": INK, "font": {"color": "var(--bg)", "size": 12}, "align": "left"},
        xaxis=axis,
        yaxis={**axis, "automargin": True, "showgrid": False},
        bargap=0.45,
        showlegend=False,
    )


def timing_figure(rows: Sequence[TimingRow]) -> go.Figure:
    """Median latency of each subject with its 95% interval: accent for the kernel, grey else."""
    drawn = sorted(rows, key=_timing_key, reverse=True)
    figure = go.Figure([_timing_bars(drawn), _timing_texts(drawn)])
    quiet_layout(figure, height_px=MARGIN_PX + BAR_HEIGHT_PX * max(1, len(drawn)))
    longest = max((row.high_ms for row in drawn), default=1.0)
    return figure.update_xaxes(range=[0, longest * 1.85], ticksuffix=" ms", nticks=5)


def _timing_bars(rows: Sequence[TimingRow]) -> go.Bar:
    return go.Bar(
        orientation="h",
        x=[row.latency_ms for row in rows],
        y=_timing_labels(rows),
        marker={"color": [ACCENT if row.subject == "kernel" else GREY for row in rows]},
        error_x=_whiskers(rows),
        hovertext=[_timing_hover(row) for row in rows],
        hoverinfo="text",
    )


def _timing_texts(rows: Sequence[TimingRow]) -> go.Scatter:
    """The figures beside the bars: a bar's own text begins at its end, under the whisker."""
    return go.Scatter(
        mode="text",
        x=[row.high_ms for row in rows],
        y=_timing_labels(rows),
        text=[f"  {interval_text(row)}" for row in rows],
        textposition="middle right",
        textfont={"color": INK},
        cliponaxis=False,
        hoverinfo="skip",
    )


def _timing_key(row: TimingRow) -> tuple[str, int]:
    known = row.subject in SUBJECT_ORDER
    return row.workload, SUBJECT_ORDER.index(row.subject) if known else len(SUBJECT_ORDER)


def _timing_labels(rows: Sequence[TimingRow]) -> list[str] | list[list[str]]:
    words = [SUBJECT_WORDS.get(row.subject, row.subject) for row in rows]
    workloads = [row.workload for row in rows]
    return words if len(set(workloads)) < 2 else [workloads, words]


def _whiskers(rows: Sequence[TimingRow]) -> dict[str, object]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [row.high_ms - row.latency_ms for row in rows],
        "arrayminus": [row.latency_ms - row.low_ms for row in rows],
        "color": INK,
        "thickness": 1.5,
        "width": 5,
    }


def _timing_hover(row: TimingRow) -> str:
    return (
        f"{row.workload}, {SUBJECT_WORDS.get(row.subject, row.subject)}<br>"
        f"median {row.latency_ms:.4g} ms, 95% {row.low_ms:.4g} to {row.high_ms:.4g} ms, n = {row.n}"
    )


def interval_text(row: TimingRow) -> str:
    """'0.071 ±0.001 ms': as many digits as the interval earns."""
    half = (row.high_ms - row.low_ms) / 2
    if half == 0:
        return f"{row.latency_ms:.4g} ms"
    digits = _digits(half)
    return f"{row.latency_ms:.{digits}f} ±{half:.{digits}f} ms"


def _digits(half: float) -> int:
    """Decimals up to the first digit of the half interval."""
    for digits in range(7):
        if half >= 10.0**-digits:
            return digits
    return 6


def gate_figure(counts: Sequence[GateCount]) -> go.Figure:
    """Which gates reject kernels, and how many of these the loose test had let through."""
    found = {count.gate: count for count in counts}
    rows = [(page, found.get(page.id, GateCount(page.id, 0, 0))) for page in reversed(GATES)]
    names = [f"{page.number} {page.short}" for page, _ in rows]
    figure = go.Figure(
        [
            _gate_bar(
                names,
                [row.illusions for _, row in rows],
                FAIL,
                "accepted by the loose test",
                [f"/runs/?gate={page.id}&illusion=yes" for page, _ in rows],
            ),
            _gate_bar(
                names,
                [row.others for _, row in rows],
                GREY,
                "rejected by both",
                [f"/runs/?gate={page.id}&illusion=no" for page, _ in rows],
            ),
        ]
    )
    quiet_layout(figure, height_px=MARGIN_PX + 22 * len(GATES))
    return figure.update_layout(barmode="stack", bargap=0.3).update_xaxes(
        nticks=6, tickformat="d", rangemode="tozero"
    )


def _gate_bar(
    names: list[str], counts: list[int], color: str, said: str, links: list[str]
) -> go.Bar:
    """A click on a stretch leads to its link: charts.js follows ``customdata`` within this site."""
    return go.Bar(
        orientation="h",
        name=said,
        y=names,
        x=counts,
        customdata=links,
        marker={"color": color},
        hovertext=[
            f"gate {name}: {n} kernels, {said}" for name, n in zip(names, counts, strict=True)
        ],
        hoverinfo="text",
        text=[str(n) if n else "" for n in counts],
        textposition="inside",
        textangle=0,
        insidetextanchor="end",
        textfont={"color": "var(--bg)"},
    )


CURVE_PX: Final = 260


def threshold_figure(points: Sequence[RulePoint], in_use: float) -> go.Figure:
    """Rejected shares against the factor of the soft rule, the one in use marked by a dashed line:
    wrong kernels, which should all be rejected, and controls, of which none should be."""
    figure = go.Figure(
        [
            _share_line(points, [point.wrong for point in points], ACCENT, "wrong kernels"),
            _share_line(points, [point.controls for point in points], MUTED, "controls"),
        ]
    )
    quiet_layout(figure, height_px=CURVE_PX)
    figure.add_vline(x=in_use, line={"color": LINE_STRONG, "dash": "dash", "width": 1})
    factors = [point.factor for point in points]
    figure.update_xaxes(
        type="log",
        tickvals=factors,
        ticktext=[f"{factor:g}" for factor in factors],
        title={"text": "factor of eager's own error that is allowed", "standoff": 4},
        range=_log_range(factors),
    )
    figure.update_yaxes(range=[-0.04, 1.06], tickformat=".0%", showgrid=True, gridcolor=LINE)
    return figure.update_layout(margin={"l": 8, "r": 8, "t": TOOLS_PX, "b": AXIS_PX + 16})


LINE_STRONG: Final = "var(--line-strong)"


def _log_range(factors: Sequence[float]) -> list[float]:
    """A little room at the left, and room for the labels at the right."""
    usable = [factor for factor in factors if factor > 0] or [1.0]
    return [math.log10(min(usable)) - 0.05, math.log10(max(usable)) + 0.24]


def _share_line(
    points: Sequence[RulePoint], shares: Sequence[Share], color: str, name: str
) -> go.Scatter:
    """One line with Wilson whiskers, named at its last point."""
    values = [share.share or 0.0 for share in shares]
    last = len(points) - 1
    return go.Scatter(
        mode="lines+markers+text",
        name=name,
        x=[point.factor for point in points],
        y=values,
        line={"color": color, "width": 2},
        marker={"color": color, "size": 6},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [(share.high or 0.0) - v for share, v in zip(shares, values, strict=True)],
            "arrayminus": [v - (share.low or 0.0) for share, v in zip(shares, values, strict=True)],
            "color": color,
            "thickness": 1,
            "width": 3,
        },
        text=[f"  {name}" if at == last else "" for at in range(len(points))],
        textposition="middle right",
        textfont={"color": INK if color == ACCENT else MUTED},
        cliponaxis=False,
        hovertext=[
            f"factor {point.factor:g}: {name} rejected {share.text}"
            for point, share in zip(points, shares, strict=True)
        ],
        hoverinfo="text",
    )


def figure_json(figure: go.Figure) -> FigureJson:
    """The figure as JSON values, without plotly's own template, which would bring its colours."""
    figure.layout.template = None
    document: FigureJson = figure.to_plotly_json()
    return document
