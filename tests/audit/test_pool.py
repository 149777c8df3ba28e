"""The pool: a dying verifier costs one attempt at one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.audit.rows import kernel, verdict
from verifier.audit import pool
from verifier.audit.corpus import Corpus, CorpusTask
from verifier.audit.pool import Plan, Pool, PoolError
from verifier.audit.results import Row
from verifier.audit.worker import Refused, WorkerError
from verifier.records import Verdict

DEADLY, DEADLY_ONCE, REFUSED = "deadly", "deadly once", "refused"


class FakeWorker:
    """Judges at once; some kernels kill it."""

    started = 0
    met: list[str]

    def __init__(self, number: int, device: str, options: Any) -> None:
        type(self).started += 1
        self.judged = 0

    def judge(self, name: str, job: Mapping[str, Any], limit_s: float) -> Verdict:
        self.met.append(name)
        if name == DEADLY or (name == DEADLY_ONCE and self.met.count(name) == 1):
            raise WorkerError("it died")
        if name == REFUSED:
            raise Refused("task", "the reference raises")
        self.judged += 1
        return verdict()

    def rss_mib(self) -> int:
        return 7

    def end(self) -> None:
        return


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeWorker]:
    FakeWorker.started, FakeWorker.met = 0, []
    monkeypatch.setattr(pool, "Worker", FakeWorker)
    return FakeWorker


def judged(*keys: str, **plan: Any) -> dict[str, Row]:
    kernels = tuple(kernel(key) for key in keys)
    task = CorpusTask("relu", '{"slug": "relu"}', "")
    rows: list[Row] = []
    Pool(Corpus({"relu": task}, kernels), Plan(seed=1, **plan), rows.append).run(kernels)
    return {row.key: row for row in rows}


def test_a_kernel_whose_worker_died_is_tried_once_more() -> None:
    row = judged(DEADLY_ONCE)[DEADLY_ONCE]
    assert (row.attempt, row.error_kind) == (2, "")


def test_a_second_death_is_an_error_of_ours_with_its_reason() -> None:
    row = judged(DEADLY)[DEADLY]
    assert (row.attempt, row.error_kind, row.error) == (2, "infrastructure", "it died")


def test_a_death_touches_no_other_kernel() -> None:
    rows = judged("a", DEADLY, "z", workers=2)
    assert all(rows[key].verdict is not None for key in ("a", "z"))


def test_a_task_that_cannot_be_used_is_not_tried_again() -> None:
    row = judged(REFUSED)[REFUSED]
    assert (row.attempt, row.error_kind) == (1, "task")


def test_a_worker_is_replaced_after_so_many_kernels(fake: type[FakeWorker]) -> None:
    judged("a", "b", "c", recycle=1)
    assert fake.started == 3


def test_kernels_of_one_task_share_a_seed() -> None:
    assert len({row.seed for row in judged("a", "b").values()}) == 1


def test_nothing_is_begun_after_the_time_is_up() -> None:
    assert judged("a", "b", stop_after_s=-1.0) == {}


def test_no_worker_at_all_ends_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int, device: str, options: Any) -> FakeWorker:
        raise WorkerError("no device")

    monkeypatch.setattr(pool, "Worker", refuse)
    with pytest.raises(PoolError, match="no device"):
        judged("a")
