"""One fault, said once: a kernel of the wrong shape fails many gates for the same reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from kernelhub.web.catalogue import BY_ID, GatePage
from kernelhub.web.present import GateLike
from kernelhub.web.text import one_line
from verifier.records import GateId, GateStatus

# Each gate draws its own sizes, so '[1], not [1, 1, 1]' and '[16], not [1, 1, 16]' say the same;
# their ranks differ from nothing else than the kernel. Other figures are findings and stay.
_SHAPE: Final = re.compile(r"\[\d+(?:, \d+)*\]")
SHORTEST: Final = 12
"""A text shorter than this is contained in too many others by chance."""
CAUSES: Final = frozenset({GateStatus.FAIL.value, GateStatus.ERROR.value})


def fault_of(text: str) -> str:
    """The text without the sizes that differ from case to case."""
    return _SHAPE.sub(lambda found: re.sub(r"\d+", "n", found[0]), one_line(text, 1000))


def repeated(findings: Iterable[GateLike]) -> Mapping[str, GatePage]:
    """For each gate whose reason repeats that of an earlier failure: the gate that said it first.

    A reason may say more around it, such as which other gate judges it.
    """
    first: dict[str, GatePage] = {}
    found: dict[str, GatePage] = {}
    for finding in sorted(findings, key=lambda one: GateId(one.gate).number):
        text = fault_of(finding.reason)
        earlier = next((page for said, page in first.items() if said in text), None)
        if earlier is not None:
            found[finding.gate] = earlier
        elif finding.status in CAUSES and len(text) >= SHORTEST:
            first[text] = BY_ID[GateId(finding.gate)]
    return found
