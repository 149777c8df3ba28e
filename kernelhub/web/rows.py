"""List rows: what the table of runs shows beside the run itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kernelhub.core.models import GateResult, Run, Verdict


def verdict_of(run: Run) -> Verdict | None:
    """The run's verdict, if it has one."""
    return getattr(run, "verdict", None)


def listed_runs(runs: Iterable[Run]) -> Sequence[Run]:
    """The runs with ``findings``, the prefetched gate statuses for the twelve marks."""
    listed: list[Any] = list(runs)
    for run in listed:
        run.findings = findings_of(run)
    return listed


def findings_of(run: Run) -> Sequence[GateResult]:
    verdict = verdict_of(run)
    return list(verdict.gates.all()) if verdict else ()
