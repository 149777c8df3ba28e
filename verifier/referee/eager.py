"""The library implementation in the working dtype: a subject like the kernel, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from verifier.health.context import context_demand
from verifier.subject import ORDINARY, Arg, CallOptions, OutputInfo, Reply, ReplyKind
from verifier.vast import Vast

Function = Callable[..., Any]


def storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage behind a tensor, as uint8; shares memory with it."""
    empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return empty.set_(tensor.untyped_storage())


def copy_with_layout(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The same view of a copy of the tensor's whole storage, on the device."""
    storage = storage_bytes(tensor).to(device, copy=True).untyped_storage()
    blank = torch.empty(0, dtype=tensor.dtype, device=device)
    return blank.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


@contextmanager
def exact_matmul(allow_tf32: bool) -> Iterator[None]:
    """Full fp32 matrix products and convolutions unless the contract permits TF32."""
    matmul, conv = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, conv.allow_tf32
    matmul.allow_tf32 = conv.allow_tf32 = allow_tf32
    try:
        yield
    finally:
        matmul.allow_tf32, conv.allow_tf32 = before


def as_tuple(result: Any) -> tuple[torch.Tensor, ...]:
    """A reference's result as a tuple of tensors."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _overlaps(left: torch.Tensor, right: torch.Tensor) -> bool:
    return (
        left.numel() > 0
        and right.numel() > 0
        and left.untyped_storage().data_ptr() == right.untyped_storage().data_ptr()
    )


class Eager:
    """The reference as a subject. Its calls are trusted: no sandbox, no canaries, no effects."""

    name = "eager"

    def __init__(self, reference: Function, device: torch.device, *, allow_tf32: bool) -> None:
        self._reference = reference
        self._device = device
        self._allow_tf32 = allow_tf32
        self._held: tuple[torch.Tensor, ...] = ()

    def restart(self) -> None:
        """Nothing to restart."""

    def other(self) -> Eager:
        """Itself: no process of its own, and no history."""
        return self

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        placed = self._place(args)
        if options.vast:
            return self._vast_call(placed, options.vast)
        started = time.perf_counter()
        try:
            with torch.no_grad(), exact_matmul(self._allow_tf32):
                outputs = as_tuple(self._reference(*placed))
        except Exception as error:  # noqa: BLE001 - whatever eager raises, it refuses the input
            context_demand(self._device, error)
            return Reply(ReplyKind.RAISED, f"{type(error).__name__}: {error}")
        reply = Reply(
            ReplyKind.RETURNED,
            outputs=tuple(out.detach().to("cpu", copy=True).contiguous() for out in outputs),
            infos=tuple(self._info(out, outputs, placed) for out in outputs),
            inputs_after=tuple(_after(arg) for arg in placed),
            previous_outputs=tuple(out.cpu().clone() for out in self._held),
            wall_s=time.perf_counter() - started,
        )
        self._held = outputs
        return reply

    def _vast_call(self, placed: Sequence[Arg], vast: Vast) -> Reply:
        """Rows of a call on tensors that are too large to be brought back."""
        try:
            with torch.no_grad(), exact_matmul(self._allow_tf32):
                outputs = vast.pick(as_tuple(self._reference(*vast.expand(placed))))
        except Exception as error:  # noqa: BLE001 - no room, or a refusal
            return Reply(ReplyKind.RAISED, f"{type(error).__name__}: {error}")
        finally:
            if self._device.type == "cuda":
                torch.cuda.empty_cache()
        return Reply(
            ReplyKind.RETURNED,
            outputs=tuple(out.detach().cpu().contiguous() for out in outputs),
            infos=tuple(self._info(out, outputs, placed) for out in outputs),
        )

    def _place(self, args: Sequence[Arg]) -> list[Arg]:
        return [
            copy_with_layout(arg, self._device) if isinstance(arg, torch.Tensor) else arg
            for arg in args
        ]

    def _info(
        self, out: torch.Tensor, outputs: Sequence[torch.Tensor], args: Sequence[Arg]
    ) -> OutputInfo:
        tensors = [(i, a) for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
        return OutputInfo(
            stride=out.stride(),
            device=out.device.type,
            exact_tensor=type(out) is torch.Tensor,
            requires_grad=out.requires_grad,
            alias_inputs=tuple(i for i, a in tensors if _overlaps(out, a)),
            alias_outputs=tuple(
                i for i, o in enumerate(outputs) if o is not out and _overlaps(out, o)
            ),
            alias_previous=any(_overlaps(out, held) for held in self._held),
        )


def _after(arg: Arg) -> torch.Tensor | None:
    return storage_bytes(arg).cpu().clone() if isinstance(arg, torch.Tensor) else None
