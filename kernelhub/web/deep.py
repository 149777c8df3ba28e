"""What the deep mode saw, as rows of the Run page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelhub.web.catalogue import DEEP_LOOKS, Look
from kernelhub.web.text import strip_control
from verifier.records import DeepResult, RecordError, from_json
from verifier.wording import deep_finding_text, deep_sentence


@dataclass(frozen=True, slots=True)
class DeepRow:
    """One tool: how it ended, what it saw in words, each finding."""

    tool: str
    look: Look
    said: str
    findings: tuple[str, ...]
    duration_ms: float
    version: str


def deep_rows(document: Mapping[str, Any]) -> tuple[DeepRow, ...]:
    """The rows of a verdict document; none where nobody asked, or where a later version wrote what
    this one cannot read."""
    try:
        results = [from_json(DeepResult, one) for one in document.get("deep") or ()]
    except RecordError:
        return ()
    return tuple(map(_row, results))


def _row(result: DeepResult) -> DeepRow:
    findings = tuple(strip_control(deep_finding_text(one)) for one in result.findings)
    said = strip_control(deep_sentence(result))
    look = DEEP_LOOKS[result.status]
    return DeepRow(result.tool, look, said, findings, result.duration_ms, result.version)
