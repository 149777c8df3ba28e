"""How much memory a reference would need at some sizes, told from how it grows at small ones.

A reference may be quadratic in a dim (attention is); what its inputs and outputs weigh says
nothing about that. So it is run at small sizes, with one dim after the other doubled, and the
number of elements of each tensor that it makes on its way is followed to the sizes asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves

from verifier.contract import Contract
from verifier.records import CaseRecord
from verifier.referee.follower import Follower
from verifier.referee.inputs import make_args

SMALL: Final = 8

Counts = tuple[int, ...]


class _Sizes(Follower):
    """Notes the elements of whatever each operation returns."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: list[int] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        leaves = (leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
        self.counts.extend(leaf.numel() for leaf in leaves)
        return result


@dataclass(frozen=True, slots=True)
class Growth:
    """Elements of each intermediate tensor at ``dims``, and the power of each dim in it."""

    dims: Mapping[str, int]
    counts: Counts
    powers: Mapping[str, tuple[float, ...]]

    def elements(self, dims: Mapping[str, int]) -> int:
        """Elements of the greatest tensor at other dims, were each one a product of powers."""
        factors = {name: max(dims[name], 1) / self.dims[name] for name in self.powers}
        greatest = 0.0
        for place, count in enumerate(self.counts):
            size = float(count)
            for name, powers in self.powers.items():
                size *= factors[name] ** powers[place]
            greatest = max(greatest, size)
        return int(greatest)


def measure_growth(contract: Contract, reference: Callable[..., Any]) -> Growth | None:
    """How the reference's tensors grow with the dims; None where it takes other steps at other
    sizes, or refuses these."""
    dims = _small(contract)
    base = _counts(contract, reference, dims)
    if base is None:
        return None
    powers: dict[str, tuple[float, ...]] = {}
    for name in dims:
        doubled = {**dims, name: 2 * dims[name]}
        if not contract.allows(doubled):
            continue
        counts = _counts(contract, reference, doubled)
        if counts is None or len(counts) != len(base):
            return None
        pairs = zip(counts, base, strict=True)
        powers[name] = tuple(log2(max(big, 1) / max(small, 1)) for big, small in pairs)
    return Growth(dims, base, powers)


def _small(contract: Contract) -> dict[str, int]:
    """Each dim near ``SMALL``, as far as the contract allows that, else as usual."""
    dims = contract.usual_dims()
    for name, dim in contract.dims.items():
        size = -(-max(SMALL, dim.minimum, 1) // dim.multiple_of) * dim.multiple_of
        trial = {**dims, name: size}
        if size < dims[name] and contract.allows(trial):
            dims = trial
    return dims


def _counts(
    contract: Contract, reference: Callable[..., Any], dims: Mapping[str, int]
) -> Counts | None:
    case = CaseRecord("growth", dims, contract.usual_dtypes(), "normal", 0)
    args = make_args(contract, case)
    sizes = _Sizes()
    try:
        with torch.no_grad(), sizes:
            reference(*args)
    except Exception:  # noqa: BLE001 - a reference may refuse
        return None
    return tuple(sizes.counts)
