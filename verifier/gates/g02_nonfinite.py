"""Gate 2, non-finite propagation: NaN, +Inf and -Inf appear where the reference has them.

Special values are planted in each float input in turn; the maps of NaN, +Inf and -Inf must equal
golden's (in the output dtype) or eager's at every place. What stays finite is compared softly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import torch

from verifier.contract import Causality, Input, NanPolicy, Output
from verifier.gate import Finding, not_applicable
from verifier.records import CaseRecord, DeviceMode, GateId, GateInfo
from verifier.referee.bench import Bench, Tensors
from verifier.referee.compare import check_output, worst
from verifier.referee.generator import Stream
from verifier.referee.inputs import torch_dtype
from verifier.referee.paths import PATH, other_paths
from verifier.referee.probes import first_dtypes, float_inputs, judged_dtypes, tiny_dims
from verifier.subject import Arg, Subject

NAN: Final = float("nan")
INF: Final = float("inf")
TILES: Final = (16, 32, 64, 128)

Rows = torch.Tensor
"""An input seen as rows of its last axis; plants write into it."""


def _tail(columns: int, tiles: Sequence[int]) -> int:
    """The last lane of the greatest full tile: where a loop over tiles hands over to its tail."""
    fitting = [tile for tile in tiles if tile <= columns]
    return columns // fitting[-1] * fitting[-1] - 1 if fitting else columns - 1


def _first(rows: Rows, stream: Stream, tiles: Sequence[int]) -> None:
    rows[0, 0] = NAN


def _last(rows: Rows, stream: Stream, tiles: Sequence[int]) -> None:
    rows[-1, -1] = NAN


def _middle(rows: Rows, stream: Stream, tiles: Sequence[int]) -> None:
    rows[rows.shape[0] // 2, rows.shape[1] // 2] = NAN


def _per_row(rows: Rows, stream: Stream, tiles: Sequence[int]) -> None:
    """One NaN in every second row, at another column each time; the rest must stay clean."""
    for row in range(0, rows.shape[0], 2):
        rows[row, int(stream.integers(0, rows.shape[1], 1)[0])] = NAN


def _edges(rows: Rows, stream: Stream, tiles: Sequence[int]) -> None:
    """NaN around the end of the last full tile, one row each."""
    edge = _tail(rows.shape[1], tiles)
    rows[0, edge] = NAN
    rows[rows.shape[0] // 2, min(edge + 1, rows.shape[1] - 1)] = NAN


def _plus(rows: Rows, stream: Stream, tiles: Sequence[int]) -> None:
    rows[0, rows.shape[1] // 2] = INF


def _minus(rows: Rows, stream: Stream, tiles: Sequence[int]) -> None:
    rows[-1, rows.shape[1] // 2] = -INF


def _both(rows: Rows, stream: Stream, tiles: Sequence[int]) -> None:
    """+Inf and -Inf in one row: whatever adds them up has NaN."""
    rows[0, 0], rows[0, -1] = INF, -INF


def _floor(rows: Rows, stream: Stream, tiles: Sequence[int]) -> None:
    """A whole row of -Inf, as a fully masked row of logits is."""
    rows[0] = -INF


def _mixed(rows: Rows, stream: Stream, tiles: Sequence[int]) -> None:
    """One situation a row, every sixth row clean: cheap where rows are independent."""
    plants: tuple[tuple[float, ...], ...] = ((NAN,), (INF,), (-INF,), (), (INF, -INF), (NAN, INF))
    if rows.shape[0] == 1:
        plants = ((NAN, INF, -INF),)
    for row in range(rows.shape[0]):
        for value in plants[row % len(plants)]:
            rows[row, int(stream.integers(0, rows.shape[1], 1)[0])] = value


PLANTS: Final[Mapping[str, Callable[[Rows, Stream, Sequence[int]], None]]] = {
    "NaN in the last lane": _last,
    "NaN in every second row": _per_row,
    "NaN at a tile's edge": _edges,
    "NaN first": _first,
    "mixed rows": _mixed,
    "NaN in the middle": _middle,
    "+Inf": _plus,
    "-Inf": _minus,
    "+Inf and -Inf": _both,
    "a row of -Inf": _floor,
    "0 * Inf": _plus,
}
INFINITE_ONLY: Final = frozenset({"+Inf", "-Inf", "a row of -Inf"})
SCATTERED: Final = frozenset({"NaN in every second row", "NaN at a tile's edge", "mixed rows"})
"""Plants at several positions: which of them a causal output may depend on is not told apart."""
SHORT: Final = frozenset({"NaN in the last lane", "mixed rows", "NaN in the middle", "-Inf"})
"""What is tried again in other dtypes and, where calls are dear, in further inputs."""
MOST_TELLING: Final = ("mixed rows", "NaN in the middle", "+Inf")
"""The first of these that an input allows goes to other sizes."""


class Nonfinite:
    """G2."""

    info = GateInfo(
        GateId.NONFINITE,
        "Non-finite propagation",
        "NaN, +Inf and -Inf appear exactly where the reference has them",
        tolerance_free=True,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        """Not for random draws, nor where no input may hold a non-finite value."""
        if bench.contract.behaviour.random:
            return "draws random numbers"
        if not float_inputs(bench, first_dtypes(bench)):
            return "no floating-point input"
        if not _targets(bench, first_dtypes(bench)):
            return "the contract's domains exclude non-finite values"
        return None

    def cases(self, bench: Bench) -> Iterator[CaseRecord]:
        """Each plant in each input; the most telling ones again in the other dtypes."""
        dims = tiny_dims(bench, bench.budget // 16)
        assignments = judged_dtypes(bench)
        for number, dtypes in enumerate(assignments[: 2 if _dear(bench) else None]):
            for place, target in enumerate(_targets(bench, dtypes)):
                short = number > 0 or (place > 0 and _dear(bench))
                for plant in _plants(bench, dtypes, target, short=short):
                    yield self._case(bench, dims, dtypes, target, plant)
        target = _targets(bench, assignments[0])[0]
        for plant in ("NaN in every second row", "NaN in the middle"):
            if plant in _plants(bench, assignments[0], target, short=False):
                yield self._case(bench, dims, assignments[0], target, plant, "logits")
        yield from self._elsewhere(bench)

    def _elsewhere(self, bench: Bench) -> Iterator[CaseRecord]:
        """The most telling plant on the kernel's other paths, in one input after the other."""
        for place, path in enumerate(other_paths(bench, self.info.id)):
            targets = _targets(bench, path.dtypes)
            if not targets:
                continue
            target = targets[place % len(targets)]
            possible = _plants(bench, path.dtypes, target, short=False)
            plant = next(plant for plant in MOST_TELLING if plant in possible)
            case = self._case(bench, path.dims, path.dtypes, target, plant)
            params = {**case.params, PATH: path.name}
            yield replace(case, label=f"{case.label}, {path.name}", params=params)

    def _case(
        self,
        bench: Bench,
        dims: Mapping[str, int],
        dtypes: Mapping[str, str],
        target: Input,
        plant: str,
        fill: str = "normal",
    ) -> CaseRecord:
        large = " beside large values" if fill == "logits" else ""
        kinds = "/".join(dtypes.values())
        return bench.case(
            self.info.id,
            f"{plant} in {target.name}{large}, {kinds}".removesuffix(", "),
            dims=dims,
            dtypes=dtypes,
            fill=fill,
            input=target.name,
            plant=plant,
            tiles=_tiles(bench),
        )

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """Plant, call, compare the maps."""
        args = bench.args(case)
        if not _plant(bench, case, args):
            return not_applicable("the input is empty at this shape")
        if _undefined(bench, args):
            return not_applicable("the contract leaves NaN undefined")
        reply = subject.call(args)
        refused = bench.refused_values(case, reply, subject)
        outputs = refused or bench.results(case, args, reply)
        if isinstance(outputs, Finding):
            return outputs
        if _causal(bench, case):
            return _compare_causal(bench, case, bench.args(case), args, outputs)
        return bench.compare(case, args, outputs)


