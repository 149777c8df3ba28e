"""Rows and kernels that tests of the audit start from."""

from __future__ import annotations

from collections.abc import Mapping

from verifier.audit.corpus import Content, CorpusKernel
from verifier.audit.results import Row, row_of
from verifier.records import (
    CaseRecord,
    Counterexample,
    DeviceMode,
    Environment,
    GateId,
    GateResult,
    GateStatus,
    KernelRef,
    Language,
    LooseResult,
    TaskRef,
    Verdict,
)

ENVIRONMENT = Environment(
    DeviceMode.CPU_INTERPRET, "a CPU", "", "3.11", "2.13", "3.7", "2.0", "Linux", "none"
)
CASE = CaseRecord("one", {}, {}, "normal", 1)


def kernel(key: str, **fields: object) -> CorpusKernel:
    plain: dict[str, object] = {
        "key": key, "corpus": "sample", "author": "model", "task": "relu",
        "category": "elementwise",
        "content": Content.TRITON, "origin": "file:1", "sha256": "0" * 64, "source": "x = 1\n",
    }  # fmt: skip
    return CorpusKernel(**{**plain, **fields})  # type: ignore[arg-type]


def gate(gate_id: GateId, status: GateStatus, *, hard: bool = False) -> GateResult:
    fails = status is GateStatus.FAIL
    return GateResult(
        gate_id,
        status,
        "words",
        reason="" if status is GateStatus.PASS else "some reason",
        hard=hard,
        passed=int(status is GateStatus.PASS),
        failed=int(fails),
        counterexample=Counterexample(CASE, "wrong", ()) if fails else None,
    )


def verdict(
    statuses: Mapping[GateId, GateStatus] | None = None,
    *,
    hard: bool = False,
    loose: bool | None = True,
    detail: str = "",
) -> Verdict:
    """A verdict in which every gate passes but for those that are named."""
    found = {one: (statuses or {}).get(one, GateStatus.PASS) for one in GateId}
    gates = tuple(
        gate(one, status, hard=hard and status is GateStatus.FAIL) for one, status in found.items()
    )
    tested = None if loose is None else LooseResult(loose, 5, 1e-2, 1e-2, {}, {}, detail)
    reference = KernelRef("0" * 64, "run", Language.TRITON, "")
    return Verdict(
        TaskRef("relu", "1" * 64), reference, 1, gates, tested, ENVIRONMENT, "2026-01-01", 5.0
    )


def row(key: str, found: Verdict | None = None, **fields: object) -> Row:
    kinds = {k: fields.pop(k) for k in ("content", "category", "author") if k in fields}
    given: dict[str, object] = {"seed": 1, "attempt": 1, "seconds": 1.0, "verdict": found, **fields}
    return row_of(kernel(key, **kinds), **given)
