"""Defence 1, positive control: seven planted violators, one for each hard family, all caught.

Each passes the loose test and breaks one promise; each has a twin that keeps it, the same but for
the line that matters. A verifier that accuses the twin as well has caught nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from verifier.records import DeviceMode, GateId, GateStatus, Verdict
from verifier.session import Job, Session
from verifier.studies import PlantedRow

PLANTED: Final = Path(__file__).parent / "planted"
SERIAL: Final = "the interpreter runs programs one after the other, so a race cannot show"


@dataclass(frozen=True, slots=True)
class Planted:
    """A violator of ``gate`` on a task, by its file's name; ``not_in_interpreter`` says why only
    a GPU can show the fault, else ''."""

    family: str
    kernel: str
    task: str
    gate: GateId
    not_in_interpreter: str = ""

    def path(self, *, twin: bool) -> Path:
        return PLANTED / "kernels" / f"{self.kernel}{'_twin' if twin else ''}.py"

    @property
    def task_folder(self) -> Path:
        return PLANTED / "tasks" / self.task

    def not_here(self, mode: DeviceMode) -> str:
        return self.not_in_interpreter if mode is DeviceMode.CPU_INTERPRET else ""


VIOLATORS: Final = (
    Planted("a maximum that swallows NaN", "nan_max", "row_max", GateId.NONFINITE),
    Planted("a race of atomics", "atomics_race", "row_sum", GateId.DETERMINISM, SERIAL),
    Planted("a tail load with other=0", "tail_load", "row_softmax", GateId.SHAPES),
    Planted("an fp16 carry", "half_carry", "row_mean", GateId.ACCUMULATION),
    Planted("a mutated input", "mutated_input", "gain", GateId.SIDE_EFFECTS),
    Planted("an unwritten tail", "unwritten_tail", "gain", GateId.MEMORY),
    Planted("a memoised output", "memoised", "row_softmax", GateId.HONEST),
)

_QUIET: Final = frozenset({GateStatus.PASS, GateStatus.NOT_APPLICABLE})


def positive_control(
    session: Session, *, seed: int, tell: Callable[[PlantedRow], None] = lambda row: None
) -> Iterator[PlantedRow]:
    """Judge each violator and its twin by all twelve gates. Raises InfrastructureError."""
    for planted in VIOLATORS:
        row = _row(
            planted,
            _verdict(session, planted, seed, twin=False),
            _verdict(session, planted, seed, twin=True),
            planted.not_here(session.mode),
        )
        tell(row)
        yield row


def _verdict(session: Session, planted: Planted, seed: int, *, twin: bool) -> Verdict:
    job = Job(planted.task_folder, planted.path(twin=twin), seed=seed, timed=False)
    return session.judge(job)


def _row(planted: Planted, violator: Verdict, twin: Verdict, not_here: str) -> PlantedRow:
    result = violator.gates[planted.gate.number - 1]
    return PlantedRow(
        family=planted.family,
        kernel=planted.kernel,
        gate=planted.gate,
        status=result.status,
        reason=result.reason,
        hard=result.hard,
        loose_accepted=violator.loose.accepted if violator.loose else None,
        twin_accused=tuple(
            f"{one.gate}: {one.reason}" for one in twin.gates if one.status not in _QUIET
        ),
        not_here=not_here,
    )