GATE: Final = Nonfinite()


def _dear(bench: Bench) -> bool:
    return bench.mode is DeviceMode.CPU_INTERPRET


def _targets(bench: Bench, dtypes: Mapping[str, str]) -> list[Input]:
    return [item for item in float_inputs(bench, dtypes) if item.domain.allows_nonfinite]


def _tiles(bench: Bench) -> list[int]:
    return sorted({*TILES, *bench.constants})


def _plants(bench: Bench, dtypes: Mapping[str, str], target: Input, *, short: bool) -> list[str]:
    """The plants worth trying for one input."""
    behaviour = bench.contract.behaviour
    names = set(SHORT if short else PLANTS)
    if any(target.name in relation.inputs for relation in behaviour.causal):
        names -= SCATTERED
    else:
        names.discard("NaN in the middle")
    if _has_integer_output(bench, dtypes):
        names.discard("a row of -Inf")  # all elements tie: any index is right
    if behaviour.nan is NanPolicy.UNDEFINED:
        names &= INFINITE_ONLY
    if len(float_inputs(bench, dtypes)) < 2:
        names.discard("0 * Inf")
    return [name for name in PLANTS if name in names]


def _has_integer_output(bench: Bench, dtypes: Mapping[str, str]) -> bool:
    kinds = (torch_dtype(bench.contract.dtype(out, dtypes)) for out in bench.contract.outputs)
    return any(not kind.is_floating_point and not kind.is_complex for kind in kinds)


