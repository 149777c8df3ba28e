"""In the host: the stage of one call. Arguments over shared memory, guarded, poisoned allocations.

``Stage`` is a dispatch mode that is active only while the kernel runs. It carves each fresh
allocation out of a bigger buffer with canaries on both sides, fills it with poison and, when
asked, writes down the torch operations that compute something with the call's data.
"""

from __future__ import annotations

import gc
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from verifier.candidate.arena import round_up
from verifier.candidate.backward import is_accumulation
from verifier.candidate.beneath import Mark
from verifier.candidate.bounds import MAX_TEXTS, Bounds, storages
from verifier.candidate.dependence import Free
from verifier.candidate.dtypes import DTYPES, NAMES, as_bytes, elsewise, fill, poison_word
from verifier.candidate.identity import identity
from verifier.candidate.witness import Anywhere, Range, Witness
from verifier.subject import BOOKKEEPING, CARRYING, ON_INTEGERS, QUIET, TO_HOST, Poison
from verifier.vast import Vast

GUARD_BYTES: Final = 256
SLACK_BYTES: Final = 64 << 10
"""Room on both sides beyond the canaries: a kernel that writes too far should be caught in the act
and not crash on what happened to lie there."""
_LEAD_BYTES: Final = SLACK_BYTES + GUARD_BYTES
MAX_NAMES: Final = 10_000
MAX_SUMS: Final = 4
"""So many sums of gradients may autograd make in one call: more are a sum over rows in disguise."""
_HELD_BYTES: Final = 256 << 20
_SLOW_NBYTES: Final = 1 << 18

_aten: Final = torch.ops.aten
_ALLOCATE: Final = frozenset(
    {
        _aten.empty.memory_format,
        _aten.empty_strided.default,
        _aten.empty_permuted.default,
        _aten.empty_like.default,
        _aten.new_empty.default,
        _aten.new_empty_strided.default,
    }
)
_FILL: Final = frozenset(
    {
        _aten.zeros.default,
        _aten.zeros_like.default,
        _aten.new_zeros.default,
        _aten.ones.default,
        _aten.ones_like.default,
        _aten.new_ones.default,
        _aten.full.default,
        _aten.full_like.default,
        _aten.new_full.default,
        _aten.clone.default,
        _aten._to_copy.default,
    }
)
"""Fresh memory with contents: kernels write their results into such buffers, too."""


@dataclass(frozen=True, slots=True)
class Options:
    """The part of CallOptions that the host acts on."""

    poison: Poison
    guard: Poison
    ablate: bool
    trace: bool
    load: bool
    side_stream: bool
    recheck_previous: bool
    fresh: bool
    watch: bool = False
    profile: bool = False
    below: bool = False
    bare: bool = False
    programs: bool = False
    config: int | None = None
    vast: Vast | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Options:
        return cls(
            poison=Poison(body["poison"]),
            guard=Poison(body["guard"]),
            ablate=bool(body["ablate"]),
            trace=bool(body["trace"]),
            load=bool(body["load"]),
            side_stream=bool(body["side_stream"]),
            recheck_previous=bool(body["recheck_previous"]),
            fresh=bool(body["fresh"]),
            watch=bool(body["watch"]),
            profile=bool(body["profile"]),
            below=bool(body["below"]),
            bare=bool(body["bare"]),
            programs=bool(body["programs"]),
            config=None if body["config"] is None else int(body["config"]),
            vast=None if body["vast"] is None else Vast.from_json(body["vast"]),
        )


@dataclass(slots=True)
class _Allocation:
    number: int
    buffer: torch.Tensor
    nbytes: int
    dtype: torch.dtype
    resized_to: int = 0
    """Where it ends in its buffer since it was resized; 0 if it never was."""

    @property
    def own(self) -> Range:
        """Its memory, without canaries."""
        start = self.buffer.data_ptr()
        return start + _LEAD_BYTES, start + max(_LEAD_BYTES + self.nbytes, self.resized_to)


