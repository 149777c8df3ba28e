"""KernelBench problems as tasks of ours: ``python -m verifier import kernelbench``.

A problem is a file with ``Model``, ``get_inputs`` and ``get_init_inputs``. It promises one shape
and dtype, so its task has no dims. Its sizes may be beyond what float64 on a CPU can check: then
a second task, at smaller sizes and labelled so, is made of the same code. See ``decide`` for what
its verdicts mean.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import torch

from verifier.contract import parse_contract
from verifier.conventions.module import to_plain
from verifier.exchange.probe import (
    HEAVY,
    LIGHT,
    Origin,
    Problem,
    ProblemError,
    Shape,
    Sketch,
    Trial,
    sketch,
    trial,
)
from verifier.exchange.scaling import Cost, replaced, scale
from verifier.records import GateId, GateStatus, Outcome, Verdict

MAX_NBYTES: Final = 1 << 20
SCALED: Final = "scaled"
"""Tag, and end of the slug, of a task that is a problem at smaller sizes."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to import. ``elements`` and ``flops`` bound the scaled task: the greatest tensor anywhere
    in it, and one forward pass."""

    seed: int = 42
    elements: int = 1 << 14
    flops: int = 1 << 26
    library_calls: bool | None = None
    """Whether library calls are a fair answer; None asks the problem (see ``_composes``)."""


@dataclass(frozen=True, slots=True)
class Imported:
    """One task, ready to be written: task.json as a document, reference.py as text."""

    slug: str
    contract: dict[str, Any]
    reference: str
    scaled: bool
    elements: int
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of a scaled task: each replaced integer, before and after."""

    def write(self, folder: Path) -> Path:
        """Write the task's folder below ``folder``."""
        target = folder / self.slug
        target.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.contract, indent=1, ensure_ascii=False)
        (target / "task.json").write_text(text + "\n", encoding="utf-8")
        (target / "reference.py").write_text(self.reference, encoding="utf-8")
        return target


def import_file(path: Path, options: Options | None = None) -> list[Imported]:
    """The tasks of one problem file. Raises ProblemError, OSError."""
    level = path.parent.name if re.fullmatch(r"level\d+", path.parent.name) else ""
    name = f"{level}-{path.stem}" if level else path.stem
    return import_problem(path.read_bytes(), name, options)


Found: TypeAlias = Iterator[tuple[Path, list[Imported] | ProblemError]]
"""Each problem file with its tasks, or with the reason why there are none."""


def import_folder(folder: Path, options: Options | None = None) -> Found:
    """Every problem below a folder, in order, with its tasks or the reason why there are none."""
    for path in sorted(folder.rglob("*.py")):
        try:
            yield path, import_file(path, options)
        except ProblemError as error:
            yield path, error


def import_problem(source: bytes, name: str, options: Options | None = None) -> list[Imported]:
    """The task at the problem's own sizes first; then, where those are too big to be judged in
    full, the scaled one. Raises ProblemError saying what is wrong with the file."""
    chosen = options or Options()
    tree = _parsed(source)
    own = sketch(Problem(tree), chosen.seed)
    sizes = {}
    if _cost(own, chosen).worst > 1:
        sizes = scale(tree, lambda trial_tree: _try_cost(trial_tree, chosen))
    small_tree = replaced(tree, sizes)
    small = Problem(small_tree)
    seen = sketch(small, chosen.seed)
    tried = _tried(small, seen, chosen)
    names = small.names(len(own.inputs))
    text = source.decode()
    make = _Maker(name, names, chosen, tried, hashlib.sha256(source).hexdigest())
    tasks = [make.task(own, text, {})]
    if sizes:
        changes = {_where(c.name, c.place): (c.value, size) for c, size in sizes.items()}
        tasks.append(make.task(seen, ast.unparse(small_tree) + "\n", changes))
    return tasks


def _parsed(source: bytes) -> ast.Module:
    if len(source) > MAX_NBYTES:
        raise ProblemError(f"it is {len(source):,} bytes; the limit is {MAX_NBYTES:,}")
    try:
        return ast.parse(source.decode())
    except UnicodeDecodeError as error:
        raise ProblemError(f"it is not UTF-8: {error.reason} at byte {error.start}") from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ProblemError(f"it is no Python: {error}") from error