def _plant(bench: Bench, case: CaseRecord, args: list[Arg]) -> bool:
    """Write the case's special values into ``args``; False when there is no room for any."""
    named = bench.named(args)
    tensor = named[case.params["input"]]
    assert isinstance(tensor, torch.Tensor)  # noqa: S101 - inputs are tensors
    if tensor.numel() == 0:
        return False
    if case.params["plant"] == "0 * Inf":
        for item in float_inputs(bench, case.dtypes):
            other = named[item.name]
            if isinstance(other, torch.Tensor) and item.name != case.params["input"]:
                other.zero_()
    rows = tensor.view(-1, tensor.shape[-1] if tensor.dim() else 1)
    PLANTS[case.params["plant"]](rows, Stream(case.seed, "plant"), case.params["tiles"])
    return True


def _undefined(bench: Bench, args: Sequence[Arg]) -> bool:
    """Whether a NaN arises on the way although the contract says nothing about NaN."""
    if bench.contract.behaviour.nan is not NanPolicy.UNDEFINED:
        return False
    golden = bench.golden(args)
    return not isinstance(golden, str) and any(bool(out.isnan().any()) for out in golden)


def _causal(bench: Bench, case: CaseRecord) -> list[Causality]:
    causal = bench.contract.behaviour.causal
    return [relation for relation in causal if case.params["input"] in relation.inputs]


def _compare_causal(
    bench: Bench, case: CaseRecord, clean: Sequence[Arg], args: Sequence[Arg], outputs: Tensors
) -> Finding:
    """As ``bench.compare``, but outputs before the first planted position may be clean.

    0 * NaN makes an eager attention leak from keys that it masks; a kernel that skips those keys
    is better than eager, and must not be accused for it.
    """
    dirty, eager = bench.golden(args), bench.eager(args)
    pure, pure_eager = bench.golden(clean), bench.eager(clean)
    if isinstance(dirty, str) or isinstance(pure, str):
        return not_applicable(f"the reference refuses this input: {dirty}")
    if not eager.returned or not pure_eager.returned:
        return not_applicable(f"eager refuses this input: {eager.detail}")
    findings = []
    for number, out in enumerate(bench.contract.outputs):
        got, leaky = outputs[number], eager.outputs[number]
        leaks = ~got.isfinite() & ~leaky.isfinite()
        better = _protected(bench, case, clean, args, out) & ~leaks
        golden = torch.where(better, pure[number], dirty[number])
        ref = torch.where(better, pure_eager.outputs[number], leaky)
        rule = bench.rule(bench.contract.dtype(out, case.dtypes))
        findings.append(check_output(out.name, golden, ref, got, rule))
    return worst(findings)


def _protected(
    bench: Bench, case: CaseRecord, clean: Sequence[Arg], args: Sequence[Arg], out: Output
) -> torch.Tensor:
    """Places of an output that, by causality, cannot depend on what was planted."""
    shape = bench.contract.shape(out, case.dims)
    mask = torch.zeros(shape, dtype=torch.bool)
    position = bench.position(case.params["input"])
    before, after = clean[position], args[position]
    assert isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor)  # noqa: S101, PT018
    changed = (before != after).nonzero()
    for relation in _causal(bench, case):
        spec = bench.contract.input(case.params["input"])
        axes = bench.contract.axes(spec, relation.dim)
        places = bench.contract.axes(out, relation.output_dim or relation.dim)
        if axes and places and len(changed):
            mask.narrow(places[0], 0, min(int(changed[:, axes[0]].min()), shape[places[0]])).fill_(
                True
            )
    return mask
