"""What becomes of a case whose sizes the kernel refused.

A kernel may refuse sizes (gate 4 says so), but it must not choose by that what is asked of it. So
whatever it refused at other sizes is asked again at the task's own, which gate 1 saw it take; and
where it refuses there, too, the case stays open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from verifier.gate import Finding, inconclusive
from verifier.records import CaseRecord, GateStatus
from verifier.referee.bench import Bench

CONTRADICTION: Final = "it refuses here sizes and dtypes that gate 1 sees it take"


def settled(bench: Bench, case: CaseRecord, finding: Finding) -> Finding:
    """The finding, INCONCLUSIVE where a refusal contradicts gate 1 and would leave it open."""
    at = _refused_at(finding)
    usual = case.dtypes == bench.contract.usual_dtypes()
    if at is None or at != bench.home_dims() or not usual:
        return finding
    return inconclusive(f"{CONTRADICTION} ({finding.detail})")


def at_home(bench: Bench, case: CaseRecord, finding: Finding) -> CaseRecord | None:
    """The same case at the task's own sizes; None where it was not refused, or refused there."""
    home = bench.home_dims()
    if _refused_at(finding) is None or case.dims == home:
        return None
    return replace(case, label=f"{case.label} (at the usual size)", dims=home)


def _refused_at(finding: Finding) -> Mapping[str, int] | None:
    return finding.refused_at if finding.status is GateStatus.NOT_APPLICABLE else None
