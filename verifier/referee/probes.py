"""What several gates need to choose their cases: dtypes judged here, tiny sizes, float inputs."""

from __future__ import annotations

from collections.abc import Mapping

from verifier.contract import DomainKind, Input
from verifier.records import GateId
from verifier.referee.bench import Bench
from verifier.referee.inputs import torch_dtype


def judged_dtypes(bench: Bench) -> list[dict[str, str]]:
    """The dtype assignments that this device can judge, the usual one first; all when it can judge
    none, so that the reason is told case by case."""
    every = list(bench.contract.dtype_assignments())
    probe = GateId.AGREEMENT
    judged = [d for d in every if bench.cannot_judge(bench.case(probe, "", dtypes=d)) is None]
    return judged or every


def first_dtypes(bench: Bench) -> dict[str, str]:
    """The usual dtypes, or the first that this device can judge."""
    return judged_dtypes(bench)[0]


def tiny_dims(bench: Bench, elements: int) -> dict[str, int]:
    """Small sizes for a probe that is about something else than size: the greatest dims are cut to
    smaller candidates, or halved, while any tensor holds more than ``elements`` values."""
    dims = bench.small_dims()
    while not bench.contract.behaviour.fixed_shape and bench.elements(dims) > elements:
        smaller = _cut_once(bench, dims)
        if smaller is None:
            break
        dims = smaller
    return dims


def _cut_once(bench: Bench, dims: Mapping[str, int]) -> dict[str, int] | None:
    for name in sorted(dims, key=lambda n: -dims[n]):
        dim = bench.contract.dims[name]
        half = dims[name] // 2 // dim.multiple_of * dim.multiple_of
        sizes = sorted({*dim.candidates, half}, reverse=True)
        for size in (s for s in sizes if 4 <= s < dims[name]):
            trial = {**dims, name: size}
            if bench.contract.allows(trial) and bench.elements(trial) < bench.elements(dims):
                return trial
    return None


def float_inputs(bench: Bench, dtypes: Mapping[str, str]) -> list[Input]:
    """The real-valued floating-point inputs under a dtype assignment."""
    return [
        item
        for item in bench.contract.inputs
        if item.domain.kind is DomainKind.REAL
        and torch_dtype(bench.contract.dtype(item, dtypes)).is_floating_point
    ]
