"""Inputs as a pure function of a contract and a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from verifier.contract import Contract, Domain, DomainKind, Input, Structure
from verifier.expressions import evaluate
from verifier.records import CaseRecord
from verifier.referee.generator import FILLS, Floats, Stream
from verifier.subject import Arg


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype of a contract's dtype name."""
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)  # noqa: S101 - contract.py admits dtype names only
    return dtype


def _bound(value: float | str | None, dims: Mapping[str, int]) -> float | None:
    return evaluate(value, dims) if isinstance(value, str) else value


def _confine(values: Floats, low: float | None, high: float | None) -> Floats:
    """Bring free values into a bounded domain without piling them up at its ends."""
    if low is not None and high is not None:
        folded = np.abs(values) % 2.0
        return low + (high - low) * np.where(folded > 1.0, 2.0 - folded, folded)
    if low is not None:
        return low + np.abs(values)
    if high is not None:
        return high - np.abs(values)
    return values


def _indices(stream: Stream, fill: str, low: int, high: int, count: int) -> NDArray[np.int64]:
    if fill == "heavy":
        return stream.zipf(low, high, count)
    if fill in {"ones", "zeros"}:
        return np.full(count, min(low + (fill == "ones"), high - 1), dtype=np.int64)
    return stream.integers(low, high, count)


def _offsets(stream: Stream, high: int, count: int) -> NDArray[np.int64]:
    """Ascending from 0 to ``high``; neighbours collide now and then (an empty sequence)."""
    inner = np.sort(stream.integers(0, high + 1, max(count - 2, 0)))
    return np.concatenate([[0], inner, [high]])[:count].astype(np.int64)


def _values(domain: Domain, dims: Mapping[str, int], fill: str, stream: Stream, count: int) -> Any:
    low, high = _bound(domain.low, dims), _bound(domain.high, dims)
    match domain.kind:
        case DomainKind.INDEX:
            return _indices(
                stream, fill, int(low or 0), int(high if high is not None else 2), count
            )
        case DomainKind.BOOL:
            return stream.words(count) >> np.uint64(63)
        case DomainKind.OFFSETS:
            return _offsets(stream, int(high or 0), count)
        case DomainKind.REAL:
            return _confine(FILLS[fill](stream, count), low, high)


def make_tensor(
    item: Input,
    shape: Sequence[int],
    dtype: str,
    dims: Mapping[str, int],
    fill: str,
    stream: Stream,
) -> torch.Tensor:
    """One contiguous CPU tensor of this shape, filled by name within the input's domain."""
    count = int(np.prod(shape, dtype=np.int64))
    target = torch_dtype(dtype)
    if count == 0:
        return torch.zeros(tuple(shape), dtype=target)
    parts = 2 if target.is_complex else 1
    values = _values(item.domain, dims, fill, stream, count * parts)
    tensor = torch.from_numpy(np.ascontiguousarray(values).astype(_carrier(target)))
    if target.is_complex:
        tensor = torch.view_as_complex(tensor.reshape(count, 2))
    whole = tensor.reshape(tuple(shape))
    if item.domain.structure is not None:
        whole = STRUCTURES[item.domain.structure](whole)
    return whole.to(target)


STRUCTURES: Final[Mapping[Structure, Callable[[torch.Tensor], torch.Tensor]]] = {
    Structure.SIGNS: lambda values: 1.0 - 2.0 * (values < 0),
    Structure.SIMPLEX: lambda values: (values.abs() + 1.0) / (values.abs() + 1.0).sum(-1, True),
    Structure.SYMMETRIC: lambda values: (values + values.mT) / 2,
    Structure.LOWER_TRIANGULAR: torch.tril,
    Structure.UPPER_TRIANGULAR: torch.triu,
}
"""Free values in float64 brought into a pattern."""


def _carrier(dtype: torch.dtype) -> Any:
    return np.float64 if dtype.is_floating_point or dtype.is_complex else np.int64


def make_args(contract: Contract, case: CaseRecord) -> list[Arg]:
    """The arguments of a case, in call order: the same bytes on every machine."""
    tensors: dict[str, Arg] = {scalar.name: scalar.value for scalar in contract.scalars}
    for item in contract.inputs:
        stream = Stream(case.seed, "input", item.name)
        shape = contract.shape(item, case.dims)
        dtype = contract.dtype(item, case.dtypes)
        tensors[item.name] = make_tensor(item, shape, dtype, case.dims, case.fill, stream)
    return [tensors[name] for name in contract.call_order]
