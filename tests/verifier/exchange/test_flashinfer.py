"""FlashInfer-Bench documents in and out; the rules are those of its published schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import torch

from tests.verifier.exchange.test_kernelbench import FAIL, PASS, verdict
from verifier.contract import load_task, parse_contract
from verifier.exchange.flashinfer import (
    FormatError,
    check_solution,
    export_trace,
    gate_of,
    import_documents,
    import_files,
)
from verifier.exchange.widening import widened
from verifier.records import GateId, GateStatus, Measurement, Verdict

DEFINITION: Final[dict[str, Any]] = {
    "name": "rows_h8",
    "op_type": "rmsnorm",
    "tags": ["status:verified"],
    "axes": {
        "batch": {"type": "var"},
        "len_indptr": {"type": "var"},
        "H": {"type": "const", "value": 8},
    },
    "inputs": {
        "x": {"shape": ["batch", "H"], "dtype": "bfloat16"},
        "indptr": {"shape": ["len_indptr"], "dtype": "int32"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["batch", "H"], "dtype": "bfloat16"}},
    "constraints": ["len_indptr == batch + 1", "len_indptr == indptr[-1].item()"],
    "reference": "import torch\ndef run(x, indptr, eps):\n"
    "    v = x.float()\n    return (v * 3).to(torch.bfloat16)\n",
}
WORKLOAD: Final[dict[str, Any]] = {
    "uuid": "w1",
    "axes": {"batch": 4, "len_indptr": 5},
    "inputs": {"x": {"type": "random"}, "eps": {"type": "scalar", "value": 0.5}},
}
SOLUTION: Final[dict[str, Any]] = {
    "name": "mine",
    "definition": "rows_h8",
    "author": "me",
    "spec": {
        "language": "python",
        "target_hardware": ["cuda"],
        "entry_point": "main.py::run",
        "dependencies": [],
    },
    "sources": [{"path": "main.py", "content": "def run(x, indptr, eps, y): y.copy_(x * 3)\n"}],
}


def test_a_definition_becomes_a_contract() -> None:
    contract = parse_contract(import_documents(DEFINITION, [WORKLOAD], SOLUTION).contract)
    assert contract.usual_dims() == {"batch": 4, "H": 8}
    assert contract.dims["H"].maximum == 8
    assert contract.call_order == ("x", "indptr", "eps")
    assert contract.scalars[0].value == 0.5
    assert [(w.name, w.dims) for w in contract.workloads] == [("w1", {"batch": 4, "H": 8})]


def test_an_axis_that_a_constraint_gives_becomes_an_expression() -> None:
    contract = import_documents(DEFINITION, [WORKLOAD]).contract
    assert contract["inputs"][1]["shape"] == ["batch + 1"]


def test_what_cannot_be_kept_is_said() -> None:
    notes = import_documents(DEFINITION, [WORKLOAD]).notes
    assert "Not checked: len_indptr == indptr[-1].item()." in notes


def test_documents_survive_the_round_trip(tmp_path: Path) -> None:
    paths = {}
    for name, document in (("d", DEFINITION), ("s", SOLUTION)):
        paths[name] = tmp_path / f"{name}.json"
        paths[name].write_text(json.dumps(document))
    lines = tmp_path / "w.jsonl"
    trace = {"definition": "rows_h8", "solution": None, "workload": WORKLOAD, "evaluation": None}
    lines.write_text(json.dumps(trace) + "\n\n")
    folder, _ = import_files(paths["d"], lines, paths["s"]).write(tmp_path / "out")
    again = import_files(
        folder / "definition.json", folder / "workloads.jsonl", folder / "solution.json"
    )
    assert (again.definition, again.solution) == (DEFINITION, SOLUTION)
    assert list(again.workloads) == [WORKLOAD]
    assert load_task(folder).contract.title == "rows_h8"


def test_a_reference_that_upcasts_is_computed_in_float64() -> None:
    space: dict[str, Any] = {}
    exec(DEFINITION["reference"], space)  # noqa: S102
    x = torch.full((1, 8), 1 + 2.0**-40, dtype=torch.float64)
    assert torch.equal(widened(space["run"])(x, None, 0.5)[0], x * 3)


def test_in_its_own_dtype_a_reference_is_what_it_was() -> None:
    space: dict[str, Any] = {}
    exec(DEFINITION["reference"], space)  # noqa: S102
    assert widened(space["run"])(torch.ones(1, 8), None, 0.5)[0].dtype is torch.bfloat16


def changed(**fields: Any) -> dict[str, Any]:
    return {**DEFINITION, **fields}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({}, "definition.name"),
        (changed(axes={"H": {"type": "odd"}}), "neither const nor var"),
        (changed(axes={"H": {"type": "const", "value": -1}}), "no size"),
        (changed(outputs={"x": {"shape": ["H"], "dtype": "int8"}}), "an input and an output"),
        (changed(inputs={"x": {"shape": ["Q"], "dtype": "int8"}}), "undefined axis 'Q'"),
        (changed(inputs={"x": {"shape": ["H"], "dtype": "float4_e2m1"}}), "unknown here"),
        (changed(reference="def walk(): pass"), "no function 'run'"),
        (changed(reference="def ("), "no Python"),
    ],
)
def test_a_bad_definition_is_refused_by_its_field(document: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FormatError, match=complaint):
        import_documents(document)


@pytest.mark.parametrize(
    ("workload", "complaint"),
    [
        ({"uuid": "w", "axes": {"batch": 1}}, "axis 'len_indptr' has no size"),
        ({"definition": "other", "workload": WORKLOAD}, "not of 'rows_h8'"),
        ({"axes": {}}, "workload.uuid"),
    ],
)
def test_a_bad_workload_is_refused(workload: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FormatError, match=complaint):
        import_documents(DEFINITION, [workload])


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"sources": [{"path": "../main.py", "content": "x"}]}, "names none of its sources"),
        ({"sources": SOLUTION["sources"] * 2}, "no path of its own"),
        ({"definition": "other"}, "not of 'rows_h8'"),
        ({"author": ""}, "solution.author"),
    ],
)
def test_a_bad_solution_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FormatError, match=complaint):
        check_solution({**SOLUTION, **fields}, "rows_h8")


# --- traces


def timed(made: Verdict) -> Verdict:
    rows = (
        Measurement("w1", "kernel", 1.0, 0.9, 1.1, 10, speedup=2.0),
        Measurement("w1", "eager", 2.0, 1.9, 2.1, 10),
    )
    return replace(made, measurements=rows)


def trace(made: Verdict) -> dict[str, Any]:
    return export_trace(made, WORKLOAD, definition="rows_h8", solution="mine")


def failing(reason: str) -> Verdict:
    made = verdict(FAIL)
    first = replace(made.gates[0], reason=reason)
    return replace(made, gates=(first, *made.gates[1:]))


def test_an_accepted_kernel_gives_a_passed_trace_with_its_latency() -> None:
    evaluation = trace(timed(verdict(PASS)))["evaluation"]
    assert evaluation["status"] == "PASSED"
    assert evaluation["performance"] == {
        "latency_ms": 1.0,
        "reference_latency_ms": 2.0,
        "speedup_factor": 2.0,
    }
    assert evaluation["correctness"]["extra"]["kernelhub"]["outcome"] == "accepted"


def test_passed_is_not_said_without_a_latency() -> None:
    with pytest.raises(FormatError, match="not timed on a device"):
        trace(verdict(PASS))


def test_an_undecided_verdict_has_no_trace() -> None:
    with pytest.raises(FormatError, match="undecided"):
        trace(verdict(PASS, GateStatus.INCONCLUSIVE))


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("y: 1 of 3 values differ", "INCORRECT_NUMERICAL"),
        ("y has shape [1], not [2]", "INCORRECT_SHAPE"),
        ("y is float32, not bfloat16", "INCORRECT_DTYPE"),
        ("the kernel raised ValueError", "RUNTIME_ERROR"),
        ("the kernel could not be loaded: SyntaxError", "COMPILE_ERROR"),
        ("the kernel timed out: no result within 20 s", "TIMEOUT"),
    ],
)
def test_a_failure_keeps_its_kind_and_only_the_fields_that_it_may_have(
    reason: str, status: str
) -> None:
    evaluation = trace(failing(reason))["evaluation"]
    assert evaluation["status"] == status
    assert ("correctness" in evaluation) is (status == "INCORRECT_NUMERICAL")
    assert "performance" not in evaluation


def test_the_gates_ride_along_in_every_trace() -> None:
    assert gate_of(trace(failing("the kernel raised X")), GateId.AGREEMENT) == "FAIL"


def test_a_trace_is_strict_json() -> None:
    assert json.loads(json.dumps(trace(failing("x")), allow_nan=False))["workload"] == WORKLOAD
