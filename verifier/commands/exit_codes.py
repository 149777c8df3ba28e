"""What the process says to a shell."""

from __future__ import annotations

from enum import IntEnum

from verifier.records import GateStatus, Outcome, Verdict


class ExitCode(IntEnum):
    """0 every gate passed or does not apply, 1 violations or open questions, 2 bad usage or bad
    task, 3 our machinery broke."""

    CLEAN = 0
    VIOLATIONS = 1
    USAGE = 2
    INFRASTRUCTURE = 3


def exit_code(verdict: Verdict) -> ExitCode:
    """The exit code of a verdict. A gate that broke outranks all but a proven violation."""
    statuses = {result.status for result in verdict.gates}
    if verdict.outcome is Outcome.REJECTED:
        return ExitCode.VIOLATIONS
    if GateStatus.ERROR in statuses:
        return ExitCode.INFRASTRUCTURE
    if GateStatus.INCONCLUSIVE in statuses:
        return ExitCode.VIOLATIONS
    return ExitCode.CLEAN
