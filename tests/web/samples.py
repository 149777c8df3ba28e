"""A small hub full of sample runs, made through core's own services.

The verdicts here are made up, shaped as the verifier writes them: they exercise pages, and say
nothing about any kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kernelhub.core import events, services
from kernelhub.core.choices import ErrorKind
from kernelhub.core.models import Campaign, Kernel, Node, Run, Task
from kernelhub.core.suites import TaskSource, WorkloadSource
from verifier import records
from verifier.records import GateId, GateStatus

SOFTMAX: Final = '''"""Row softmax that forgets to subtract the row's maximum."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + column, mask=column < n, other=-float("inf"))
    powers = tl.exp(values)  # overflows above 88.7
    tl.store(out + row * stride + column, powers / tl.sum(powers, 0), mask=column < n)


def run(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    rows, n = x.shape
    softmax_kernel[(rows,)](x, out, x.stride(0), n, BLOCK=triton.next_power_of_2(n))
    return out
'''
REFERENCE: Final = """import torch


def reference(x):
    return torch.softmax(x, dim=-1)
"""
OPS: Final = ("softmax", "layer_norm", "gelu", "matmul", "attention")
REASONS: Final = {
    GateId.AGREEMENT: "error 41 times that of eager at M=8, N=1000",
    GateId.NONFINITE: "the NaN map differs from the reference in 1 of 4096 values",
    GateId.SHAPES: "wrong values at M=2, N=1025: the last column is never written",
    GateId.MEMORY: "the result depends on what the output buffer held before",
    GateId.RANGE: "rows with a logit above 88.7 give NaN where the answer is finite",
    GateId.ACCUMULATION: "the cancellation probe gives 0 where the exact sum is 64",
}
INTERPRETED: Final = "the interpreter serialises the program, so a race cannot show itself"


@dataclass(frozen=True)
class SampleSuite:
    """A suite definition for tests; its tasks have the shape of the real ones."""

    slug: str = "fuzzoracle"
    title: str = "Fuzz oracle"
    description: str = "Correct kernels and kernels with one planted error each."
    order: int = 0

    def tasks(self) -> Iterable[TaskSource]:
        return [sample_task(op) for op in OPS]

    def corpus(self) -> Iterable[Any]:
        return []


def sample_task(op: str) -> TaskSource:
    contract = {
        "name": op,
        "summary": f"{op.replace('_', ' ')} over the last axis of a matrix",
        "dims": {"M": [1, 2, 8], "N": [1, 3, 256, 1025]},
        "dtypes": {"T": ["float32", "float16"]},
        "inputs": [{"name": "x", "shape": ["M", "N"], "dtype": "T", "domain": "normal"}],
        "outputs": [{"name": "out", "shape": ["M", "N"], "dtype": "T"}],
    }
    title = op.replace("_", " ").capitalize()
    workloads = (WorkloadSource("usual", {"M": 8, "N": 256}, {"T": "float32"}),)
    return TaskSource(op, title, "row-wise", ("triton",), contract, REFERENCE, workloads)


def environment() -> records.Environment:
    return records.Environment(
        mode=records.DeviceMode.CPU_INTERPRET,
        device_name="x86-64, 2 cores",
        device_uuid="cpu-sample",
        python="3.11.2",
        torch="2.13.0+cpu",
        triton="3.7.1",
        numpy="2.4.0",
        platform="Linux-6.1-x86_64",
        sandbox="bubblewrap",
    )


def counterexample(gate: GateId, seed: int) -> records.Counterexample:
    return records.Counterexample(
        case=records.CaseRecord(
            label="spike above the exp limit",
            dims={"M": 1, "N": 2},
            dtypes={"T": "float32"},
            fill="logits+88.8",
            seed=seed,
            params={"layout": "contiguous"},
        ),
        detail=REASONS.get(gate, "the result is wrong"),
        calls=(records.CallDigest("a" * 64, "b" * 64),),
        output="out",
        index=(0, 0),
        expected="0.731058579",
        got="nan",
        slices=(
            records.TensorSlice("x", (1, 2), "float32", (0, 0), ("89.0", "88.0")),
            records.TensorSlice(
                "expected", (1, 2), "float64", (0, 0), ("0.731058579", "0.268941421")
            ),
            records.TensorSlice("got", (1, 2), "float32", (0, 0), ("nan", "0.0")),
        ),
        minimised_from={"M": 64, "N": 1000},
    )


def gate_result(
    gate: GateId, status: GateStatus, *, seed: int = 7, hard: bool = False
) -> records.GateResult:
    """One gate's finding; counts and words follow the status."""
    failed = 3 if status is GateStatus.FAIL else 0
    reasons = {
        GateStatus.PASS: "",
        GateStatus.FAIL: REASONS.get(gate, "the result is wrong"),
        GateStatus.NOT_APPLICABLE: "the task has no contraction",
        GateStatus.INCONCLUSIVE: INTERPRETED,
        GateStatus.ERROR: "the case broke our own machinery",
    }
    judged = status in (GateStatus.PASS, GateStatus.FAIL)
    return records.GateResult(
        gate=gate,
        status=status,
        summary=f"{9 - failed} of 9 cases agree" if judged else reasons[status],
        reason=reasons[status],
        hard=hard,
        passed=9 - failed if judged else 0,
        failed=failed,
        counterexample=counterexample(gate, seed) if status is GateStatus.FAIL else None,
        duration_ms=110.0 + 7 * gate.number,
    )


def gate_results(
    fail: Sequence[GateId] = (), *, hard: Sequence[GateId] = (), maybe: Sequence[GateId] = ()
) -> tuple[records.GateResult, ...]:
    """Twelve findings: the named ones fail or stay open, accumulation does not apply."""
    return tuple(
        gate_result(gate, _status(gate, fail, maybe), hard=gate in hard and gate in fail)
        for gate in GateId
    )


def _status(gate: GateId, fail: Sequence[GateId], maybe: Sequence[GateId]) -> GateStatus:
    if gate in fail:
        return GateStatus.FAIL
    if gate in maybe:
        return GateStatus.INCONCLUSIVE
    return GateStatus.NOT_APPLICABLE if gate is GateId.ACCUMULATION else GateStatus.PASS


def verdict_of(
    run: Run,
    gates: tuple[records.GateResult, ...],
    *,
    loose: bool | None = True,
    timed: bool = False,
    deep: tuple[records.DeepResult, ...] = (),
) -> records.Verdict:
    """A verdict about this very run."""
    verdict = records.Verdict(
        task=records.TaskRef(run.task.path, run.task.digest),
        kernel=records.KernelRef(
            run.kernel.sha256, run.kernel.entry, records.Language.TRITON, run.kernel.source
        ),
        seed=run.seed,
        gates=gates,
        loose=loose_result(loose),
        environment=environment(),
        started_at="2026-11-30T04:00:00+00:00",
        duration_ms=1874.0,
        deep=deep,
    )
    return replace(verdict, measurements=measurements(verdict.correct)) if timed else verdict


def loose_result(accepted: bool | None) -> records.LooseResult | None:
    if accepted is None:
        return None
    dims, dtypes = {"M": 32, "N": 96}, {"T": "float32"}
    return records.LooseResult(accepted, 5, 1e-2, 1e-2, dims, dtypes)


def measurements(ranked: bool) -> tuple[records.Measurement, ...]:
    speedup = 1.66 if ranked else None
    return (
        records.Measurement("8192 x 4096", "kernel", 0.0662, 0.0651, 0.0673, 300, speedup),
        records.Measurement(
            "8192 x 4096", "compile", 0.0713, 0.0707, 0.0722, 300, 1.5 if ranked else None
        ),
        records.Measurement(
            "8192 x 4096", "eager", 0.1102, 0.1093, 0.1109, 300, 1.0 if ranked else None
        ),
    )


def node_online(name: str = "node-a", queue: str = "cpu-interpret") -> Node:
    node, _ = Node.objects.get_or_create(name=name)
    return services.node_register(node=node, queue=queue, environment=environment())


def suite_load() -> list[Task]:
    services.suite_sync(SampleSuite())
    return list(Task.objects.filter(is_current=True).select_related("suite").order_by("slug"))


def kernel_of(task: Task, label: str, *, source: str = SOFTMAX, **fields: Any) -> Kernel:
    """A kernel whose source says its own label, so that no two of them are one content."""
    return services.kernel_register(
        task=task, source=f"{source}\n# {label}\n", label=label, author_kind="control", **fields
    )


def run_lease(run: Run, node: Node) -> Run:
    lease = services.run_claim(node=node, run_id=run.pk)
    assert lease is not None
    return lease.run


def run_post(run: Run, *happened: events.Progress) -> None:
    """What a node posts about the run that it holds."""
    run.refresh_from_db()
    services.run_event_append(
        run_id=run.pk, attempt=run.attempt, first=run.received, happened=happened
    )


def run_judge(run: Run, node: Node, gates: tuple[records.GateResult, ...], **verdict: Any) -> Run:
    """The whole life of a run: leased, started, twelve gates, verdict."""
    leased = run_lease(run, node)
    loose = loose_result(verdict.get("loose", True))
    run_post(
        leased,
        events.Started({"name": leased.task.path}, {"sha256": leased.kernel.sha256}, None),
        events.Log("verifier", "forkserver warm, sandbox bubblewrap"),
        *([events.Loose(loose)] if loose else []),
        *[event for gate in gates for event in (events.GateStarted(gate.gate), events.Gate(gate))],
    )
    services.run_finish(
        run_id=run.pk, attempt=leased.attempt, verdict=verdict_of(leased, gates, **verdict)
    )
    return Run.objects.get(pk=run.pk)


FAULTS: Final[dict[str, Sequence[GateId]]] = {
    "no_max": (GateId.NONFINITE, GateId.RANGE),
    "tail": (GateId.SHAPES, GateId.MEMORY),
    "fp16_sum": (GateId.ACCUMULATION,),
}


def world_seed() -> Campaign:
    """Five tasks; for each a control and three faulty kernels, most of them illusions."""
    node = node_online()
    kernels = [kernel for task in suite_load() for kernel in _kernels(task)]
    campaign, runs = services.campaign_launch(
        slug="demo", title="Fuzz oracle corpus", kernels=kernels
    )
    for number, run in enumerate(runs):
        _judge_sample(run, node, number)
    return campaign


def _kernels(task: Task) -> list[Kernel]:
    control = kernel_of(task, f"{task.slug}_triton", expectation="control", group="replica")
    wrong = [
        kernel_of(task, f"{task.slug}_{fault}", expectation="illusion", group="illusions")
        for fault in FAULTS
    ]
    return [control, *wrong]


def _judge_sample(run: Run, node: Node, number: int) -> None:
    fault = next((name for name in FAULTS if run.kernel.label.endswith(name)), "")
    if number == 17:
        return  # one stays queued
    if number == 18:
        services.run_cancel(run=run, by="curator")
    elif number == 13:
        _error_sample(run, node)
    else:
        maybe = (GateId.HONEST,) if number == 8 else ()
        hard = (GateId.NONFINITE, GateId.MEMORY)
        gates = gate_results(FAULTS.get(fault, ()), hard=hard, maybe=maybe)
        run_judge(run, node, gates, loose=fault != "fp16_sum", timed=number in (0, 1))


def _error_sample(run: Run, node: Node) -> None:
    for _ in range(run.max_attempts):
        leased = run_lease(run, node)
        services.run_error(
            run_id=run.pk,
            attempt=leased.attempt,
            kind=ErrorKind.INFRASTRUCTURE,
            message="the verifier process died with signal 9",
        )
