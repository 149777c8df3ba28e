"""What becomes of a case whose sizes the kernel refused.

A kernel may refuse sizes (gate 4 says so), but it must not choose by that what is asked of it. So
whatever it refused at other sizes is asked again at the task's own, which gate 1 saw it take, and
at a few that the contract names; and where it refuses the task's own, too, the case stays open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from verifier.gate import Finding, inconclusive
from verifier.records import CaseRecord, GateStatus
from verifier.referee.bench import Bench
from verifier.referee.generator import Stream
from verifier.referee.paths import PATH, listed_dims

LISTED: Final = 2
"""How many sizes that the contract names are tried where others are refused."""
LISTED_PATHS: Final = 6
"""The same for a case that looks for another path: a kernel that refuses whatever no contract names
may still have one."""
ASKED_INSTEAD: Final = "refused_at"
"""The parameter that says which sizes the kernel refused."""
CONTRADICTION: Final = "it refuses here sizes and dtypes that gate 1 sees it take"


def settled(bench: Bench, case: CaseRecord, finding: Finding) -> Finding:
    """The finding, INCONCLUSIVE where a refusal contradicts gate 1 and would leave it open."""
    at = _refused_at(finding)
    usual = case.dtypes == bench.contract.usual_dtypes()
    if at is None or at != bench.home_dims() or not usual:
        return finding
    return inconclusive(f"{CONTRADICTION} ({finding.detail})")


def asked_instead(bench: Bench, case: CaseRecord, finding: Finding) -> list[CaseRecord]:
    """The same case at the task's own sizes, and at some that its contract names; none where the
    kernel did not refuse."""
    if _refused_at(finding) is None or not case.dims or ASKED_INSTEAD in case.params:
        return []
    most = LISTED_PATHS if PATH in case.params else LISTED
    drawn = listed_dims(bench, Stream(case.seed, "asked instead"), most)
    params = {**case.params, ASKED_INSTEAD: dict(case.dims)}
    params.pop(PATH, None)
    return [
        replace(case, label=f"{case.label} (at other sizes)", dims=dims, params=params)
        for dims in [bench.home_dims(), *drawn]
        if dims != case.dims
    ]


def _refused_at(finding: Finding) -> Mapping[str, int] | None:
    return finding.refused_at if finding.status is GateStatus.NOT_APPLICABLE else None
