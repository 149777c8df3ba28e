"""What the pages say about each gate, and how each state looks: a word, a glyph, a colour class.

The verifier's own list (`python -m verifier gates`) loads torch, so the web keeps this copy of
the words; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from verifier.records import DeepStatus, GateId, GateStatus, Outcome


@dataclass(frozen=True, slots=True)
class GatePage:
    """A gate as people meet it: `short` fits a strip cell, `asks` is the question it answers.

    ``exact``: most of the gate has no tolerance in it. Whether a tolerance had a part in one
    failure is that finding's own ``hard``.
    """

    id: GateId
    short: str
    name: str
    asks: str
    exact: bool
    exact_note: str = ""

    @property
    def number(self) -> int:
        return self.id.number

    @property
    def anchor(self) -> str:
        return f"gate-{self.number}"


GATES: Final = (
    GatePage(
        GateId.AGREEMENT,
        "Agreement",
        "Baseline agreement",
        "Does it agree with a float64 reference, on seeds and distributions it has never seen?",
        exact=False,
    ),
    GatePage(
        GateId.NONFINITE,
        "Non-finite",
        "Non-finite propagation",
        "Do NaN and the infinities come out exactly where the reference puts them?",
        exact=True,
    ),
    GatePage(
        GateId.DETERMINISM,
        "Determinism",
        "Run-to-run determinism",
        "Does the same input give the same bits, run after run?",
        exact=True,
    ),
    GatePage(
        GateId.SHAPES,
        "Shapes",
        "Shape generalisation",
        "Is every shape of the contract right, or refused out loud?",
        exact=False,
        exact_note="a crash or a hang is judged without a tolerance",
    ),
    GatePage(
        GateId.DTYPES,
        "Dtypes",
        "Dtype contract",
        "Does each declared dtype work, with no silent downgrade on the way?",
        exact=True,
        exact_note="the low-bit probe is exact",
    ),
    GatePage(
        GateId.ACCUMULATION,
        "Accumulation",
        "Accumulation precision",
        "Are sums accumulated in at least float32?",
        exact=True,
        exact_note="the cancellation probe is exact; softmax and sums of squares are compared",
    ),
    GatePage(
        GateId.LAYOUT,
        "Layout",
        "Layout",
        "Do the same values give the same result from transposed, sliced or expanded memory?",
        exact=True,
    ),
    GatePage(
        GateId.SIDE_EFFECTS,
        "Side effects",
        "Side effects",
        "Does anything change besides the declared outputs, and do these alias nothing?",
        exact=True,
    ),
    GatePage(
        GateId.MEMORY,
        "Memory",
        "Memory hygiene",
        "Does it write all of its output and nothing else, and read only its inputs?",
        exact=True,
    ),
    GatePage(
        GateId.RANGE,
        "Range",
        "Extreme range",
        "Does it stay finite, with the right signs, at the ends of the number range?",
        exact=False,
        exact_note="finiteness and the sign of zero are exact",
    ),
    GatePage(
        GateId.METAMORPHIC,
        "Metamorphic",
        "Metamorphic",
        "Do exact relations hold: permuted rows, powers of two, shifts, causality?",
        exact=True,
        exact_note="powers of two and permutations are exact",
    ),
    GatePage(
        GateId.HONEST,
        "Honest",
        "Honest execution",
        "Did the submitted kernel itself do the work, now, on this data?",
        exact=True,
    ),
)
BY_ID: Final = {page.id: page for page in GATES}


@dataclass(frozen=True, slots=True)
class Look:
    """How one state is shown. Word and glyph carry the meaning, the colour only helps."""

    css: str
    glyph: str
    word: str


DASH: Final = "\N{EN DASH}"
LOOKS: Final = {
    GateStatus.PASS: Look("pass", "✓", "pass"),
    GateStatus.FAIL: Look("fail", "✕", "fail"),
    GateStatus.NOT_APPLICABLE: Look("na", DASH, "not applicable"),
    GateStatus.INCONCLUSIVE: Look("maybe", "?", "inconclusive"),
    GateStatus.ERROR: Look("error", "!", "error"),
}
WAITING: Final = Look("wait", "·", "not judged yet")
RUNNING: Final = Look("run", "…", "being judged")


def status_word(status: str) -> str:
    """A gate's status as people read it; a status of a later version as it stands."""
    return LOOKS[GateStatus(status)].word if status in set(GateStatus) else status


OUTCOME_LOOKS: Final = {
    Outcome.ACCEPTED: Look("pass", "✓", "accepted"),
    Outcome.REJECTED: Look("fail", "✕", "rejected"),
    Outcome.UNDECIDED: Look("maybe", "?", "undecided"),
}
DEEP_LOOKS: Final = {
    DeepStatus.CLEAN: Look("pass", "✓", "clean"),
    DeepStatus.FINDINGS: Look("fail", "✕", "findings"),
    DeepStatus.NOT_AVAILABLE: Look("na", DASH, "not available"),
    DeepStatus.UNDECIDED: Look("maybe", "?", "undecided"),
}
STATUS_LOOKS: Final = {
    "queued": Look("wait", "·", "queued"),
    "running": Look("run", "…", "running"),
    "errored": Look("error", "!", "errored"),
    "cancelled": Look("na", DASH, "cancelled"),
    "finished": Look("na", DASH, "finished"),
}
EXPECTATIONS: Final = {"control": "correct", "bug": "wrong", "illusion": "an illusion"}
"""What a corpus says of its own kernel, in words."""


def run_look(status: str, outcome: str | None) -> Look:
    """A judged run shows its outcome, any other one where it stands in its life."""
    if outcome:
        return OUTCOME_LOOKS[Outcome(outcome)]
    return STATUS_LOOKS.get(status, WAITING)
