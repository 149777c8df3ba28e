"""Defence 3, agreement: our literal KernelBench test beside KernelBench's own code.

Both judge the same kernels in one run, with the same inputs from the same seeds. Where they differ,
the difference must be explained by something other than taste.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from verifier.calibrate import Entry, read_index
from verifier.contract import load_task
from verifier.defences.kernelbench import (
    SEED,
    Literal,
    Problem,
    UnfitError,
    literal_test,
    model_new,
    problem,
)
from verifier.defences.upstream import UpstreamJob, UpstreamReply, run_upstream
from verifier.records import DeviceMode, Language
from verifier.session import Session, UsageError, read_kernel
from verifier.source import read_source
from verifier.studies import AgreementRow

NO_GPU: Final = "KernelBench's own check needs a GPU, and there is none here"
BACKENDS: Final = {Language.TRITON: "triton"}
"""Others are 'cuda', for which upstream executes the source as text."""


@dataclass(frozen=True, slots=True)
class Posed:
    """A kernel, and the question that both checks ask about it (None, and why there is none)."""

    entry: Entry
    source: bytes
    question: Problem | None
    unfit: str = ""

    @property
    def id(self) -> str:
        return self.entry.label


def pose(suite: Path, groups: Sequence[str], only: Sequence[str] = ()) -> list[Posed]:
    """The kernels of the groups. Raises UsageError for a group that has no index."""
    entries = [entry for group in groups for entry in read_index(suite, group)]
    chosen = [one for one in entries if not only or any(text in one.label for text in only)]
    if not chosen:
        raise UsageError("no such kernel in these corpora")
    return [_posed(suite, entry) for entry in chosen]


def _posed(suite: Path, entry: Entry) -> Posed:
    source = read_kernel(entry.kernel)
    try:
        return Posed(entry, source, problem(load_task(suite / "tasks" / entry.task)))
    except UnfitError as error:
        return Posed(entry, source, None, str(error))


def ours(
    session: Session,
    posed: Iterable[Posed],
    *,
    trials: int,
    tell: Callable[[str, Literal], None] = lambda name, found: None,
) -> dict[str, Literal]:
    """The literal test on each kernel that can be asked, in the sandbox."""
    found: dict[str, Literal] = {}
    for one in posed:
        if one.question is None:
            continue
        candidate = session.sandbox.load(source=one.source, entry="run", convention="function")
        try:
            found[one.id] = literal_test(one.question, candidate, session.device, trials=trials)
        finally:
            candidate.close()
        tell(one.id, found[one.id])
    return found


def theirs(
    session: Session, checkout: Path, posed: Iterable[Posed], *, trials: int, side_by_side: int
) -> dict[str, UpstreamReply]:
    """KernelBench's own word on each; nothing without a GPU."""
    if session.mode is not DeviceMode.CUDA:
        return {}
    jobs = [
        UpstreamJob(
            one.id,
            one.question.source,
            model_new(one.source.decode(), "run"),
            one.question.precision,
            BACKENDS.get(read_source(one.source).language, "cuda"),
            trials,
            SEED,
        )
        for one in posed
        if one.question is not None
    ]
    return {reply.id: reply for reply in run_upstream(checkout, jobs, side_by_side=side_by_side)}


def rows(
    posed: Iterable[Posed],
    mine: dict[str, Literal],
    real: dict[str, UpstreamReply],
    explanations: dict[str, str] | None = None,
    *,
    missing: str = "",
) -> tuple[AgreementRow, ...]:
    """Both words on each kernel; ``missing`` says why the other side said nothing at all."""
    return tuple(
        _row(one, mine, real, (explanations or {}).get(one.id, ""), missing) for one in posed
    )


def _row(
    one: Posed,
    mine: dict[str, Literal],
    real: dict[str, UpstreamReply],
    explanation: str,
    missing: str,
) -> AgreementRow:
    own, reply = mine.get(one.id), real.get(one.id)
    return AgreementRow(
        kernel=one.id,
        task=one.entry.task,
        ours=own.accepted if own else None,
        theirs=reply.accepted if reply else None,
        ours_detail=own.detail if own else one.unfit,
        theirs_detail=reply.detail if reply else (one.unfit or missing or "no reply"),
        explanation=explanation,
    )
