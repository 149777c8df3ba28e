"""Contracts: what is read, and what is refused with the field named."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

from verifier.commands.schema import contract_schema
from verifier.contract import Contract, TaskError, contract_digest, load_task, parse_contract
from verifier.records import CaseRecord
from verifier.referee.inputs import make_args

ROOT = Path(__file__).resolve().parents[2]
SOFTMAX: dict[str, Any] = {
    "slug": "softmax",
    "title": "Row softmax",
    "category": "Normalization",
    "dims": {
        "R": {"candidates": [1, 2, 8], "usual": 8, "minimum": 1},
        "N": {"candidates": [1, 3, 256], "usual": 256, "minimum": 1},
    },
    "dtypes": {"T": {"candidates": ["float32", "float16"], "usual": "float32"}},
    "inputs": [{"name": "x", "shape": ["R", "N"], "dtype": "T"}],
    "outputs": [{"name": "out", "shape": ["R", "N"], "dtype": "T"}],
    "behaviour": {"independent": ["R"]},
}


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """The softmax contract with one value replaced."""
    document: Any = copy.deepcopy(SOFTMAX)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return dict(document)


def contract(**fields: Any) -> Contract:
    return parse_contract({**copy.deepcopy(SOFTMAX), **fields})


def test_a_contract_is_read() -> None:
    softmax = contract()
    assert softmax.call_order == ("x",)
    assert softmax.usual_dims() == {"R": 8, "N": 256}
    assert softmax.shape(softmax.inputs[0], {"R": 2, "N": 3}) == (2, 3)
    assert list(softmax.dtype_assignments()) == [{"T": "float32"}, {"T": "float16"}]
    assert softmax.axes(softmax.inputs[0], "N") == (1,)


def test_scalars_follow_the_inputs_unless_an_order_is_given() -> None:
    scalars = [{"name": "eps", "value": 1e-6}]
    assert contract(scalars=scalars).call_order == ("x", "eps")
    assert contract(scalars=scalars, order=["eps", "x"]).call_order == ("eps", "x")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed("bogus", to=1), "bogus"),
        (changed("dims", "R", "usual", to=0), "task.json.dims"),
        (changed("dims", "R", "candidates", to=[]), "candidates must not be empty"),
        (changed("dims", "N", "usual", to="256"), "'256' is not a int"),
        (changed("dtypes", "T", "usual", to="float8"), "usual"),
        (changed("inputs", 0, "shape", to=["Q"]), "unknown dims"),
        (changed("inputs", 0, "shape", to=["__import__('os')"]), "task.json"),
        (changed("inputs", 0, "dtype", to="float31"), "unknown dtype"),
        (changed("inputs", 0, "domain", to={"kind": "reall"}), r"inputs\[0\].domain"),
        (changed("inputs", 0, "domain", to={"low": True}), r"inputs\[0\].domain.low"),
        (changed("inputs", to=[]), "at least one input"),
        (changed("outputs", to=[]), "at least one input and one output"),
        (changed("constraints", to=["R > 100"]), "usual dims break"),
        (changed("order", to=["y"]), "order must name"),
        (changed("schema", to=2), "schema 2"),
        (changed("behaviour", "independent", to=["Z"]), "unknown dims"),
        (changed("behaviour", to={"symmetric": [["x", "y"]]}), "unknown inputs"),
        (changed("workloads", to=[{"name": "w", "dims": {"R": 1}}]), "every dim"),
        (changed("dims", "R", to={"candidates": [-1], "usual": -1, "minimum": -5}), "less than 0"),
        (changed("dims", "N", to={"candidates": [1], "usual": 10**18, "maximum": 10**18}), "shape"),
        (changed("outputs", 0, "shape", to=["R", "N - 4"]), "cannot have the shape"),
        (changed("outputs", 0, "shape", to=["R", "N // 0"]), "zero"),
        (changed("outputs", 0, "shape", to=["R", "9 ** 9 ** 9"]), "not allowed"),
        ([], "task.json"),
        (None, "task.json"),
    ],
)
def test_an_unusable_contract_is_refused_with_its_field(document: Any, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        parse_contract(document)


def test_a_task_folder_needs_both_files(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"task\.json"):
        load_task(tmp_path)
    (tmp_path / "task.json").write_text("{\n 'slug': 1}")
    (tmp_path / "reference.py").write_text("def reference(x): return x")
    with pytest.raises(TaskError, match="line 2"):
        load_task(tmp_path)
    (tmp_path / "task.json").write_text("[" * 100_000)
    with pytest.raises(TaskError, match="nested too deeply"):
        load_task(tmp_path)


def test_the_digest_forgets_formatting_and_sees_every_value() -> None:
    compact, pretty = json.dumps(SOFTMAX), json.dumps(SOFTMAX, indent=4, sort_keys=True)
    assert contract_digest(compact, "r") == contract_digest(pretty, "r")
    other = json.dumps(changed("dims", "N", "usual", to=3))
    assert contract_digest(other, "r") != contract_digest(compact, "r")
    assert contract_digest(compact, "r2") != contract_digest(compact, "r")


def args(domain: dict[str, Any], dtype: str = "T", fill: str = "normal") -> torch.Tensor:
    parsed = parse_contract(
        changed("inputs", 0, to={"name": "x", "shape": ["N"], "dtype": dtype, "domain": domain})
    )
    case = CaseRecord("c", {"R": 1, "N": 256}, {"T": "float32"}, fill, 5)
    tensor = make_args(parsed, case)[0]
    assert isinstance(tensor, torch.Tensor)
    return tensor


def test_inputs_stay_within_their_domain() -> None:
    assert (args({"low": 0.5}) >= 0.5).all()
    bounded = args({"low": -1.0, "high": 2.0}, fill="heavy")
    assert (bounded >= -1).all()
    assert (bounded <= 2).all()
    assert len(set(bounded.tolist())) > 200


def test_index_inputs_are_integers_below_their_bound() -> None:
    ids = args({"kind": "index", "high": "N // 2"}, "int64", "heavy")
    assert ids.dtype is torch.int64
    assert ids.min() >= 0
    assert ids.max() < 128


def test_offsets_ascend_from_zero_to_their_bound() -> None:
    offsets = args({"kind": "offsets", "high": "N"}, "int32")
    assert offsets[0] == 0
    assert offsets[-1] == 256
    assert (offsets.diff() >= 0).all()


def test_complex_and_bool_inputs_are_made() -> None:
    assert args({}, "complex64").is_complex()
    assert args({"kind": "bool"}, "bool").dtype is torch.bool


def test_the_same_case_gives_the_same_bytes() -> None:
    assert torch.equal(args({}), args({}))


def all_tasks() -> list[Path]:
    return sorted(path.parent for path in ROOT.glob("benchmarks/*/tasks/*/task.json"))


def test_every_committed_task_meets_the_published_schema() -> None:
    schema = json.loads((ROOT / "docs/task.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    tasks = all_tasks()
    assert tasks
    for folder in tasks:
        document = json.loads((folder / "task.json").read_text())
        problems = [error.message for error in validator.iter_errors(document)]
        assert not problems, f"{folder.name}: {problems}"
        load_task(folder)


@pytest.mark.parametrize(
    "document",
    [
        changed("bogus", to=1),
        changed("dims", "N", "usual", to="256"),
        changed("inputs", 0, "domain", to={"kind": "reall"}),
        changed("inputs", to=[]),
    ],
)
def test_the_published_schema_refuses_what_the_code_refuses(document: Any) -> None:
    schema = json.loads((ROOT / "docs/task.schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)
    with pytest.raises(TaskError):
        parse_contract(document)


def test_the_published_schema_is_what_the_command_prints() -> None:
    assert json.loads((ROOT / "docs/task.schema.json").read_text()) == contract_schema()
