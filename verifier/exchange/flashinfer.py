"""FlashInfer-Bench's documents: Definition, Workload and Solution in, Trace out.

Plain JSON on both sides; none of its code is used. A Definition with its Workloads becomes a task
folder, a Solution a kernel (its own document is the source: convention ``flashinfer``), a Verdict
a Trace. The rules checked here are those of the published schema.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from verifier.contract import DTYPES, TaskError, parse_contract
from verifier.expressions import ExpressionError, names
from verifier.records import Counterexample, GateId, Outcome, Verdict

MAX_NBYTES: Final = 16 << 20
CANDIDATES: Final = (1, 7, 16, 33)
"""Small sizes to try of an axis that may vary, besides those of its workloads."""
DEFINITION_FILE: Final = "definition.json"
SOLUTION_FILE: Final = "solution.json"


class FormatError(ValueError):
    """A document does not fit the schema, or says what we cannot do; the message says where."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A task and, where a solution came along, a kernel for it."""

    contract: dict[str, Any]
    reference: str
    definition: Mapping[str, Any]
    solution: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    """What the task does not keep of the definition."""
    workloads: tuple[Mapping[str, Any], ...] = ()

    def write(self, folder: Path) -> Iterator[Path]:
        """Write the task's folder (and the solution in it) below ``folder``; what was written."""
        target = folder / self.contract["slug"]
        target.mkdir(parents=True, exist_ok=True)
        _dump(target / "task.json", self.contract)
        (target / "reference.py").write_text(self.reference, encoding="utf-8")
        _dump(target / DEFINITION_FILE, self.definition)
        lines = (json.dumps(workload) + "\n" for workload in self.workloads)
        (target / "workloads.jsonl").write_text("".join(lines), encoding="utf-8")
        yield target
        if self.solution is not None:
            _dump(target / SOLUTION_FILE, self.solution)
            yield target / SOLUTION_FILE


