"""The comparator: shape and dtype, then the map of special values, then numbers.

The soft rule is the factor-two rule of the FlashAttention tests: the kernel's greatest error
against the fp64 golden may be twice eager's, plus a rounding floor. NaN never reaches an arithmetic
comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch

from verifier.contract import Tolerance
from verifier.gate import Finding, failed, inconclusive, passed
from verifier.records import TensorSlice

FACTOR: Final = 2.0
"""How many times eager's own error a kernel may make."""

ULPS: Final = 8
"""Rounding floor beyond the unavoidable one: so many fp32 units of the greatest golden value. An
honest kernel computes in fp32 in another order than eager, which may be exact by luck."""

ILL_CONDITIONED: Final = 0.1
"""Above this relative error of eager itself, a case says nothing about the kernel."""

SLICE: Final = 8


@dataclass(frozen=True, slots=True)
class Rule:
    """The soft comparator's settings: the factor f, and the contract's tolerance if it has one.

    ``spare`` is allowed on top of the default rule; the whole allowance is multiplied by ``widen``,
    the rounding floor alone by ``floor``.
    """

    factor: float = FACTOR
    tolerance: Tolerance | None = None
    spare: float = 0.0
    widen: float = 1.0
    floor: float = 1.0


def first_index(mask: torch.Tensor) -> tuple[int, ...]:
    """The first True in row-major order; () for a 0-d or empty mask."""
    if mask.dim() == 0 or not mask.any():
        return ()
    return tuple(int(i) for i in mask.nonzero()[0])


def text(tensor: torch.Tensor, index: tuple[int, ...]) -> str:
    """One value as text that keeps NaN, -0.0 and every digit."""
    value = tensor[index] if tensor.dim() else tensor
    return repr(value.item())


