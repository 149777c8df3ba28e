"""What can be put on trial: anything that takes arguments and gives back tensors and evidence.

The candidate kernel (in its sandbox) and eager (the reference in the working dtype, in this
process) are both subjects, so that a gate judges either of them with the same code; that is how
the reference goes on trial first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

import torch

from verifier.errors import InfrastructureError as InfrastructureError
from verifier.vast import Vast

Arg: TypeAlias = torch.Tensor | int | float | bool | str | None
"""One positional argument. A tensor lies on the CPU; its layout is meant literally: the subject
gets a copy of the *whole storage* behind the same shape, strides and offset. Arguments that share a
storage share it at the subject too."""


# fmt: off
PLUMBING: Final = frozenset(
    {
        "copy_", "_to_copy", "clone", "contiguous", "fill_", "zero_", "zeros", "zeros_like",
        "ones", "ones_like", "full", "full_like", "empty", "empty_like", "empty_strided",
        "new_empty", "new_zeros", "new_ones", "new_full", "scalar_tensor", "arange", "cat",
        "stack", "constant_pad_nd", "repeat", "item", "_local_scalar_dense", "is_nonzero",
        "lift_fresh_copy", "_pin_memory", "resize_", "set_", "slice_backward", "select_backward"
    }
)
# fmt: on
"""Torch operations that carry data about and compute nothing: honest wrappers need them."""

QUIET: Final = frozenset(
    "aten::empty aten::empty_strided aten::empty_permuted aten::empty_like "  # noqa: SIM905 - text
    "aten::new_empty "
    "aten::new_empty_strided aten::zeros aten::zeros_like aten::new_zeros aten::ones "
    "aten::ones_like aten::new_ones aten::full aten::full_like aten::new_full aten::scalar_tensor "
    "aten::detach aten::detach_ aten::alias aten::lift_fresh aten::_unsafe_view "
    "aten::_reshape_alias "
    "aten::set_ aten::resize_ aten::is_same_size aten::is_pinned aten::_local_scalar_dense "
    "aten::sym_size aten::sym_stride aten::sym_numel aten::sym_storage_offset aten::record_stream "
    "prim::device prim::layout aten::stride aten::size profiler::_record_function_enter "
    "profiler::_record_function_enter_new profiler::_record_function_exit".split()
)
"""Operations that are no work at all."""

# fmt: off
BOOKKEEPING: Final = frozenset(
    {
        "sub", "diff", "max", "min", "amax", "cumsum", "sort", "argsort", "bincount",
        "unique_consecutive"
    }
)
CARRYING: Final = frozenset(
    {
        "copy_", "_to_copy", "clone", "fill_", "full", "full_like", "new_full", "scalar_tensor",
        "cat", "stack", "constant_pad_nd", "repeat", "lift_fresh_copy"
    }
)
# fmt: on
"""Torch operations with which wrappers prepare lengths and offsets, where the op takes integers;
a watched call shows them like launches, and those that carry data about, too."""
ON_INTEGERS: Final = " on integers"
"""Behind the name of such an operation in ``Reply.ops``, where no real number took part in it."""


TO_HOST: Final = " to or from the host"
"""Behind the name of an operation that moved real numbers between the host and the device."""


class Poison(StrEnum):
    """What a fresh allocation of the kernel holds before anybody writes to it.

    For floating dtypes: NAN, 2**100 (in fp16, where that is no number, 2**14), or the bytes of the
    greatest integer. For integer dtypes NAN and INT_MAX are the greatest value, BIG is 2**30 or as
    near as the dtype comes; bool allocations hold the bytes 1, 1 and 1.
    """

    NAN = "nan"
    BIG = "big"
    INT_MAX = "int_max"


class Placement(StrEnum):
    """Where the arguments of a call lie in memory, compared with the call before it."""

    SAME = "same"
    """At the very addresses of the previous call (if shapes allow)."""
    FRESH = "fresh"
    """At addresses that no call of this process has used."""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How one call is staged."""

    poison: Poison = Poison.NAN
    placement: Placement = Placement.SAME
    guard: Poison = Poison.NAN
    """Value of the canary zones on both sides of each storage: 256 bytes, on a GPU 64 KB."""
    load: bool = False
    """Keep the device busy with unrelated work during the call."""
    side_stream: bool = False
    """Call on a non-default stream and synchronise by event alone (CUDA only)."""
    ablate: bool = False
    """Launch none of the kernel's own device kernels: what is still right came from elsewhere."""
    trace: bool = False
    """Log the torch compute operations and the kernel launches."""
    recheck_previous: bool = False
    """After the call, read the outputs of the call before it once more."""
    watch: bool = False
    """Keep copies of what each launch was handed and of what it left (for small data)."""
    profile: bool = False
    """Write down what runs on the device (CUDA only)."""
    below: bool = False
    """Look below the dispatch mode too, on all threads, for operations that it did not see."""
    programs: bool = False
    """Write down what each launch of Triton's runs."""
    compile: bool = False
    """On a machine without GPU: compile each launch for one, and run none."""
    config: int | None = None
    """Which of the configurations that an autotuner has left after pruning it must take, counted
    from 0 and round again, or the next that this device can launch; None leaves it to the tuner."""
    bare: bool = False
    """Call it as the clock does, with nothing set around it: what it launches is counted and, with
    ``below``, seen from below what torch computes; no more."""
    vast: Vast | None = None
    """Blow the arguments up on the device, and bring a few rows of the outputs back."""
    timeout_s: float | None = None
    """Wall limit of this call; None takes the limit of the sandbox."""


