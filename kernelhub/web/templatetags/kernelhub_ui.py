"""Template tags: the gate strip, the gate row, states, durations and charts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from kernelhub.web.catalogue import DASH, GATES, Look, run_look, status_word
from kernelhub.web.commands import hub_command, python_command
from kernelhub.web.figures import FigureJson
from kernelhub.web.present import Cell, StatusLike, marks, plural, row_label
from kernelhub.web.text import one_line, reason_line, strip_control

register = template.Library()
THEMES: Final = frozenset({"light", "dark"})


@register.simple_tag(takes_context=True)
def theme_attribute(context: Mapping[str, Any]) -> SafeString:
    """`data-theme`, where the reader chose a theme; the system decides otherwise."""
    request = context.get("request")
    theme = request.COOKIES.get("theme", "") if request is not None else ""
    return format_html(' data-theme="{}"', theme) if theme in THEMES else mark_safe("")


@register.simple_tag(takes_context=True)
def current(context: Mapping[str, Any], *prefixes: str) -> str:
    """`aria-current` on the navigation entry that the page lies under."""
    request = context.get("request")
    path = request.path if request is not None else None
    here = path is not None and any(
        path == "/" if p == "/" else path.startswith(p) for p in prefixes
    )
    return format_html(' aria-current="{}"', "page") if here else ""


@register.simple_tag(takes_context=True)
def with_query(context: Mapping[str, Any], **changes: object) -> str:
    """The page's own query string with some parameters changed; an empty value drops one."""
    query = context["request"].GET.copy()
    for name, value in changes.items():
        query.pop(name, None)
        if value not in (None, ""):
            query[name] = str(value)
    return f"?{query.urlencode()}" if query else "?"


@register.simple_tag
def query(**parameters: object) -> str:
    """A query string of its own."""
    return f"?{urlencode({name: value for name, value in parameters.items() if value})}"


@register.simple_tag(takes_context=True)
def submit_command(context: Mapping[str, Any], task: str) -> str:
    """How a kernel is submitted to this very hub from a shell at the repository's root."""
    words = ("submit", "kernel.py", "--task", task, "--wait")
    return hub_command(context["request"], *words)


@register.simple_tag
def python_line(words: str) -> str:
    """`{% python_line "manage.py load_suites" %}` with the interpreter that has it installed."""
    return python_command(*words.split())


@register.inclusion_tag("web/_gate_strip.html")
def gate_strip(strip: Sequence[Cell]) -> dict[str, object]:
    """The signature: twelve large cells, each naming its reason and leading to its evidence."""
    return {"cells": strip}


@register.simple_tag
def gate_row(findings: Iterable[StatusLike]) -> SafeString:
    """Twelve marks for a table cell, read out as one sentence."""
    row = marks(findings or ())
    body = format_html_join(
        "",
        '<i class="{}" title="{}">{}</i>',
        ((mark.look.css, _mark_title(mark), mark.look.glyph) for mark in row),
    )
    return format_html(
        '<span class="gates" role="img" aria-label="{}">{}</span>', row_label(row), body
    )


def _mark_title(mark: Cell) -> str:
    return f"{mark.gate.number} {mark.gate.short}: {mark.look.word}"


@register.simple_tag
def gate_heads() -> SafeString:
    """The numbers over a column of gate rows."""
    body = format_html_join(
        "", '<i title="{} {}">{}</i>', ((page.number, page.short, page.number) for page in GATES)
    )
    return format_html(
        '<span class="gates heads" role="img" aria-label="Gates 1 to 12">{}</span>', body
    )


@register.filter
def state(run: Any) -> SafeString:
    """Where a run stands, as glyph and word: its outcome once judged, else its status."""
    verdict = getattr(run, "verdict", None)
    return look_html(run_look(run.status, verdict.outcome if verdict else None))


@register.filter
def look_html(look: Look) -> SafeString:
    return format_html(
        '<span class="state t-{}"><span class="glyph" aria-hidden="true">{}</span>{}</span>',
        look.css,
        look.glyph,
        look.word,
    )


@register.filter
def gate_status(status: object) -> str:
    """'NOT_APPLICABLE' is 'not applicable'."""
    return status_word(str(status))


@register.filter
def said(accepted: bool | None) -> SafeString:
    """What the loose test said."""
    if accepted is None:
        return mark_safe('<span class="t-na">not run</span>')
    look = Look("pass", "✓", "accept") if accepted else Look("fail", "✕", "reject")
    return look_html(look)


@register.filter
def plain(value: object) -> str:
    """Untrusted text without terminal codes; the template escapes it afterwards."""
    return strip_control(str(value))


@register.filter
def line(value: object, limit: int = 160) -> str:
    """The first line of untrusted text."""
    return one_line(str(value), limit)


@register.filter
def cause(value: object, limit: int = 160) -> str:
    """A reason in one line that says what is wrong, also where its first line does not."""
    return reason_line(str(value), limit)


@register.filter
def whole(value: object) -> str:
    """A reason of several lines, to be shown beneath its one line; '' for any other."""
    text = strip_control(str(value)).strip("\n")
    return text if "\n" in text else ""


@register.filter
def count(number: int, noun: str) -> str:
    """`{{ 2|count:"run" }}` is '2 runs'; `{{ 2|count:"entry,entries" }}` names its own plural."""
    one, _, many = noun.partition(",")
    return plural(number, one, many)


@register.filter
def took(duration_ms: object) -> str:
    """A duration with three digits at most: '0.8 ms', '214 ms', '1.87 s', '3 min 4 s'."""
    if not isinstance(duration_ms, int | float):
        return ""  # no verdict, no duration
    if duration_ms < 1000:
        return f"{duration_ms:.1f} ms" if duration_ms < 10 else f"{duration_ms:.0f} ms"
    seconds = duration_ms / 1000
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


@register.filter
def when(moment: object) -> SafeString:
    """'2 min ago', with the exact time on hover and for machines."""
    if not isinstance(moment, datetime):
        return mark_safe("")
    return format_html(
        '<time data-ago datetime="{}" title="{} UTC">{}</time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S"),
        ago(moment, timezone.now()),
    )


STEPS: Final = ((60, 1, "s"), (3600, 60, "min"), (48 * 3600, 3600, "h"), (10**12, 86400, "d"))


def ago(moment: datetime, now: datetime) -> str:
    """One unit is enough in a table: '3 s ago', '5 min ago', '7 h ago', '12 d ago'."""
    age_s = max(0, int((now - moment).total_seconds()))
    if age_s < 2:
        return "just now"
    unit_s, name = next((unit_s, name) for limit_s, unit_s, name in STEPS if age_s < limit_s)
    return f"{age_s // unit_s} {name} ago"


@register.filter
def shape(values: Iterable[object]) -> str:
    """(2, 3) as '[2, 3]'."""
    return f"[{', '.join(str(value) for value in values)}]"


@register.filter
def pairs(values: Mapping[str, object]) -> str:
    """{'M': 2} as 'M=2'."""
    return ", ".join(f"{name}={value}" for name, value in values.items()) or DASH


@register.filter
def pretty(value: object) -> str:
    """JSON for reading."""
    return json.dumps(value, indent=2, ensure_ascii=False)


@register.filter
def lookup(mapping: Mapping[Any, Any], key: object) -> Any:
    return mapping.get(key)


@register.inclusion_tag("web/_chart.html")
def chart(figure: FigureJson, name: str, label: str) -> dict[str, object]:
    """A figure that charts.js draws; without JavaScript the table beside it says the same."""
    return {"figure": figure, "name": name, "data_id": f"{name}-data", "label": label}