@dataclass(slots=True)
class Evidence:
    """What a stage saw."""

    touched: list[str] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    hidden: list[str] | None = None
    met: dict[str, None] = field(default_factory=dict)
    launches: list[str] = field(default_factory=list)
    programs: list[tuple[str, str, str]] = field(default_factory=list)
    ran: list[tuple[str, float]] = field(default_factory=list)
    tuned: list[str] = field(default_factory=list)
    configs: int = 0
    refused: list[str] = field(default_factory=list)
    risen: tuple[Exception, str] | None = None
    """What rose inside a launch and may be the interpreter's doing, and inside which kernel's."""
    around: dict[str, None] = field(default_factory=dict)
    """What was not as it should be around a launch, whatever it is at the end of the call."""
    far: list[str] = field(default_factory=list)
    """What launches reached that is no tensor's, where each access is seen."""
    witness: Witness = field(default_factory=Witness)


class Stage(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Active around one call of the kernel."""

    def __init__(
        self, options: Options, inputs: Sequence[Range] = (), *, interpreted: bool = False
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.options = options
        self.evidence = Evidence(witness=Witness(exact=interpreted))
        self._inputs = tuple(inputs)
        self._held: deque[_Allocation] = deque()
        self._held_bytes = 0
        self._count = 0
        self._paused = 0
        self._noting = options.trace
        self.mark = Mark() if options.below else None
        self._sums = 0
        self._anywhere: Anywhere | None = None
        self._bounds: Bounds | None = None

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Else torch.compile runs whatever it meets here eagerly, now and, since it remembers that,
        later: it would not be the kernel that is judged."""
        return True

    @contextmanager
    def paused(self, *, noting: bool) -> Iterator[None]:
        """Allocations in here are not the kernel's own: Triton makes some for a launch.

        Its interpreter only carries data about; so, where it runs the kernel's body as Python,
        operations are still written down (``noting``). A tuner on a device computes for itself.
        """
        before = self._noting
        self._paused, self._noting = self._paused + 1, before and noting
        try:
            yield
        finally:
            self._paused, self._noting = self._paused - 1, before

    @contextmanager
    def launched(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[None]:
        """Around one launch: with ``watch``, what it is handed and what it leaves is written down,
        at the last moment, when the wrapper has even computed its grid."""
        given = {name: value for name, value in kwargs.items() if name != "grid"}
        witness, grid, came_to = self._witness(args), kwargs.get("grid"), list[int]()
        memory: list[torch.Tensor] | None = None

        def last_moment(meta: Any) -> Any:
            """What the wrapper computes as late as for its grid must be seen, too."""
            nonlocal memory
            with self.awake():
                sizes = grid(meta) if callable(grid) else grid
                came_to[:] = _sizes(sizes)
            if witness is not None:
                self._anywhere = None
                witness.full |= _hooked()
                with self.paused(noting=False):
                    memory = witness.arrive(identity(function), (args, given), self._find)
            return tuple(came_to) if isinstance(sizes, tuple | list) else sizes

        kwargs["grid"] = last_moment
        try:
            yield
        finally:
            if witness is not None:
                with self.paused(noting=False):
                    witness.leave(memory, came_to)

    def _witness(self, args: tuple[Any, ...]) -> Witness | None:
        """Who looks at a launch. Where looking takes long, and costs little beside the launch, one
        whom nobody asks looks at all others: no kernel shall know a watched call by its clock."""
        if self.options.watch:
            return self.evidence.witness
        nbytes = sum(arg.untyped_storage().nbytes() for arg in args if type(arg) is torch.Tensor)
        slow = self.evidence.witness.exact and nbytes > _SLOW_NBYTES
        return Witness(exact=True) if slow else None

    @contextmanager
    def bounded(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, on: bool
    ) -> Iterator[None]:
        """Around one launch whose every access is told: which memory is somebody's."""
        outer = self._bounds
        if on:
            self._anywhere = None
            given = storages((*args, *kwargs.values()))
            inputs = [(own, f"input {number}") for number, own in enumerate(self._inputs)]
            made = [(one.own, f"allocation {one.number}") for one in self._held]
            others = [(_own(storage), "a tensor") for storage in given]
            self._bounds = Bounds(name, self._find_own, [*inputs, *made, *others])
        try:
            yield
        finally:
            self._bounds = outer

    def accessed(self, addresses: Any, mask: Any, verb: str, nbytes: int) -> None:
        """The launch in progress reaches so many bytes at each of these addresses."""
        if self._bounds is None:
            return
        address = self._bounds.beyond(addresses, mask, nbytes)
        if address is None:
            return
        if len(self.evidence.far) < MAX_TEXTS:
            self.evidence.far.append(self._bounds.describe(verb, address, nbytes))
        self._bounds = None  # once for each launch

    def _find_own(self, address: int) -> Range | None:
        """Like ``_find``, but the slack around allocations is nobody's."""
        for start, end in (*self._inputs, *(one.own for one in self._held), *_kept()):
            if start <= address < end:
                return start, end
        if any(start <= address < end for start, end in _buffers()):
            return None
        if self._anywhere is None:
            self._anywhere = Anywhere(gc.get_objects())
        return self._anywhere.find(address)

    def returned(self, outputs: Sequence[torch.Tensor]) -> None:
        """The call has ended: with ``watch``, the memory behind its outputs is written down."""
        if self.options.watch:
            self._anywhere = None
            self.evidence.witness.returned(outputs, self._find)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """What the kernel's wrapper does in the middle of a launch is its own again."""
        before = self._paused, self._noting
        self._paused, self._noting = 0, self.options.trace
        try:
            yield
        finally:
            self._paused, self._noting = before

    def _find(self, address: int) -> Range | None:
        """The memory of an argument, of an allocation of this call or an earlier one, or of any
        other tensor that there is."""
        own = (
            (start, start + allocation.nbytes)
            for allocation in self._held
            for start in (allocation.buffer.data_ptr() + _LEAD_BYTES,)
        )
        for start, end in (*self._inputs, *own, *_kept()):
            if start <= address < max(end, start + 1):
                return start, end
        if self._anywhere is None:
            self._anywhere = Anywhere(gc.get_objects())
        return self._anywhere.find(address)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if self.mark is None or types:
            return self._dispatched(func, types, args, kwargs or {})
        self.evidence.met[func._schema.name] = None
        with self.mark.around(func):
            return self._dispatched(func, types, args, kwargs or {})

    def _dispatched(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if _is_kernels_own(func):
            return self._inside(func, args, kwargs)
        free = not types and self._is_free(func, args, kwargs)
        given = self._arrived(func, (args, kwargs))
        result = func(*args, **kwargs)
        if self._noting and not free:
            self._note(func, (args, kwargs, result))
        if not self._paused:
            result = self._guarded(func, args, kwargs, result)
        if given is not None:
            made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
            with self.paused(noting=False):
                self.evidence.witness.leave([*given, *made])
        if free:
            _FREE.made(result)
        return result

    def _is_free(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether it works on nothing that may depend on the data; without arguments that hold
        some, whatever is computed may be the answer."""
        return _FREE.operation(func, (*args, *kwargs.values())) and bool(self._inputs)

    def reached(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A launch gets these: what it can reach may depend on data from now on."""
        given = (value for name, value in kwargs.items() if name not in ("grid", "warmup"))
        _FREE.launched((*args, *given), self._inputs)

    def _guarded(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any:
        """The result, between canaries if it is a fresh allocation."""
        if func in _ALLOCATE:
            return self._carve(result)
        if func in _FILL:
            return self._carve(result, keep=True)
        for tensor in _resizable(func, args, kwargs):
            self._note_resized(tensor)
        return result

    def _arrived(self, func: Any, given: Any) -> list[torch.Tensor] | None:
        """Sums and orders of integers, which wrappers may make, are watched like launches, so that
        what goes into them must be explained too; what carries data about, so that it is known
        where they lie."""
        if self._paused or not self.options.watch:
            return None
        name, witness = func._schema.name.removeprefix("aten::"), self.evidence.witness
        self._anywhere = None
        with self.paused(noting=False):
            if name in BOOKKEEPING or is_accumulation(func):
                return witness.arrive(name, given, self._find)
            return witness.carry(name, given, self._find) if name in CARRYING else None

    def _inside(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an op that the kernel itself has registered with this stage still set: what it calls
        is judged, not its name."""
        leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        cuda = any(leaf.device.type == "cuda" for leaf in leaves)
        key = torch._C.DispatchKey.CUDA if cuda else torch._C.DispatchKey.CPU
        with self:
            return func.redispatch(torch._C.DispatchKeySet(key), *args, **kwargs)

    def _note(self, func: Any, values: Any) -> None:
        name = func._schema.name
        if name in QUIET or _is_view(func) or len(self.evidence.ops) >= MAX_NAMES:
            return
        if is_accumulation(func):
            self._sums += 1
            if self._sums <= MAX_SUMS:
                return
        bookkeeping = name.removeprefix("aten::") in BOOKKEEPING and _on_integers(values)
        suffix = ON_INTEGERS if bookkeeping else TO_HOST if _is_to_host(values) else ""
        self.evidence.ops.append(name + suffix)

    def _carve(self, plain: torch.Tensor, *, keep: bool = False) -> torch.Tensor:
        """The same tensor between canaries; poisoned, or with the contents that it had."""
        if not _carvable(plain):
            return plain
        dtype, nbytes = plain.dtype, plain.untyped_storage().nbytes()
        size = nbytes + 2 * _LEAD_BYTES
        buffer = torch.empty(size, dtype=torch.uint8, device=plain.device)
        if keep:
            buffer[_LEAD_BYTES:-_LEAD_BYTES].copy_(as_bytes(plain))
        else:
            fill(buffer[_LEAD_BYTES:-_LEAD_BYTES], dtype, self.options.poison)
        carved = torch.empty(0, dtype=dtype, device=plain.device)
        offset = _LEAD_BYTES // dtype.itemsize + plain.storage_offset()
        carved.set_(buffer.untyped_storage(), offset, plain.size(), plain.stride())
        allocation = _Allocation(self._count, buffer, nbytes, dtype)
        for zone in _zones(allocation):
            fill(zone, dtype, self.options.guard)
        self._hold(allocation)
        _keep(allocation)
        self._count += 1
        return carved

    def _hold(self, allocation: _Allocation) -> None:
        """Keep allocations until the end of the call, within bounds; check the oldest first."""
        self._held.append(allocation)
        self._held_bytes += allocation.nbytes
        while self._held_bytes > _HELD_BYTES and len(self._held) > 1:
            self._check(self._held.popleft())

    def _note_resized(self, tensor: Any) -> None:
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
            return
        base = tensor.untyped_storage().data_ptr()
        end = tensor.data_ptr() - base + tensor.numel() * tensor.itemsize
        for allocation in self._held:
            moved = allocation.buffer.untyped_storage().data_ptr()
            if moved == base and end > _LEAD_BYTES + allocation.nbytes:
                allocation.resized_to = max(allocation.resized_to, end)
                _keep(allocation)

    def finish(self) -> Evidence:
        """Check the canaries of all allocations (after the device has come to rest)."""
        self._check(*self._held)
        self._held.clear()
        return self.evidence

    def _check(self, *allocations: _Allocation) -> None:
        """Of all of them in one look at the device."""
        self._held_bytes -= sum(allocation.nbytes for allocation in allocations)
        zones = [(one, number) for one in allocations for number in range(len(_zones(one)))]
        guard = self.options.guard
        drawn = [_zones(one)[number] for one, number in zones]
        marks = [_differs(z, one.dtype, guard) for z, (one, _) in zip(drawn, zones, strict=True)]
        for zone, (one, number), touched in zip(drawn, zones, _brought(marks), strict=True):
            if touched:
                off = _distance(zone, one.dtype, guard, from_end=number == 0)
                far = f", {off} bytes off" if off >= GUARD_BYTES else ""
                self.evidence.touched.append(f"allocation {one.number}: {_SIDES[number]}{far}")


_KNOWN_OPS: Final[set[str]] = set()
"""Names of all operations that there are before the kernel is loaded."""

_FREE: Final = Free()
"""For all calls of the process: what they keep may be met again."""

_KEPT: Final[OrderedDict[int, tuple[Any, Range, int]]] = OrderedDict()
"""Weak references to the latest allocations, of whatever call, with their own memory and the bytes
of their buffers, by where those begin."""
_MAX_KEPT: Final = 4096


def ops_remember() -> None:
    """Before a kernel is loaded: what is registered later is the kernel's own."""
    names = torch._C._dispatch_get_all_op_names()
    _KNOWN_OPS.update(name.partition(".")[0] for name in names)


def _is_kernels_own(func: Any) -> bool:
    return bool(_KNOWN_OPS) and func._schema.name not in _KNOWN_OPS


def _keep(allocation: _Allocation) -> None:
    buffer = allocation.buffer
    weak: Any = StorageWeakRef(buffer.untyped_storage())  # type: ignore[no-untyped-call]
    _KEPT[buffer.data_ptr()] = weak, allocation.own, buffer.untyped_storage().nbytes()
    _KEPT.move_to_end(buffer.data_ptr())
    if len(_KEPT) > _MAX_KEPT:
        _KEPT.popitem(last=False)


def _kept() -> Iterator[Range]:
    return (own for weak, own, _ in _KEPT.values() if not weak.expired())


def _buffers() -> Iterator[Range]:
    """Allocations with the slack around them."""
    for start, (weak, _, nbytes) in _KEPT.items():
        if not weak.expired():
            yield start, start + nbytes


def _own(storage: Range) -> Range:
    """The part of a storage that is its tensor's own."""
    weak, own, _ = _KEPT.get(storage[0], (None, storage, 0))
    return storage if weak is None or weak.expired() else own


def _hooked() -> bool:
    """Whether something runs at each launch after all that could be seen before it."""
    from triton import knobs

    hooks = (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook)
    return any(hook is not None and getattr(hook, "calls", True) for hook in hooks)


def _sizes(grid: Any) -> list[int]:
    return [int(size) for size in (grid if isinstance(grid, tuple | list) else (grid,))]


def _resizable(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """Tensors that this operation may have resized."""
    if "out" in kwargs:
        out = kwargs["out"]
        yield from out if isinstance(out, list | tuple) else (out,)
    elif func._schema.name.startswith("aten::resize"):
        yield args[0]


_SIDES: Final = ("before its start", "after its end")


def _zones(allocation: _Allocation) -> tuple[torch.Tensor, ...]:
    """Where canaries are, on both sides. In the interpreter each access is seen anyway; on a device
    all of the slack is watched. Where it was resized, which is the kernel's right (out= does it),
    canaries are data as far as it reaches now."""
    buffer, end = allocation.buffer, _LEAD_BYTES + allocation.nbytes
    if buffer.device.type == "cuda":
        return buffer[:_LEAD_BYTES], buffer[max(end, round_up(allocation.resized_to, 8)) :]
    before, after = buffer[SLACK_BYTES:_LEAD_BYTES], buffer[end : end + GUARD_BYTES]
    return (before,) if allocation.resized_to else (before, after)


def _differs(zone: torch.Tensor, dtype: torch.dtype, guard: Poison) -> torch.Tensor | bool:
    """Whether a zone holds something else than was drawn there: on a device, still there."""
    if zone.device.type == "cuda":
        return elsewise(zone, dtype, guard).any()
    word = poison_word(dtype, guard)
    return bool(zone.numpy().tobytes() != word * (zone.numel() // len(word)))


def _brought(marks: Sequence[torch.Tensor | bool]) -> list[bool]:
    """To the host, all at once."""
    there = [mark for mark in marks if isinstance(mark, torch.Tensor)]
    here: Iterator[bool] = iter(torch.stack(there).tolist() if there else [])
    return [next(here) if isinstance(mark, torch.Tensor) else mark for mark in marks]


def _distance(zone: torch.Tensor, dtype: torch.dtype, guard: Poison, *, from_end: bool) -> int:
    """How many bytes lie between the allocation and the nearest that was changed."""
    marks = elsewise(zone, dtype, guard)
    wrong, size = marks.nonzero(), zone.numel() // marks.numel()
    return zone.numel() - (int(wrong[-1]) + 1) * size if from_end else int(wrong[0]) * size


def _carvable(plain: Any) -> bool:
    return (
        type(plain) is torch.Tensor
        and plain.layout is torch.strided
        and plain.device.type in ("cpu", "cuda")
        and plain.dtype in NAMES
        and plain.untyped_storage().nbytes() > 0
        and not plain.is_pinned()
    )


def _on_integers(values: Any) -> bool:
    """Whether no tensor among an operation's operands and results holds anything else."""
    tensors = (leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor))
    return not any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors)


_FEW: Final = 16
"""So many real numbers a wrapper may read, to choose a launch by them."""


def _is_to_host(values: Any) -> bool:
    """Whether an operation moves real numbers between the device and where the host may compute."""
    tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    kinds = {tensor.device.type for tensor in tensors}
    return kinds == {"cpu", "cuda"} and any(
        tensor.device.type == "cpu" and tensor.is_floating_point() and tensor.numel() > _FEW
        for tensor in tensors
    )


def _is_view(func: Any) -> bool:
    """Some return value aliases an argument that is not written to."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


class Inputs:
    """Rebuilds the arguments of a call over one mapped arena (and its copy on the device)."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._blocks: list[torch.Tensor] = []
        self.storages: list[torch.UntypedStorage] = []
        self.ranges: list[Range] = []

    def stage(self, arena: torch.Tensor, call: Mapping[str, Any], *, fresh: bool) -> list[Any]:
        """The positional arguments. On a GPU the whole block, canaries included, is copied over."""
        start, end = call["start"], call["end"]
        block = arena[start:end]
        if self._device.type == "cuda":
            block = self._device_block(block, fresh)
        self.storages = [_storage(block, slot, start) for slot in call["slots"]]
        self.ranges = [(s.data_ptr(), s.data_ptr() + s.nbytes()) for s in self.storages]
        return [argument(spec, self.storages) for spec in call["args"]]

    def _device_block(self, block: torch.Tensor, fresh: bool) -> torch.Tensor:
        last = self._blocks[-1] if self._blocks else None
        if fresh or last is None or last.numel() != block.numel():
            self._blocks = self._blocks[-_KEPT_BLOCKS:]
            self._blocks.append(torch.empty_like(block, device=self._device))
        self._blocks[-1].copy_(block)
        return self._blocks[-1]

    def copy_back(self, arena: torch.Tensor, call: Mapping[str, Any]) -> None:
        """Show the referee what the device memory looks like now."""
        if self._device.type == "cuda":
            arena[call["start"] : call["end"]].copy_(self._blocks[-1])


_KEPT_BLOCKS: Final = 8
"""Earlier device blocks kept, so that a fresh placement is at an address not used just before."""


def _storage(block: torch.Tensor, slot: Mapping[str, int], base: int) -> torch.UntypedStorage:
    """A storage of exactly the slot's bytes: nothing betrays the arena around it."""
    nbytes, start = slot["nbytes"], slot["start"] - base
    if block.device.type == "cpu":
        if nbytes == 0:
            return torch.empty(0, dtype=torch.uint8).untyped_storage()
        view = memoryview(block.numpy().data)[start : start + nbytes]
        return torch.frombuffer(view, dtype=torch.uint8).untyped_storage()
    # Without this function of torch's (it serves CUDA graphs) there would be no storage of its own.
    pointer = block.data_ptr() + start
    made: Any = torch._C._construct_storage_from_data_pointer(pointer, block.device, nbytes)
    return made  # type: ignore[no-any-return]


def argument(spec: Mapping[str, Any], storages: list[torch.UntypedStorage]) -> Any:
    if "slot" not in spec:
        return spec["value"]
    storage = storages[spec["slot"]]
    tensor = torch.empty(0, dtype=DTYPES[spec["dtype"]], device=storage.device)
    tensor.set_(storage, spec["offset"], spec["shape"], spec["stride"])
    return tensor.requires_grad_() if spec["requires_grad"] else tensor
