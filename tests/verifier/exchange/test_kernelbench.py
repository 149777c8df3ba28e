"""KernelBench problems become tasks that every gate can judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import torch

from verifier.contract import load_task, parse_contract
from verifier.exchange.kernelbench import (
    Imported,
    Options,
    decide,
    import_file,
    import_folder,
    import_problem,
)
from verifier.exchange.probe import ProblemError
from verifier.exchange.reference import module_reference
from verifier.pipeline import Request, build_bench
from verifier.records import (
    CaseRecord,
    Counterexample,
    DeviceMode,
    Environment,
    GateId,
    GateResult,
    GateStatus,
    KernelRef,
    Language,
    Outcome,
    TaskRef,
    Verdict,
)
from verifier.referee.inputs import make_args
from verifier.source import read_source

LINEAR: Final = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, size, scale):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.norm = nn.BatchNorm1d(size)
        self.scale = scale
    def forward(self, x, shift: float):
        return torch.relu(self.norm(self.linear(x))) * self.scale + shift

batch = 2048
size = 4096

def get_inputs():
    return [torch.rand(batch, size), 0.5]

def get_init_inputs():
    return [size, 2.0]
"""


def problem(forward: str, inputs: str, params: str = "x") -> bytes:
    return f"""
import torch
class Model(torch.nn.Module):
    def forward(self, {params}):
        return {forward}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
""".encode()


def imported(source: bytes, **options: Any) -> Imported:
    return import_problem(source, "p", Options(**options))[-1]


@pytest.fixture(scope="module")
def linear() -> list[Imported]:
    return import_problem(LINEAR.encode(), "1_Linear")


def test_a_problem_beyond_the_budget_gets_a_scaled_task_besides(linear: list[Imported]) -> None:
    own, scaled = linear
    assert (own.slug, scaled.slug) == ("kernelbench-1-linear", "kernelbench-1-linear-scaled")
    assert own.contract["inputs"][0]["shape"] == [2048, 4096]
    assert scaled.elements <= Options().elements
    assert scaled.sizes["batch"][0] == 2048


def test_a_scaled_task_says_so_and_what_decides(linear: list[Imported]) -> None:
    assert "scaled" in linear[1].contract["tags"]
    assert "the problem's own sizes decide" in linear[1].contract["description"]
    assert "scaled" not in linear[0].contract["tags"]


def test_the_constructor_gets_the_scaled_sizes_too(linear: list[Imported]) -> None:
    size = linear[1].sizes["size"][1]
    assert linear[1].contract["module"] == {"init": [size, 2.0], "seed": 42}


def test_numbers_among_the_inputs_become_scalars(linear: list[Imported]) -> None:
    assert linear[0].contract["scalars"] == [{"name": "shift", "value": 0.5}]
    assert linear[0].contract["order"] == ["x", "shift"]


def test_shapes_are_promised_as_they_are(linear: list[Imported]) -> None:
    contract = parse_contract(linear[0].contract)
    assert contract.behaviour.fixed_shape
    assert not contract.dims


def test_the_task_can_be_judged(linear: list[Imported], tmp_path: Path) -> None:
    task = load_task(linear[1].write(tmp_path))
    request = Request(task, read_source(b"class ModelNew: pass"), "ModelNew", seed=1)
    bench = build_bench(request, DeviceMode.CPU_INTERPRET, torch.device("cpu"))
    args = bench.args(bench.case(GateId.AGREEMENT, "x"))
    golden, eager = bench.golden(args), bench.eager(args)
    assert not isinstance(golden, str)
    assert golden[0].dtype is torch.float64
    assert torch.allclose(golden[0].float(), eager.outputs[0], atol=1e-4)


def test_only_a_composition_may_leave_work_to_a_library(linear: list[Imported]) -> None:
    single = imported(problem("x @ x", "torch.rand(16, 16)"))
    assert linear[0].contract["behaviour"]["library_calls"] is True
    assert single.contract["behaviour"]["library_calls"] is False


def test_who_imports_may_decide_that(linear: list[Imported]) -> None:
    forced = imported(problem("x @ x", "torch.rand(16, 16)"), library_calls=True)
    assert forced.contract["behaviour"]["library_calls"] is True


def test_dropout_makes_a_task_random() -> None:
    source = problem("torch.nn.functional.dropout(x, 0.5)", "torch.rand(16, 16)")
    assert imported(source).contract["behaviour"]["random"] is True


@pytest.mark.parametrize(
    ("inputs", "domain"),
    [
        ("torch.rand(8, 8)", None),
        ("torch.randn(8, 8)", None),
        ("torch.randint(3, 9, (8,))", {"kind": "index", "low": 3, "high": 9}),
        ("torch.randint(0, 2, (8,)).bool()", {"kind": "bool"}),
        ("torch.triu(torch.rand(8, 8))", "upper_triangular"),
        ("torch.tril(torch.rand(8, 8))", "lower_triangular"),
        ("torch.rand(8, 8).softmax(-1)", "simplex"),
        ("torch.randint(0, 2, (32,)).float() * 2 - 1", "signs"),
    ],
)
def test_domains_come_from_how_inputs_are_made(inputs: str, domain: Any) -> None:
    task = imported(problem("x + 0", inputs))
    found = task.contract["inputs"][0].get("domain")
    assert (found["structure"] if isinstance(domain, str) else found) == domain