ORDINARY: Final = CallOptions()
"""A plain call."""

_CONFIGS: Final = 1 << 16
"""More configurations than any autotuner has."""


def config_of(seed: int) -> int:
    """Which configuration autotuners take in a case with this seed: one case meets one, many cases
    meet many."""
    return seed % _CONFIGS


class ReplyKind(StrEnum):
    """How a call ended. Only RETURNED carries outputs."""

    RETURNED = "returned"
    RAISED = "raised"
    """The kernel raised an exception of its own: a refusal, where refusing is allowed."""
    LOAD_FAILED = "load_failed"
    """The source could not be imported, or has no callable entry point."""
    BAD_OUTPUT = "bad_output"
    """It returned something that is no tensor or tuple of tensors, or too many bytes."""
    CRASHED = "crashed"
    """The process died: a signal, os._exit, sys.exit, or a closed channel."""
    TIMED_OUT = "timed_out"
    MEMORY = "memory"
    """It went over its memory limit, or an allocation failed."""
    UNSUPPORTED = "unsupported"
    """This device cannot run it at all, whatever its merit (libdevice in the interpreter, say, or
    what its interpreter fails in and Triton's compiler takes)."""


@dataclass(frozen=True, slots=True)
class OutputInfo:
    """What the host saw of one output besides its values (which are in ``Reply.outputs``)."""

    stride: tuple[int, ...]
    device: str
    exact_tensor: bool
    """Its type is torch.Tensor itself, with real storage."""
    requires_grad: bool
    alias_inputs: tuple[int, ...]
    """Positions of the arguments whose storage it overlaps."""
    alias_outputs: tuple[int, ...]
    """Positions of other outputs of this call whose storage it overlaps."""
    alias_previous: bool
    """It overlaps an output of an earlier call that is still held."""


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """One kernel, copy or fill that ran on the device, by the profiler."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Program:
    """What one launch of Triton's runs, as its interpreter and its compiler can agree on it."""

    kernel: str
    code: str
    """A digest of the kernel's text, with all that it names."""
    settings: str
    """A digest of the plain values among its arguments."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What one launch could reach and what it left there, as private CPU copies."""

    before: tuple[torch.Tensor, ...]
    after: tuple[torch.Tensor, ...]
    numbers: tuple[int | float, ...]
    """Everything else about it: plain numbers exactly, shapes, names as hashes, the grid."""
    strays: int
    """How often it is handed, or reaches, memory that belongs to no tensor."""
    places: tuple[int, ...] = ()
    """Where each memory begins, in this call's process."""
    carries: bool = False
    """No launch, but an operation of torch's that moves or casts (see CARRYING)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from one call.

    ``outputs`` are private CPU copies, contiguous, with the shape and dtype that the kernel gave
    (never what the contract asks for). ``inputs_after`` holds, for each tensor argument, its whole
    storage as uint8 after the call, None for the others; read from shared memory on the CPU.
    ``touched_guards`` names each canary zone whose bytes changed. ``effects`` names each piece of
    global state that changed (random state, flags, threads left running, patched functions, ...).
    """

    kind: ReplyKind
    detail: str = ""
    outputs: tuple[torch.Tensor, ...] = ()
    infos: tuple[OutputInfo, ...] = ()
    inputs_after: tuple[torch.Tensor | None, ...] = ()
    touched_guards: tuple[str, ...] = ()
    far: tuple[str, ...] = ()
    """What its launches read or wrote that is no tensor's memory, and how far off, where each
    access is seen (in Triton's interpreter)."""
    effects: tuple[str, ...] = ()
    effects_before: tuple[str, ...] = ()
    """The same of earlier calls in this process, and of the import."""
    previous_outputs: tuple[torch.Tensor, ...] = ()
    ops: tuple[str, ...] = ()
    """Names of torch compute operations, such as 'aten::mm', with ``trace``, without views and
    allocations, and without those on data that certainly come from no argument. Bookkeeping says
    so where it was done on integers alone (see ON_INTEGERS), copies where they cross the bus (see
    TO_HOST)."""
    hidden: tuple[str, ...] | None = None
    """Names of torch compute operations that were done where no dispatch mode sees them, with
    ``below``; None where nobody looked, or could."""
    met: tuple[str, ...] = ()
    """Names of all torch operations that the dispatch mode saw, with ``below``."""
    launches: tuple[str, ...] = ()
    """Names of the kernels that it launched, with ``trace``."""
    programs: tuple[Program, ...] = ()
    """What each of them ran, in order, with ``programs``."""
    kernels: tuple[DeviceKernel, ...] = ()
    """What ran on the device, in order, with ``profile``; empty where no profiler works."""
    tuned: tuple[str, ...] = ()
    """The configuration that each autotuner launched its kernel with."""
    configs: int = 0
    """How many configurations were left to choose from, with ``config``: the most of any tuner."""
    refused: tuple[str, ...] = ()
    """The launches that Triton's compiler refused, and why, with ``compile``."""
    in_launch: str = ""
    """The kernel inside whose launch Triton's interpreter ended, if it may be to blame."""
    deliberate: bool = False
    """RAISED, by a statement of the kernel's own that does nothing else."""
    chosen: bool = False
    """UNSUPPORTED by what the kernel itself may have chosen: in its own words it asks for a GPU, or
    it has led the interpreter to where that fails."""
    watched: tuple[Watched, ...] = ()
    """Its launches in order, with ``watch``."""
    final: Watched | None = None
    """The memory behind the outputs, as if one more launch were handed it."""
    watch_full: bool = False
    """There was more to watch than could be kept."""
    wall_s: float = 0.0
    """By the referee's clock."""
    latency_s: float | None = None
    """By device events, where there are any."""

    @property
    def returned(self) -> bool:
        return self.kind is ReplyKind.RETURNED


class Subject(Protocol):
    """Anything a gate can judge."""

    @property
    def name(self) -> str:
        """'kernel' or 'eager'."""

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        """Call it once. Raises InfrastructureError only; whatever the kernel does is a Reply.

        After CRASHED, TIMED_OUT or MEMORY the next call runs in a fresh process.
        """

    def restart(self) -> None:
        """Continue in a fresh process (a no-op for eager)."""

    def other(self) -> Subject:
        """The same in another process, always the same one, which lives on beside this one (eager
        itself for eager)."""