def _dump(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def import_files(definition: Path, workloads: Path | None, solution: Path | None) -> Imported:
    """Read the files of one task. Raises FormatError."""
    lines = _read(workloads).splitlines() if workloads else []
    return import_documents(
        _parse(_read(definition), str(definition)),
        [_parse(line, f"{workloads}, line {n}") for n, line in enumerate(lines, 1) if line.strip()],
        _parse(_read(solution), str(solution)) if solution else None,
    )


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_NBYTES:
            raise FormatError(f"{path} is larger than {MAX_NBYTES:,} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: {error}") from error


def _parse(text: str, where: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise FormatError(f"{where}: no JSON: {error}") from error
    if not isinstance(document, dict):
        raise FormatError(f"{where}: no object")
    return document


def import_documents(
    definition: Mapping[str, Any],
    workloads: Sequence[Mapping[str, Any]] = (),
    solution: Mapping[str, Any] | None = None,
) -> Imported:
    """A task from a Definition, its workload traces (or bare Workloads), and maybe a Solution.

    Raises FormatError naming the field that does not fit.
    """
    checked = _Definition.check(definition)
    plain = [_workload(line, checked) for line in workloads]
    maker = _Maker(checked, plain)
    contract = maker.contract()
    try:
        parse_contract(contract)
    except TaskError as error:
        raise FormatError(f"definition {checked.name!r} makes no task: {error}") from error
    if solution is not None:
        check_solution(solution, checked.name)
    reference = _REFERENCE.format(code=checked.reference.rstrip())
    return Imported(
        contract, reference, dict(definition), solution, tuple(maker.notes), tuple(plain)
    )


_REFERENCE: Final = """\
{code}


from verifier.exchange.widening import widened  # noqa: E402

reference = widened(run)
"""


# --- reading documents


def _field(document: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    value = document.get(name)
    if not isinstance(value, kind) or (kind is str and not value):
        raise FormatError(f"{where}.{name} is no {kind.__name__}")
    return value


@dataclass(frozen=True, slots=True)
class _Definition:
    """A Definition whose fields are what the schema says."""

    name: str
    op_type: str
    axes: Mapping[str, Mapping[str, Any]]
    inputs: Mapping[str, Mapping[str, Any]]
    outputs: Mapping[str, Mapping[str, Any]]
    reference: str
    description: str
    tags: tuple[str, ...]
    constraints: tuple[str, ...]

    @classmethod
    def check(cls, document: Mapping[str, Any]) -> _Definition:
        made = cls(
            name=_field(document, "name", str, "definition"),
            op_type=_field(document, "op_type", str, "definition"),
            axes=_field(document, "axes", dict, "definition"),
            inputs=_field(document, "inputs", dict, "definition"),
            outputs=_field(document, "outputs", dict, "definition"),
            reference=_field(document, "reference", str, "definition"),
            description=document.get("description") or "",
            tags=tuple(document.get("tags") or ()),
            constraints=tuple(document.get("constraints") or ()),
        )
        made._check_axes()
        made._check_tensors()
        made._check_reference()
        return made

    def _check_axes(self) -> None:
        for name, axis in self.axes.items():
            kind = axis.get("type") if isinstance(axis, dict) else None
            if kind not in ("const", "var") or not name.isidentifier():
                raise FormatError(f"definition.axes.{name} is neither const nor var")
            value = axis.get("value")
            if kind == "const" and (type(value) is not int or value < 0):
                raise FormatError(f"definition.axes.{name}.value is no size")

    def _check_tensors(self) -> None:
        both = set(self.inputs) & set(self.outputs)
        if both:
            raise FormatError(f"'{min(both)}' is an input and an output")
        for name, spec in (*self.inputs.items(), *self.outputs.items()):
            shape = spec.get("shape") if isinstance(spec, dict) else ()
            if shape is not None and not isinstance(shape, list):
                raise FormatError(f"'{name}' has no shape")
            unknown = [axis for axis in shape or () if axis not in self.axes]
            if unknown:
                raise FormatError(f"'{name}' has the undefined axis '{unknown[0]}'")
            if spec.get("dtype") not in DTYPES:
                raise FormatError(f"'{name}' has the dtype {spec.get('dtype')!r}, unknown here")

    def _check_reference(self) -> None:
        try:
            body = ast.parse(self.reference).body
        except (SyntaxError, ValueError) as error:
            raise FormatError(f"definition.reference is no Python: {error}") from error
        if not any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in body):
            raise FormatError("definition.reference defines no function 'run'")


def _workload(document: Mapping[str, Any], definition: _Definition) -> Mapping[str, Any]:
    """The Workload of a line, which may be one or a trace that holds one."""
    inner = document.get("workload", document)
    if not isinstance(inner, dict):
        raise FormatError("a workload is no object")
    if document.get("definition", definition.name) != definition.name:
        raise FormatError(f"a workload of '{document['definition']}', not of '{definition.name}'")
    axes = _field(inner, "axes", dict, "workload")
    _field(inner, "uuid", str, "workload")
    for name, axis in definition.axes.items():
        if axis["type"] == "var" and type(axes.get(name)) is not int:
            raise FormatError(f"workload {inner['uuid']}: axis '{name}' has no size")
    return inner


def check_solution(document: Mapping[str, Any], definition: str = "") -> None:
    """Raises FormatError for what is no Solution (of this definition)."""
    for name in ("name", "definition", "author"):
        _field(document, name, str, "solution")
    if definition and document["definition"] != definition:
        raise FormatError(f"a solution of '{document['definition']}', not of '{definition}'")
    spec = _field(document, "spec", dict, "solution")
    _field(spec, "language", str, "solution.spec")
    entry = _field(spec, "entry_point", str, "solution.spec")
    sources = _field(document, "sources", list, "solution")
    paths = [_field(one, "path", str, "solution.sources") for one in sources]
    if entry.count("::") != 1 or entry.split("::")[0] not in paths:
        raise FormatError(f"solution.spec.entry_point {entry!r} names none of its sources")
    for path in paths:
        if Path(path).is_absolute() or ".." in Path(path).parts or paths.count(path) > 1:
            raise FormatError(f"solution.sources: {path!r} is no path of its own within them")


# --- making a task


@dataclass(slots=True)
class _Maker:
    definition: _Definition
    workloads: Sequence[Mapping[str, Any]]
    notes: list[str] = field(default_factory=list)

    def contract(self) -> dict[str, Any]:
        definition = self.definition
        derived = self._derived()
        constraints = self._constraints(derived)
        inputs = {n: s for n, s in definition.inputs.items() if s["shape"] is not None}
        scalars = {n: s for n, s in definition.inputs.items() if s["shape"] is None}
        return {
            "slug": _slug(definition.name),
            "title": definition.name,
            "category": definition.op_type,
            "convention": "flashinfer",
            "dims": {n: self._dim(n) for n in definition.axes if n not in derived},
            "inputs": [self._input(n, s, derived) for n, s in inputs.items()],
            "scalars": [{"name": n, "value": self._scalar(n, s)} for n, s in scalars.items()],
            "order": list(definition.inputs),
            "outputs": [_tensor(n, s, derived) for n, s in definition.outputs.items()],
            "constraints": constraints,
            "behaviour": {"library_calls": True, "random": definition.op_type == "sampling"},
            "workloads": [self._timed(w, derived) for w in self.workloads],
            "description": " ".join([definition.description, *self.notes]).strip(),
            "tags": ["flashinfer", *definition.tags],
        }

    def _derived(self) -> dict[str, str]:
        """Axes that a constraint gives by others: ``len_indptr == batch_size + 1``."""
        found: dict[str, str] = {}
        for text in self.definition.constraints:
            left, _, right = (part.strip() for part in text.partition("=="))
            axis = self.definition.axes.get(left)
            if axis is None or axis["type"] != "var" or left in found or not right:
                continue
            mentioned = _names(right)
            if mentioned and mentioned <= self.definition.axes.keys() - {left, *found}:
                found[left] = right
        return found

    def _constraints(self, derived: Mapping[str, str]) -> list[str]:
        kept = []
        for text in self.definition.constraints:
            mentioned = _names(text)
            left, _, right = (part.strip() for part in text.partition("=="))
            if right and derived.get(left) == right:
                continue
            if mentioned is not None and mentioned <= self.definition.axes.keys() - derived.keys():
                kept.append(text)
            else:
                self.notes.append(f"Not checked: {text}.")
        return kept

    def _dim(self, name: str) -> dict[str, Any]:
        axis = self.definition.axes[name]
        if axis["type"] == "const":
            size = axis["value"]
            return {"candidates": [size], "usual": size, "minimum": size, "maximum": size}
        sizes = sorted({workload["axes"][name] for workload in self.workloads})
        usual = sizes[len(sizes) // 2] if sizes else CANDIDATES[2]
        least = min([1, *sizes])
        return {
            "candidates": sorted({*sizes, *CANDIDATES}), "usual": usual, "minimum": least
        }  # fmt: skip

    def _input(
        self, name: str, spec: Mapping[str, Any], derived: Mapping[str, str]
    ) -> dict[str, Any]:
        made = _tensor(name, spec, derived)
        dtype = spec["dtype"]
        if dtype == "bool":
            return {**made, "domain": {"kind": "bool"}}
        if not dtype.startswith("int"):
            return made
        return {**made, "domain": self._integers(name)}

    def _integers(self, name: str) -> dict[str, Any]:
        """The schema does not say what integers mean; their names do, by its own usage."""
        if name.endswith("indptr"):
            stem = name.removesuffix("indptr")
            axis = next((a for a in self._variable() if stem and a.startswith(f"num_{stem}")), None)
            axis = axis or next(
                (a for a in self._variable() if a.startswith(("num_", "total_"))), None
            )
            if axis:
                return {"kind": "offsets", "high": axis}
        if "indices" in name:
            axis = next((a for a in self.definition.axes if a.startswith("num_pages")), None)
            if axis:
                return {"kind": "index", "low": 0, "high": axis}
        self.notes.append(f"The values of '{name}' are not declared: 0 and 1 are drawn.")
        return {"kind": "index", "low": 0, "high": 2}

    def _variable(self) -> list[str]:
        derived = self._derived()
        return [
            n for n, a in self.definition.axes.items() if a["type"] == "var" and n not in derived
        ]

    def _scalar(self, name: str, spec: Mapping[str, Any]) -> int | float | bool:
        given = [w["inputs"].get(name, {}).get("value") for w in self.workloads if "inputs" in w]
        values = [value for value in given if isinstance(value, int | float)]
        if len(set(values)) > 1:
            self.notes.append(f"'{name}' differs between workloads; {values[0]} is used.")
        if values:
            return values[0]
        self.notes.append(f"'{name}' is not given; 1 is used.")
        return 1 if spec["dtype"].startswith("int") else 1.0

    def _timed(self, workload: Mapping[str, Any], derived: Mapping[str, str]) -> dict[str, Any]:
        axes = self.definition.axes
        sizes = {n: a.get("value", workload["axes"].get(n)) for n, a in axes.items()}
        if any(one.get("type") == "safetensors" for one in workload.get("inputs", {}).values()):
            note = "Workloads with tensors of their own are drawn afresh."
            if note not in self.notes:
                self.notes.append(note)
        return {
            "name": workload["uuid"], "dims": {n: s for n, s in sizes.items() if n not in derived}
        }  # fmt: skip


def _names(text: str) -> frozenset[str] | None:
    """The names in an expression of ours; None where it is none."""
    try:
        return names(text)
    except ExpressionError:
        return None


def _tensor(name: str, spec: Mapping[str, Any], derived: Mapping[str, str]) -> dict[str, Any]:
    shape = [derived.get(axis, axis) for axis in spec["shape"] or ()]
    return {"name": name, "shape": shape, "dtype": spec["dtype"]}


def _slug(name: str) -> str:
    return "flashinfer-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


# --- a verdict as a trace


class Status:
    """Values of EvaluationStatus in the published schema."""

    PASSED: Final = "PASSED"
    SHAPE: Final = "INCORRECT_SHAPE"
    NUMERICAL: Final = "INCORRECT_NUMERICAL"
    DTYPE: Final = "INCORRECT_DTYPE"
    RUNTIME: Final = "RUNTIME_ERROR"
    COMPILE: Final = "COMPILE_ERROR"
    TIMEOUT: Final = "TIMEOUT"


_WORDS: Final = (
    ("could not be loaded", Status.COMPILE),
    ("timed out", Status.TIMEOUT),
    ("raised", Status.RUNTIME),
    ("crashed", Status.RUNTIME),
    ("ran out of its memory", Status.RUNTIME),
    ("returned no usable output", Status.RUNTIME),
    ("has shape", Status.SHAPE),
    ("returned", Status.SHAPE),
)
"""Words of gate findings, in the order in which they decide."""
_DTYPE_WORDS: Final = re.compile(r"^\S+ is [a-z0-9_]+, not [a-z0-9_]+$")


def export_trace(
    verdict: Verdict,
    workload: Mapping[str, Any],
    *,
    definition: str,
    solution: str,
) -> dict[str, Any]:
    """A Trace of one workload. Everything that the schema has no place for (the gates) stands in
    ``evaluation.correctness.extra`` or, where a status admits no correctness, in ``log``.

    Raises FormatError for a verdict that no status of the schema can tell: an undecided one, or
    an accepted one without a measurement of this workload (PASSED has to carry a latency).
    """
    status = trace_status(verdict)
    evaluation: dict[str, Any] = {
        "status": status,
        "environment": _environment(verdict),
        "timestamp": verdict.started_at,
        "log": json.dumps(_summary(verdict)),
    }
    if status in (Status.PASSED, Status.NUMERICAL):
        evaluation["correctness"] = _correctness(verdict)
    if status == Status.PASSED:
        evaluation["performance"] = _performance(verdict, workload["uuid"])
    return {
        "definition": definition,
        "workload": dict(workload),
        "solution": solution,
        "evaluation": evaluation,
    }


def trace_status(verdict: Verdict) -> str:
    """The status that says most of what the gates found. Raises FormatError
    for an undecided one."""
    if verdict.outcome is Outcome.ACCEPTED:
        return Status.PASSED
    if verdict.outcome is Outcome.UNDECIDED:
        raise FormatError("an undecided verdict has no status in this format")
    reason = next(gate.reason for gate in verdict.gates if gate.failed or gate.hard)
    if _DTYPE_WORDS.match(reason):
        return Status.DTYPE
    return next((status for word, status in _WORDS if word in reason), Status.NUMERICAL)


def _summary(verdict: Verdict) -> dict[str, Any]:
    return {
        "verifier": verdict.verifier_version,
        "gate_set": verdict.gate_set,
        "kernel": verdict.kernel.sha256,
        "outcome": verdict.outcome.value,
        "seed": verdict.seed,
        "gates": {result.gate.value: result.status.value for result in verdict.gates},
        "reasons": {result.gate.value: result.reason for result in verdict.gates if result.failed},
    }


def _environment(verdict: Verdict) -> dict[str, Any]:
    seen = verdict.environment
    libs = {"torch": seen.torch, "triton": seen.triton, "numpy": seen.numpy, "python": seen.python}
    return {"hardware": seen.device_name or seen.mode.value, "libs": libs}


def _correctness(verdict: Verdict) -> dict[str, Any]:
    """Errors at the first failure's own index; zero where nothing failed, for within its tolerance
    a verdict keeps no figure."""
    example = next((g.counterexample for g in verdict.gates if g.counterexample), None)
    absolute, relative = _errors(example) if example else (0.0, 0.0)
    return {
        "max_absolute_error": absolute,
        "max_relative_error": relative,
        "extra": {"kernelhub": _summary(verdict)},
    }


def _errors(example: Counterexample) -> tuple[Any, Any]:
    """Absolute and relative; 'NaN' as text, as the schema writes it, where they are no numbers."""
    try:
        expected, got = float(example.expected or ""), float(example.got or "")
    except ValueError:
        return "NaN", "NaN"
    error = abs(got - expected)
    if not error < float("inf"):
        return "NaN", "NaN"
    return error, error / abs(expected) if expected else error


def _performance(verdict: Verdict, uuid: str) -> dict[str, float]:
    rows = {row.subject: row for row in verdict.measurements if row.workload == uuid}
    kernel, eager = rows.get("kernel"), rows.get("eager")
    if kernel is None or eager is None or kernel.speedup is None:
        raise FormatError(f"workload {uuid} was not timed on a device; PASSED needs its latency")
    return {
        "latency_ms": kernel.latency_ms,
        "reference_latency_ms": eager.latency_ms,
        "speedup_factor": kernel.speedup,
    }


def traces(
    verdict: Verdict, workloads: Sequence[Mapping[str, Any]], definition: str, solution: str
) -> Iterator[dict[str, Any]]:
    """One Trace a workload."""
    for workload in workloads:
        yield export_trace(verdict, workload, definition=definition, solution=solution)


def gate_of(trace: Mapping[str, Any], gate: GateId) -> str:
    """A gate's status as our own traces carry it; '' in others'."""
    try:
        return str(json.loads(trace["evaluation"]["log"])["gates"][gate.value])
    except (KeyError, TypeError, ValueError):
        return ""
