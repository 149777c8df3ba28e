"""The tokens keep their promise: every text colour is at least 4.5:1 on what it stands on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSS = (Path(__file__).parents[2] / "static/css/app.css").read_text(encoding="utf-8")
TOKENS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", CSS
    )
}
INKS = ("ink", "ink-2", "ink-3", "accent")
GROUNDS = ("bg", "surface", "sunken", "accent-bg")
STATES = ("pass", "fail", "na", "maybe", "error")
PAIRS = [
    *[(ink, ground) for ink in INKS for ground in GROUNDS],
    *[(state, ground) for state in STATES for ground in ("bg", "surface", "sunken")],
    *[(state, f"{state}-bg") for state in STATES],
    *[("ink", f"{state}-bg") for state in STATES],
    ("bg", "fail"),  # the cross in a row of marks
    ("bg", "ink"),  # the reason that a cell shows on focus
    ("bg", "accent"),  # the main button
]


def luminance(color: str) -> float:
    """WCAG 2.2 relative luminance of #rrggbb."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), PAIRS, ids=lambda name: name)
def test_text_reads_on_its_ground(ink: str, ground: str, theme: int) -> None:
    assert contrast(TOKENS[ink][theme], TOKENS[ground][theme]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_borders_of_controls_are_seen(theme: int) -> None:
    assert contrast(TOKENS["line-strong"][theme], TOKENS["surface"][theme]) >= 3


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_source_colours_read_on_their_ground(theme: int) -> None:
    colors = re.findall(r"^\.source \..*light-dark\((#\w{6}), (#\w{6})\)", CSS, re.MULTILINE)
    assert len(colors) >= 6
    assert min(contrast(pair[theme], TOKENS["sunken"][theme]) for pair in colors) >= 4.5


def test_nothing_comes_from_elsewhere() -> None:
    assert "http" not in CSS
    assert "@import" not in CSS