def test_other_values_keep_the_range_that_was_seen() -> None:
    domain = imported(problem("x + 0", "torch.rand(64) * 0 + 3")).contract["inputs"][0]["domain"]
    assert (domain["low"], domain["high"], domain["nonfinite"]) == (3.0, 3.0, False)


@pytest.mark.parametrize("structure", ["upper_triangular", "simplex", "symmetric", "signs"])
def test_drawn_inputs_keep_their_structure(structure: str, tmp_path: Path) -> None:
    task = imported(problem("x + 0", "torch.rand(8, 8)"))
    task.contract["inputs"][0]["domain"] = {"structure": structure}
    contract = load_task(task.write(tmp_path)).contract
    for fill in ("normal", "heavy", "zeros"):
        x = make_args(contract, CaseRecord("c", {}, {}, fill, 3))[0]
        assert isinstance(x, torch.Tensor)
        holds = {
            "upper_triangular": torch.equal(x, x.triu()),
            "symmetric": torch.equal(x, x.mT),
            "signs": bool((x.abs() == 1).all()),
            "simplex": torch.allclose(x.sum(-1), torch.ones(8)),
        }
        assert holds[structure]


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (b"x = 1\n", "does not define Model, get_inputs, get_init_inputs"),
        (b"def (", "is no Python"),
        (b"\xff", "is not UTF-8"),
        (b"#" * (1 << 21), "the limit is"),
        (b"raise RuntimeError('no')\n", "cannot be run: RuntimeError: no"),
        (problem("x @ torch.ones(3, 4)", "torch.rand(8, 8)"), "cannot be called"),
        (problem("x", "{}").replace(b"return [{}]", b"return {}"), "not a list"),
        (problem("{'a': x}", "torch.rand(8, 8)"), "forward returns dict"),
        (problem("torch.ones(1)", "'text'"), "gives no tensor"),
        (problem("x", "torch.rand(2), object()", "x, y"), "gives a object as 'y'"),
        (
            problem("x", "torch.rand(2)").replace(b"return []", b"return [torch.ones(1)]"),
            "get_init_inputs|takes no arguments|positional",
        ),
    ],
)
def test_a_file_that_is_no_problem_is_refused_with_its_reason(
    source: bytes, complaint: str
) -> None:
    with pytest.raises(ProblemError, match=complaint):
        import_problem(source, "p")


def test_one_bad_file_does_not_stop_a_folder(tmp_path: Path) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_Good.py").write_bytes(problem("x + 1", "torch.rand(4)"))
    (tmp_path / "level1" / "2_Bad.py").write_text("def (")
    good, bad = (found for _, found in import_folder(tmp_path))
    assert isinstance(good, list)
    assert good[0].slug == "kernelbench-level1-1-good"
    assert isinstance(bad, ProblemError)


def test_a_reference_is_pure_though_its_module_is_not() -> None:
    class Counting(torch.nn.Module):
        calls: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x + self.calls

    reference = module_reference(Counting, list, seed=1)
    first, second = (reference(torch.zeros(1))[0] for _ in range(2))
    assert torch.equal(first, second)


def test_golden_has_exactly_the_weights_of_the_kernel() -> None:
    reference = module_reference(lambda: torch.nn.Linear(4, 4), list, seed=1)
    double = reference(torch.zeros(1, 4, dtype=torch.float64))[0]
    assert torch.equal(double, reference(torch.zeros(1, 4))[0].double())


# --- what a verdict at smaller sizes is worth


def verdict(first: GateStatus, other: GateStatus = GateStatus.PASS) -> Verdict:
    def result(gate: GateId) -> GateResult:
        status = first if gate is GateId.AGREEMENT else other
        passed, failed = int(status is GateStatus.PASS), int(status is GateStatus.FAIL)
        example = Counterexample(CaseRecord("c", {}, {}, "normal", 1), "r", ()) if failed else None
        reason = "" if passed else "r"
        return GateResult(
            gate, status, "s", reason, passed=passed, failed=failed, counterexample=example
        )

    environment = Environment(DeviceMode.CPU_INTERPRET, "", "", "", "", "", "", "", "")
    kernel = KernelRef("", "ModelNew", Language.TRITON, "")
    gates = tuple(map(result, GateId))
    return Verdict(TaskRef("t", ""), kernel, 1, gates, None, environment, "now", 1.0)


PASS, FAIL = GateStatus.PASS, GateStatus.FAIL


@pytest.mark.parametrize(
    ("scaled", "own", "outcome"),
    [
        (verdict(PASS), None, Outcome.ACCEPTED),
        (verdict(PASS, FAIL), None, Outcome.REJECTED),
        (verdict(PASS), verdict(FAIL), Outcome.REJECTED),
        (verdict(FAIL), None, Outcome.UNDECIDED),
        (verdict(FAIL), verdict(PASS), Outcome.ACCEPTED),
        (verdict(FAIL), verdict(FAIL), Outcome.REJECTED),
    ],
)
def test_a_kernel_that_has_its_sizes_fixed_is_judged_at_them(
    scaled: Verdict, own: Verdict | None, outcome: Outcome
) -> None:
    assert decide(scaled, own).outcome is outcome


def test_a_file_is_named_after_its_level_too(tmp_path: Path) -> None:
    (tmp_path / "level2").mkdir()
    path = tmp_path / "level2" / "3_X.py"
    path.write_bytes(problem("x + 1", "torch.rand(4)"))
    assert import_file(path)[0].slug == "kernelbench-level2-3-x"