def _cost(seen: Sketch, options: Options) -> Cost:
    return Cost(seen.elements / options.elements, seen.flops / options.flops)


def _try_cost(tree: ast.Module, options: Options) -> Cost | None:
    try:
        return _cost(sketch(Problem(tree), options.seed), options)
    except ProblemError:
        return None


def _tried(small: Problem, seen: Sketch, options: Options) -> Trial | None:
    """A real run; None where even the scaled sizes are too big for one."""
    if _cost(seen, options).worst > 64:
        return None
    try:
        return trial(small, options.seed)
    except ProblemError:
        raise
    except Exception as error:
        raise ProblemError(f"it cannot be called: {type(error).__name__}: {error}") from error


def _where(name: str, place: int) -> str:
    return name if place < 0 else f"{name}[{place}]"


@dataclass(frozen=True, slots=True)
class _Maker:
    """What the tasks of one problem share."""

    name: str
    names: list[str]
    options: Options
    tried: Trial | None
    sha256: str

    def task(self, seen: Sketch, text: str, sizes: dict[str, tuple[int, int]]) -> Imported:
        scaled = bool(sizes)
        slug = _slug(self.name) + (f"-{SCALED}" if scaled else "")
        document = self._contract(slug, seen, sizes)
        parse_contract(document)
        header = f'"""KernelBench problem {self.name} (sha256 {self.sha256})."""\n'
        reference = f"{text.rstrip()}\n\n\n{_FOOTER.format(header=header, seed=self.options.seed)}"
        return Imported(slug, document, reference, scaled, seen.elements, sizes)

    def _contract(
        self, slug: str, seen: Sketch, sizes: dict[str, tuple[int, int]]
    ) -> dict[str, Any]:
        inputs, scalars = self._arguments(seen)
        document: dict[str, Any] = {
            "slug": slug,
            "title": self.name.replace("_", " ").strip(),
            "category": "KernelBench",
            "convention": "kernelbench",
            "module": {"init": self._init(seen), "seed": self.options.seed},
            "dims": {},
            "inputs": inputs,
            "scalars": scalars,
            "order": self.names,
            "outputs": [
                {"name": name, "shape": list(out.shape), "dtype": _dtype_name(out.dtype)}
                for name, out in zip(_output_names(seen, self.names), seen.outputs, strict=True)
            ],
            "behaviour": {
                "fixed_shape": True,
                "library_calls": self._library_calls(seen),
                "random": self.tried is not None and self.tried.random,
            },
            "loose": {"fill": _fill(seen.origins)},
            "description": _description(sizes),
            "tags": ["kernelbench", *([SCALED] if sizes else [])],
        }
        return document

    def _init(self, seen: Sketch) -> list[Any]:
        try:
            return [to_plain(value) for value in seen.init]
        except ValueError as error:
            raise ProblemError(f"get_init_inputs: {error}") from error

    def _library_calls(self, seen: Sketch) -> bool:
        given = self.options.library_calls
        return _composes(seen.operations) if given is None else given

    def _arguments(self, seen: Sketch) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        inputs, scalars = [], []
        values = self.tried.inputs if self.tried else [None] * len(seen.inputs)
        for name, item, origin, value in zip(
            self.names, seen.inputs, seen.origins, values, strict=True
        ):
            if isinstance(item, Shape):
                domain = _domain(item, origin, value)
                inputs.append(
                    {
                        "name": name,
                        "shape": list(item.shape),
                        "dtype": _dtype_name(item.dtype),
                        **({"domain": domain} if domain else {}),
                    }
                )
            elif item is None or isinstance(item, bool | int | float | str):
                scalars.append({"name": name, "value": item})
            else:
                raise ProblemError(f"get_inputs gives a {type(item).__name__} as '{name}'")
        if not inputs:
            raise ProblemError("get_inputs gives no tensor")
        return inputs, scalars


_FOOTER: Final = """\
{header}from verifier.exchange.reference import module_reference  # noqa: E402

reference = module_reference(Model, get_init_inputs, seed={seed})
"""


def _slug(name: str) -> str:
    return "kernelbench-" + (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "problem")


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _output_names(seen: Sketch, taken: list[str]) -> list[str]:
    if len(seen.outputs) == 1:
        return ["out" if "out" not in taken else "output"]
    return [f"out{place}" for place in range(len(seen.outputs))]


