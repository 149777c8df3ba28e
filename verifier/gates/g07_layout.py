"""G7, layout: the same values give the same result however they lie in memory.

Each input, and all of them together, is handed over transposed, as every second element, from an
odd offset, with stride 0, channels last, or as slices of one packed buffer. Storage that the view
leaves out holds NaN, so a kernel that ignores strides shows itself. What agrees with golden is
right; of what does not, the kernel's own contiguous result, bitwise, says whether layout is why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import torch

from verifier.contract import Contract, DomainKind, Input, LayoutName
from verifier.gate import Finding, failed, not_applicable, passed
from verifier.records import CaseRecord, DeviceMode, GateId, GateInfo
from verifier.referee.bench import Bench
from verifier.referee.compare import bitwise, worst
from verifier.referee.paths import other_paths
from verifier.subject import Arg, Reply, Subject


def _garbage(tensor: torch.Tensor, count: int) -> torch.Tensor:
    """What lies outside the view: NaN, or for integers the tensor's own values, out of place."""
    if tensor.is_floating_point() or tensor.is_complex():
        return torch.full((count,), float("nan")).to(tensor.dtype)
    values = tensor.flatten().flip(0)
    return values.repeat(-(-count // values.numel()))[:count]


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


def _step2(tensor: torch.Tensor) -> torch.Tensor:
    wide = _garbage(tensor, 2 * tensor.numel()).reshape(*tensor.shape[:-1], -1)
    wide[..., ::2] = tensor
    return wide[..., ::2]


def _offset(tensor: torch.Tensor) -> torch.Tensor:
    """One element into the storage: contiguous, and never aligned to 16 bytes."""
    storage = _garbage(tensor, tensor.numel() + 2)
    view = storage[1:-1].view(tensor.shape)
    return view.copy_(tensor)


def _repeated(tensor: torch.Tensor, first: torch.Tensor, axes: int) -> torch.Tensor:
    """``first`` with stride 0 along the first axes, in a storage as large as the plain tensor's: a
    kernel that takes it for contiguous reads garbage, not past the end."""
    storage = _garbage(tensor, tensor.numel())
    storage[: first.numel()] = first.flatten()
    strides = [0] * axes + list(first.stride())
    return storage.as_strided(tensor.shape, strides)


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    return _repeated(tensor, tensor[0].contiguous(), 1)


def _broadcast(tensor: torch.Tensor) -> torch.Tensor:
    """One value for everything, as the gradient that ``.sum()`` hands back."""
    return _repeated(tensor, tensor.flatten()[0], tensor.dim())


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous(memory_format=torch.channels_last)


BROADCAST: Final = "broadcast"
PACKED: Final = "packed"
LAYOUTS: Final[Mapping[str, tuple[Callable[[torch.Tensor], torch.Tensor], int]]] = {
    LayoutName.TRANSPOSED.value: (_transposed, 2),
    LayoutName.STEP2.value: (_step2, 1),
    LayoutName.OFFSET.value: (_offset, 1),
    LayoutName.EXPANDED.value: (_expanded, 1),
    LayoutName.CHANNELS_LAST.value: (_channels_last, 4),
    BROADCAST: (_broadcast, 1),
}
"""Each layout: how to build it, and how many axes it takes (channels last takes exactly four)."""

ONE_BY_ONE: Final = (LayoutName.TRANSPOSED.value, LayoutName.STEP2.value)
"""In the interpreter, where calls are dear, only these are tried on each input by itself."""


def _possible(contract: Contract, item: Input, layout: str) -> bool:
    axes = LAYOUTS[layout][1]
    if len(item.shape) != axes if axes == 4 else len(item.shape) < axes:
        return False
    if layout not in (LayoutName.EXPANDED, BROADCAST):
        return True
    written = any(out.in_place_of == item.name for out in contract.outputs)
    return not written and item.domain.kind is not DomainKind.OFFSETS


def _packable(contract: Contract) -> list[str]:
    """The largest group of inputs of one shape and dtype that are only read (q, k and v, say)."""
    groups: dict[tuple[object, ...], list[str]] = {}
    written = {out.in_place_of for out in contract.outputs}
    for item in contract.inputs:
        if item.shape and item.name not in written:
            groups.setdefault((*item.shape, item.dtype), []).append(item.name)
    return max(groups.values(), key=len, default=[])


def _pack(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return list(torch.cat(list(tensors), dim=-1).chunk(len(tensors), dim=-1))


def _lay_out(bench: Bench, case: CaseRecord) -> list[Arg]:
    args = bench.args(case)
    layouts: Mapping[str, str] = case.params.get("layouts", {})
    packed: list[str] = case.params.get(PACKED, [])
    for name, layout in layouts.items():
        place = bench.position(name)
        tensor = args[place]
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            args[place] = LAYOUTS[layout][0](tensor)
    places = [bench.position(name) for name in packed]
    tensors = [a for a in (args[place] for place in places) if isinstance(a, torch.Tensor)]
    if tensors and tensors[0].numel():
        for place, view in zip(places, _pack(tensors), strict=True):
            args[place] = view
    return args


def _plain(args: Sequence[Arg]) -> list[Arg]:
    return [
        arg.clone(memory_format=torch.contiguous_format) if isinstance(arg, torch.Tensor) else arg
        for arg in args
    ]


def _dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """No holes and no repeats, in whatever order of axes."""
    expected = 1
    for step, size in sorted((s, n) for n, s in zip(shape, stride, strict=True) if n != 1):
        if step != expected:
            return 0 in shape
        expected *= size
    return True


def _sparse_output(reply: Reply) -> Finding | None:
    for output, info in zip(reply.outputs, reply.infos, strict=True):
        if not _dense(output.shape, info.stride) and not info.alias_inputs:
            shape, stride = list(output.shape), list(info.stride)
            return failed(f"an output of shape {shape} is not dense: its strides are {stride}")
    return None


class Layout:
    info = GateInfo(
        GateId.LAYOUT,
        "Layout",
        "the same values give the same result in any memory layout, or a plain refusal",
        tolerance_free=True,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        """Not to random draws, which no two layouts have in common."""
        if bench.contract.behaviour.random:
            return "draws random numbers"
        return None if any(item.shape for item in bench.contract.inputs) else "no input has an axis"

    def cases(self, bench: Bench) -> Iterable[CaseRecord]:
        for layout in LAYOUTS:
            fill = "ones" if layout == BROADCAST else "normal"
            for label, names in self._groups(bench, layout):
                layouts = dict.fromkeys(names, layout)
                yield bench.case(GateId.LAYOUT, f"{layout}-{label}", fill=fill, layouts=layouts)
        names = _packable(bench.contract)
        if len(names) > 1:
            yield bench.case(GateId.LAYOUT, f"packed-{'-'.join(names)}", packed=names)
        yield from self._elsewhere(bench)

    def _elsewhere(self, bench: Bench) -> Iterator[CaseRecord]:
        """On the kernel's other paths, one input after the other transposed, or where no input can
        be, made of every second element."""
        for layout in ONE_BY_ONE:
            inputs = [i.name for i in bench.contract.inputs if _possible(bench.contract, i, layout)]
            if inputs:
                break
        for place, path in enumerate(other_paths(bench, GateId.LAYOUT)):
            name = inputs[place % len(inputs)]
            yield bench.case(
                GateId.LAYOUT,
                f"{layout}-{name}, {path.name}",
                dims=path.dims,
                dtypes=path.dtypes,
                layouts={name: layout},
                path=path.name,
            )

    def _groups(self, bench: Bench, layout: str) -> Iterator[tuple[str, list[str]]]:
        contract = bench.contract
        names = [i.name for i in contract.inputs if _possible(contract, i, layout)]
        if len(names) == 1 or bench.mode is DeviceMode.CUDA or layout in ONE_BY_ONE:
            yield from ((name, [name]) for name in names)
        if len(names) > 1:
            yield "all", names

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """Against golden; what that does not settle, against its own contiguous result."""
        args = _lay_out(bench, case)
        reply = subject.call(args)
        finding = self._by_golden(bench, case, args, reply)
        if finding.passed:
            return finding
        return self._by_its_own(bench, case, args, reply, subject) or finding

    def _by_golden(
        self, bench: Bench, case: CaseRecord, args: Sequence[Arg], reply: Reply
    ) -> Finding:
        refused = bench.refused(reply)
        if refused:
            return self._refusal(bench, case, refused)
        outputs = bench.results(case, args, reply)
        if isinstance(outputs, Finding):
            return outputs
        finding = _sparse_output(reply) or bench.compare(case, args, outputs)
        if finding.passed:
            return passed("agrees with golden")
        return replace(finding, detail=f"{case.label}: {finding.detail}")

    def _by_its_own(
        self, bench: Bench, case: CaseRecord, args: Sequence[Arg], reply: Reply, subject: Subject
    ) -> Finding | None:
        """None where the finding against golden stands."""
        plain = _plain(args)
        own = bench.formed(case, plain, subject.call(plain))
        if isinstance(own, Finding):
            return own
        outputs = bench.results(case, args, reply)
        if isinstance(outputs, Finding) or _sparse_output(reply):
            return None
        pairs = zip(bench.contract.outputs, own, outputs, strict=True)
        same = worst([bitwise(out.name, a, b, "layout matters") for out, a, b in pairs])
        return passed("bitwise equal to its own contiguous result") if same.passed else None

    def _refusal(self, bench: Bench, case: CaseRecord, refused: Finding) -> Finding:
        layouts = set(case.params.get("layouts", {}).values())
        if layouts & set(bench.contract.behaviour.refused_layouts):
            return refused
        return not_applicable(f"{refused.detail} (the contract declares no such refusal)")


GATE = Layout()
