"""Rows and records that tests start from; each function makes one valid thing, quickly."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from itertools import count
from typing import Any

from kernelhub.core import services
from kernelhub.core.choices import NodeStatus, TaskStatus
from kernelhub.core.models import Campaign, Kernel, Node, Run, Suite, Task
from kernelhub.core.suites import task_digest
from verifier import records

_number = count(1)

CONTRACT: Mapping[str, Any] = {"name": "softmax", "dims": {"n": [64, 1000]}}
REFERENCE = "import torch\n\n\ndef reference(x):\n    return torch.softmax(x, -1)\n"
SOURCE = "import torch\n\n\ndef run(x):\n    return torch.softmax(x, -1)\n"


def make_suite(slug: str = "") -> Suite:
    slug = slug or f"suite{next(_number)}"
    return Suite.objects.create(slug=slug, title=slug.title())


def make_task(suite: Suite | None = None, slug: str = "", **fields: Any) -> Task:
    contract = fields.pop("contract", dict(CONTRACT))
    reference = fields.pop("reference", REFERENCE)
    return Task.objects.create(
        suite=suite or make_suite(),
        slug=slug or f"task{next(_number)}",
        title="Row softmax",
        contract=contract,
        contract_text=json.dumps(contract, sort_keys=True, separators=(",", ":")),
        reference=reference,
        digest=task_digest(contract, reference),
        status=fields.pop("status", TaskStatus.PUBLISHED),
        **fields,
    )


def make_kernel(task: Task | None = None, source: str = "", **fields: Any) -> Kernel:
    return services.kernel_register(
        task=task or make_task(), source=source or f"{SOURCE}# {next(_number)}\n", **fields
    )


def make_campaign(slug: str = "") -> Campaign:
    slug = slug or f"campaign{next(_number)}"
    return Campaign.objects.create(slug=slug, title=slug)


def make_node(name: str = "", queue: str = "cpu-interpret", **fields: Any) -> Node:
    return Node.objects.create(
        name=name or f"node{next(_number)}",
        queue=queue,
        mode=records.DeviceMode.CPU_INTERPRET.value,
        status=fields.pop("status", NodeStatus.ONLINE),
        **fields,
    )


def make_run(kernel: Kernel | None = None, **fields: Any) -> Run:
    """A queued run; ``fields`` as of run_enqueue."""
    kernel = kernel or make_kernel()
    return services.run_enqueue(task=kernel.task, kernel=kernel, **fields)


def make_lease(run: Run | None = None, node: Node | None = None) -> services.Lease:
    """A running run, leased to a node."""
    run = run or make_run()
    lease = services.run_claim(node=node or make_node(), run_id=run.pk)
    assert lease is not None
    return lease


def environment_record(**fields: Any) -> records.Environment:
    values = {
        "mode": records.DeviceMode.CPU_INTERPRET,
        "device_name": "CPU",
        "device_uuid": "cpu-0",
        "python": "3.11",
        "torch": "2.13",
        "triton": "3.7.1",
        "numpy": "2",
        "platform": "linux",
        "sandbox": "bubblewrap",
    }
    return records.Environment(**{**values, **fields})


def counterexample_record() -> records.Counterexample:
    case = records.CaseRecord("n=1", {"n": 1}, {"T": "float32"}, "normal", 7)
    return records.Counterexample(
        case=case,
        detail="off by one",
        calls=(records.CallDigest("aa", "bb"),),
        output="out",
        index=(0,),
        expected="1.0",
        got="2.0",
    )


def gate_record(gate: records.GateId, *, fail: bool = False) -> records.GateResult:
    if not fail:
        status = records.GateStatus.PASS
        return records.GateResult(gate, status, "all cases agree", passed=3, duration_ms=1.5)
    return records.GateResult(
        gate,
        records.GateStatus.FAIL,
        "one case differs",
        reason="differs at index 0",
        hard=True,
        passed=2,
        failed=1,
        counterexample=counterexample_record(),
        duration_ms=1.5,
    )


def verdict_record(
    run: Run,
    *,
    failed: tuple[str, ...] = (),
    loose: bool | None = True,
    measurements: tuple[records.Measurement, ...] = (),
) -> records.Verdict:
    """What a verifier would say of this run: the named gates fail, the others pass."""
    loose_result = (
        records.LooseResult(loose, 5, 1e-2, 1e-2, {"n": 64}, {"T": "float32"})
        if (loose is not None)
        else None
    )
    return records.Verdict(
        task=records.TaskRef(run.task.path, run.task.digest),
        kernel=records.KernelRef(
            run.kernel.sha256,
            run.kernel.entry,
            records.Language(run.kernel.language),
            run.kernel.source,
        ),
        seed=run.seed,
        gates=tuple(gate_record(gate, fail=gate.value in failed) for gate in records.GateId),
        loose=loose_result,
        environment=environment_record(),
        started_at="2026-11-30T00:00:00Z",
        duration_ms=900.0,
        measurements=measurements,
    )


def measurement_record(speedup: float | None = None) -> records.Measurement:
    return records.Measurement("n=64", "kernel", 1.0, 0.9, 1.1, 30, speedup)


def make_finished(run: Run | None = None, node: Node | None = None, **verdict: Any) -> Run:
    """A run with a verdict; ``verdict`` as of verdict_record."""
    lease = make_lease(run, node)
    services.run_finish(
        run_id=lease.run.pk, attempt=lease.attempt, verdict=verdict_record(lease.run, **verdict)
    )
    lease.run.refresh_from_db()
    return lease.run


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