def _fill(origins: tuple[Origin | None, ...]) -> str:
    """The pattern of the loose test: what most of the problem's own inputs are drawn from."""
    factories = [origin.factory for origin in origins if origin]
    return "normal" if factories.count("randn") > factories.count("rand") else "uniform"


def _description(sizes: dict[str, tuple[int, int]]) -> str:
    if not sizes:
        return "A KernelBench problem at its own sizes."
    changes = ", ".join(f"{name} {old} -> {new}" for name, (old, new) in sizes.items())
    return (
        f"A KernelBench problem, SCALED: {changes}. A kernel with the problem's sizes fixed in it "
        "may fail here without being wrong: the problem's own sizes decide."
    )


def _composes(operations: tuple[str, ...]) -> bool:
    """Whether something else surrounds what a library is usually asked for. Then KernelBench lets
    a kernel leave that to the library; a problem that is one operation asks for that very one."""
    computing = [name for name in operations if name not in LIGHT]
    heavy = [name for name in computing if name in HEAVY]
    return bool(heavy) and len(computing) > len(heavy)


# --- domains


def _domain(item: Shape, origin: Origin | None, value: Any) -> dict[str, Any] | None:
    """Which values an input may hold.

    Straight from rand or randn: any, for that a test draws from [0, 1) is no promise about callers.
    Integers: those of randint. All else keeps the structure that was seen, or the range.
    """
    if item.dtype is torch.bool:
        return {"kind": "bool"}
    if not (item.dtype.is_floating_point or item.dtype.is_complex):
        return _index_domain(origin, value)
    if origin and origin.factory in ("rand", "randn"):
        return None
    if not isinstance(value, torch.Tensor) or value.numel() == 0:
        return None
    structure = _structure(value)
    if structure:
        return {"structure": structure, "nonfinite": False, "extreme": False}
    low, high = float(value.min()), float(value.max())
    return {"low": low, "high": high, "nonfinite": False, "extreme": False}


def _index_domain(origin: Origin | None, value: Any) -> dict[str, Any]:
    if origin and origin.factory == "randint":
        return {"kind": "index", "low": origin.low, "high": origin.high}
    if isinstance(value, torch.Tensor) and value.numel():
        return {"kind": "index", "low": int(value.min()), "high": int(value.max()) + 1}
    return {"kind": "index", "low": 0, "high": 2}


def _structure(value: torch.Tensor) -> str | None:
    """What a float tensor shows besides its range."""
    if bool((value.abs() == 1).all()) and bool((value < 0).any()):
        return "signs"
    if value.dim() >= 1 and bool((value >= 0).all()):
        sums = value.sum(-1)
        if value.shape[-1] > 1 and torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
            return "simplex"
    if value.dim() >= 2 and value.shape[-1] == value.shape[-2] and value.shape[-1] > 1:
        if torch.equal(value, value.tril()):
            return "lower_triangular"
        if torch.equal(value, value.triu()):
            return "upper_triangular"
        if torch.equal(value, value.mT):
            return "symmetric"
    return None


# --- what two verdicts mean together


@dataclass(frozen=True, slots=True)
class Decision:
    """What is held against a kernel, and why."""

    outcome: Outcome
    reason: str


def decide(scaled: Verdict, original: Verdict | None) -> Decision:
    """The outcome for a kernel judged at smaller sizes and, where that was affordable, at its own.

    A kernel that is right at the smaller sizes works there, so whatever its gates find counts. One
    that is wrong there may have its sizes fixed in it: then only the problem's own sizes can say.
    """
    agrees = scaled.gates[GateId.AGREEMENT.number - 1].status is GateStatus.PASS
    if agrees:
        if original is not None and original.outcome is Outcome.REJECTED:
            return Decision(Outcome.REJECTED, "rejected at the problem's own sizes")
        return Decision(scaled.outcome, "it works at smaller sizes, where every gate was tried")
    if original is None:
        return Decision(
            Outcome.UNDECIDED, "wrong at smaller sizes only counts with a verdict at its own"
        )
    return Decision(original.outcome, "specialised: only the problem's own sizes were judged")


def as_scaled(contract: dict[str, Any]) -> bool:
    """Whether a task document is a scaled one."""
    return SCALED in contract.get("tags", ())
