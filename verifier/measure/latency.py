"""How long an accepted kernel takes, beside eager, on the machine that judged it.

Kernel and eager take turns call by call on fresh inputs. On a GPU the times are device events,
checked against the referee's own clock; in the interpreter they are wall times, which say how long
this machine took and nothing about a device, so no speedup is made of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from verifier.contract import Workload
from verifier.measure.statistics import median_interval
from verifier.records import CaseRecord, DeviceMode, Measurement
from verifier.referee.bench import Bench
from verifier.referee.generator import derive_seed
from verifier.subject import CallOptions, Placement, Reply, Subject

CALLS: Final[Mapping[DeviceMode, int]] = {DeviceMode.CPU_INTERPRET: 7, DeviceMode.CUDA: 50}
WARM_UP: Final = 3
INTERPRETER_NOTE: Final = "wall time in the interpreter; says nothing about a device"


def workloads(bench: Bench) -> tuple[Workload, ...]:
    """What to time: the contract's workloads on a GPU, one small assignment in the interpreter."""
    usual = Workload("usual", bench.contract.usual_dims(), bench.contract.usual_dtypes())
    if bench.mode is DeviceMode.CPU_INTERPRET:
        return (replace(usual, dims=bench.small_dims()),)
    return bench.contract.workloads or (usual,)


def _latency_s(reply: Reply) -> float:
    """The device's own time where there is one and the referee's clock allows it, else wall time.

    A kernel cannot have run longer on the device than the whole call took by the referee's clock.
    """
    if reply.latency_s is not None and 0 < reply.latency_s <= reply.wall_s:
        return reply.latency_s
    return reply.wall_s


def _samples(bench: Bench, workload: Workload, subjects: Sequence[Subject]) -> list[list[float]]:
    """Latencies in ms per subject, taking turns; fresh inputs at fresh addresses in every call."""
    samples: list[list[float]] = [[] for _ in subjects]
    dtypes = {**bench.contract.usual_dtypes(), **workload.dtypes}
    for number in range(WARM_UP + CALLS[bench.mode]):
        seed = derive_seed(bench.seed, "time", workload.name, number)
        args = bench.args(CaseRecord("time", workload.dims, dtypes, "normal", seed))
        for taken, subject in zip(samples, subjects, strict=True):
            reply = subject.call(args, CallOptions(placement=Placement.FRESH))
            if reply.returned and number >= WARM_UP:
                taken.append(_latency_s(reply) * 1e3)
    return samples


def measure(bench: Bench, kernel: Subject) -> tuple[Measurement, ...]:
    """Time the kernel and eager on each workload. Call it for accepted kernels only."""
    rows: list[Measurement] = []
    for workload in workloads(bench):
        eager = bench.new_eager()
        by_kernel, by_eager = _samples(bench, workload, (kernel, eager))
        if by_kernel and by_eager:
            rows += _rows(bench, workload, by_kernel, by_eager)
    return tuple(rows)


def _rows(
    bench: Bench, workload: Workload, by_kernel: Sequence[float], by_eager: Sequence[float]
) -> list[Measurement]:
    real = bench.mode is DeviceMode.CUDA
    note = "" if real else INTERPRETER_NOTE
    rows = []
    for subject, samples in (("kernel", by_kernel), ("eager", by_eager)):
        interval = median_interval(samples, seed=bench.seed)
        row = Measurement(
            workload.name,
            subject,
            latency_ms=interval.median,
            low_ms=interval.low,
            high_ms=interval.high,
            n=interval.n,
            note=note,
        )
        rows.append(row)
    if real:
        rows[0] = replace(rows[0], speedup=rows[1].latency_ms / rows[0].latency_ms)
    return rows