def cut(name: str, tensor: torch.Tensor, index: tuple[int, ...]) -> TensorSlice:
    """Up to eight values of the last axis, around the index (clipped to the tensor)."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    shape = tuple(tensor.shape)
    if tensor.dim() == 0 or tensor.numel() == 0:
        values = (repr(tensor.item()),) if tensor.numel() == 1 else ()
        return TensorSlice(name, shape, dtype, (), values)
    place = [min(i, size - 1) for i, size in zip(index, shape, strict=False)]
    place += [0] * (len(shape) - len(place))
    start = max(0, min(place[-1] - SLICE // 2, shape[-1] - SLICE))
    row = tensor[tuple(place[:-1])][start : start + SLICE]
    return TensorSlice(
        name, shape, dtype, (*place[:-1], start), tuple(repr(v) for v in row.tolist())
    )


def point_out(
    finding: Finding, name: str, mask: torch.Tensor, expected: torch.Tensor, got: torch.Tensor
) -> Finding:
    """The finding with its first offending index, the two values there and slices of both."""
    index = first_index(mask)
    slices = (cut("expected", expected, index), cut("got", got, index))
    return replace(
        finding,
        output=name,
        index=index,
        expected=text(expected, index),
        got=text(got, index),
        slices=slices,
    )


def bitwise_differs(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """True where the bytes differ; two NaN count as equal whatever their payload and sign."""
    if left.is_complex():
        return bitwise_differs(torch.view_as_real(left), torch.view_as_real(right)).any(-1)
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[left.element_size()]
    differs = left.contiguous().view(width) != right.contiguous().view(width)
    if left.is_floating_point():
        differs &= ~(left.isnan() & right.isnan())
    return differs


def bitwise(name: str, expected: torch.Tensor, got: torch.Tensor, what: str) -> Finding:
    """Equality of bytes (NaN payloads aside); ``what`` says which promise a difference breaks."""
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return replace(failed(f"{what}: shape or dtype of {name} changed"), output=name)
    mask = bitwise_differs(expected, got)
    if not mask.any():
        return passed()
    count = int(mask.sum())
    finding = failed(f"{what}: {count} of {mask.numel()} values of {name} differ")
    return point_out(finding, name, mask, expected, got)


def _as_float(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def class_map(tensor: torch.Tensor) -> torch.Tensor:
    """0 finite, 1 NaN, 2 +Inf, 3 -Inf, per value."""
    values = _as_float(tensor).double()
    return values.isnan() * 1 + values.isposinf() * 2 + values.isneginf() * 3


def check_classes(
    name: str, golden: torch.Tensor, eager: torch.Tensor, got: torch.Tensor
) -> Finding:
    """NaN and infinities where golden (in the dtype) or eager has them, and nowhere else."""
    rounded = golden.to(got.dtype)
    kinds = class_map(got)
    mask = (kinds != class_map(rounded)) & (kinds != class_map(eager))
    if not mask.any():
        return passed()
    if got.is_complex():
        mask = mask.any(-1)
    count = int(mask.sum())
    finding = failed(f"non-finite values of {name} differ at {count} of {mask.numel()} places")
    return point_out(finding, name, mask, rounded, got)


def _rounding(golden: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return (golden.to(dtype).double() - golden).abs()


def _allowed(
    golden: torch.Tensor, eager: torch.Tensor, dtype: torch.dtype, finite: torch.Tensor, rule: Rule
) -> torch.Tensor:
    """The greatest error allowed: one number for all values, or one each with a tolerance."""
    if rule.tolerance is not None:
        bound = rule.tolerance.atol + rule.tolerance.rtol * golden[finite].abs()
        return rule.widen * bound
    truth = golden[finite]
    error = (eager.double()[finite] - truth).abs().nan_to_num(0.0, 0.0, 0.0).max()
    floor = _rounding(truth, dtype).max() + ULPS * 2.0**-24 * truth.abs().max()
    return rule.widen * (rule.factor * error + rule.floor * floor + rule.spare)


def allowance(
    golden: torch.Tensor, eager: torch.Tensor, dtype: torch.dtype, rule: Rule
) -> Tolerance:
    """What the rule allows a kernel here, as a tolerance: for rules built on top of this one."""
    if rule.tolerance is not None or not (dtype.is_floating_point or dtype.is_complex):
        return rule.tolerance or Tolerance(0.0)
    part = dtype.to_real() if dtype.is_complex else dtype
    golden, eager = _as_float(golden).double(), _as_float(eager)
    finite = golden.isfinite() & golden.to(part).isfinite()
    if not finite.any():
        return Tolerance(0.0)
    return Tolerance(float(_allowed(golden, eager, part, finite, rule)))


def check_numbers(
    name: str, golden: torch.Tensor, eager: torch.Tensor, got: torch.Tensor, rule: Rule
) -> Finding:
    """The soft comparator on the places that are finite in golden and in the kernel's output."""
    golden, eager, values = (_as_float(t) for t in (golden, eager, got))
    golden, dtype = golden.double(), values.dtype
    finite = golden.isfinite() & values.double().isfinite() & golden.to(dtype).isfinite()
    if not finite.any():
        return passed()
    scale = golden[finite].abs().max()
    reference = (eager.double()[finite] - golden[finite]).abs().nan_to_num(0.0, 0.0, 0.0).max()
    if scale > 0 and reference > ILL_CONDITIONED * scale and rule.tolerance is None:
        share = float(reference / scale)
        return inconclusive(f"ill-conditioned: eager itself is off by {share:.0%} of the scale")
    error = (values.double() - golden).abs()
    allowed = torch.zeros_like(golden)
    allowed[finite] = _allowed(golden, eager, dtype, finite, rule)
    mask = finite & (error > allowed)
    if not mask.any():
        return passed(f"error {float(error[finite].max()):.3g}, eager {float(reference):.3g}")
    if scale > 0 and not values[finite].any():
        detail, hard = f"{name} is all zeros where the answer is not", True
    else:
        worst = float(error[mask].max())
        detail = f"{name} is off by {worst:.3g}; eager is off by {float(reference):.3g}"
        hard = False
    mask, expected, shown = _fold(got, mask, golden, values)
    return point_out(failed(detail, hard=hard), name, mask, expected, shown)


def _fold(
    got: torch.Tensor, mask: torch.Tensor, golden: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Complex results back from their (real, imaginary) view, so that the index is the output's."""
    if not got.is_complex():
        return mask, golden, values
    return mask.any(-1), torch.view_as_complex(golden.contiguous()), got


def check_exact(name: str, golden: torch.Tensor, got: torch.Tensor) -> Finding:
    """Integers and booleans: equal, or wrong."""
    expected = golden.to(got.dtype)
    mask = expected != got
    if not mask.any():
        return passed()
    finding = failed(f"{name}: {int(mask.sum())} of {mask.numel()} values are wrong")
    return point_out(finding, name, mask, expected, got)


def check_output(
    name: str, golden: torch.Tensor, eager: torch.Tensor, got: torch.Tensor, rule: Rule
) -> Finding:
    """One output with the right shape and dtype: class map first, then numbers."""
    if not (got.is_floating_point() or got.is_complex()):
        return check_exact(name, golden, got)
    classes = check_classes(name, golden, eager, got)
    return classes if not classes.passed else check_numbers(name, golden, eager, got, rule)


def worst(findings: Sequence[Finding]) -> Finding:
    """The first failure (hard before soft), else the first that is not a pass, else a pass."""
    order = sorted(findings, key=lambda f: (not (f.failed and f.hard), not f.failed, f.passed))
    return order[0] if order else passed()
