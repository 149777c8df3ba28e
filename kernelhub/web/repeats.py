"""One fault, said once: a kernel of the wrong shape fails many gates for the same reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelhub.web.catalogue import BY_ID, GatePage
from kernelhub.web.present import GateLike
from kernelhub.web.text import strip_control
from verifier.records import GateId
from verifier.wording import Faults


def repeated(findings: Iterable[GateLike]) -> Mapping[str, GatePage]:
    """For each gate that repeats the reason of an earlier failure: the gate that said it first."""
    faults = Faults()
    ordered = sorted(findings, key=lambda one: GateId(one.gate).number)
    found = {
        one.gate: faults.earlier(one.gate, one.status, strip_control(one.reason)) for one in ordered
    }
    return {gate: BY_ID[first] for gate, first in found.items() if first is not None}
