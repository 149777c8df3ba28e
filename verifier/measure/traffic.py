"""What a workload must read, write and multiply at least, from its contract and its reference.

Not every input must be read whole: a gather touches some rows of its table, a triangle half of a
matrix. So each input is probed, one element at a time: does the reference's output depend on it?
Only that share of the input's bytes counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final

import torch

from verifier.contract import Contract, Input, Output, ReductionKind
from verifier.measure.roofline import Work
from verifier.referee.eager import as_tuple
from verifier.referee.generator import Stream
from verifier.referee.inputs import torch_dtype
from verifier.subject import Arg

Reference = Callable[..., Any]

PROBES: Final = 24


def work_of(
    contract: Contract,
    reference: Reference,
    args: Sequence[Arg],
    dims: Mapping[str, int],
    dtypes: Mapping[str, str],
) -> Work:
    """Bytes and flops of a workload whose arguments, on whatever device, are these."""
    shares = read_shares(contract, reference, args)
    read = sum(
        int(_nbytes(contract, item, dims, dtypes) * shares.get(item.name, 0.0))
        for item in contract.inputs
    )
    written = sum(_nbytes(contract, item, dims, dtypes) for item in contract.outputs)
    return Work(read, written, flops_of(contract, dims, dtypes))


def flops_of(
    contract: Contract, dims: Mapping[str, int], dtypes: Mapping[str, str]
) -> dict[str, int]:
    """Of each declared dot product 2 * (elements of its output) * (its length), by the widest dtype
    of its inputs; half of that where the op is causal. What a contract does not state, counts 0."""
    found: dict[str, int] = {}
    for reduction in contract.behaviour.reductions:
        if reduction.kind is not ReductionKind.DOT:
            continue
        output = next(item for item in contract.outputs if item.name == reduction.output)
        names = [contract.dtype(contract.input(name), dtypes) for name in reduction.inputs]
        flops = 2 * prod(contract.shape(output, dims)) * dims[reduction.dim]
        flops //= 2 if contract.behaviour.causal else 1
        narrowest = min(names, key=lambda name: torch_dtype(name).itemsize)
        found[narrowest] = found.get(narrowest, 0) + flops
    return found


def _nbytes(
    contract: Contract, item: Input | Output, dims: Mapping[str, int], dtypes: Mapping[str, str]
) -> int:
    itemsize = torch_dtype(contract.dtype(item, dtypes)).itemsize
    return prod(contract.shape(item, dims)) * itemsize


def read_shares(contract: Contract, reference: Reference, args: Sequence[Arg]) -> dict[str, float]:
    """Which share of each input's elements the reference's outputs depend on. Empty, so that no
    input counts, where the reference refuses or does not give the same bytes twice."""
    before, again = _outputs(reference, args), _outputs(reference, args)
    if before is None or again is None or not _same(before, again):
        return {}
    places = {item.name: contract.call_order.index(item.name) for item in contract.inputs}
    return {name: _share(reference, args, place, before) for name, place in places.items()}


def _share(
    reference: Reference, args: Sequence[Arg], place: int, before: Sequence[torch.Tensor]
) -> float:
    tensor = args[place]
    assert isinstance(tensor, torch.Tensor)  # noqa: S101 - inputs of a contract are tensors
    count = tensor.numel()
    if count == 0:
        return 0.0
    places = sorted({int(n) for n in Stream(count, "probe", place).integers(0, count, PROBES)})
    hits = sum(_matters(reference, args, place, index, before) for index in places)
    return hits / len(places)


def _matters(
    reference: Reference,
    args: Sequence[Arg],
    place: int,
    index: int,
    before: Sequence[torch.Tensor],
) -> bool:
    """Whether the outputs change with this one element."""
    tensor = args[place]
    assert isinstance(tensor, torch.Tensor)  # noqa: S101 - see _share
    tensor = tensor.clone()
    changed = [*args[:place], tensor, *args[place + 1 :]]
    flat = tensor.view(-1)
    flat[index] = _other(flat, index)
    after = _outputs(reference, changed)
    return after is not None and not _same(before, after)


def _other(flat: torch.Tensor, index: int) -> Any:
    """NaN, or, where there is none, another value that occurs in the tensor."""
    if flat.is_floating_point() or flat.is_complex():
        return float("nan")
    others = flat[flat != flat[index]]
    return others[0] if others.numel() else flat[index]


def _outputs(reference: Reference, args: Sequence[Arg]) -> tuple[torch.Tensor, ...] | None:
    try:
        with torch.no_grad():
            copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
            return as_tuple(reference(*copies))
    except Exception:  # noqa: BLE001 - a reference that refuses tells nothing
        return None


def _same(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(
        a.shape == b.shape and torch.equal(_bytes(a), _bytes(b))
        for a, b in zip(left, right, strict=True)
    )


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().view(-1).view(torch.uint8)
