"""A case is a function of its seed; a bug is found, shrunk, and comes back byte for byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gates.inprocess import TASKS, InProcess, make_bench
from tests.verifier.conftest import Command
from verifier.commands.fuzz import _lines, read_tolerances
from verifier.contract import Tolerance
from verifier.fuzz import (
    FuzzReport,
    Layout,
    Plant,
    Strategy,
    fuzz,
    fuzz_args,
    fuzz_case,
    fuzz_judge,
    plants,
)
from verifier.records import CaseRecord, GateStatus, from_json
from verifier.referee.bench import Bench
from verifier.session import UsageError
from verifier.subject import Arg

TASK = TASKS / "row_softmax"
SUITE = Path(__file__).parents[2] / "benchmarks/fuzzoracle"
NUMBERS = range(40)

HONEST = "import torch\n\ndef run(x):\n    return torch.softmax(x.float(), -1).to(x.dtype)\n"
COUNTS_PADDING = """
import torch

def run(x):
    x = x.contiguous()
    n = x.shape[-1]
    padded = torch.nn.functional.pad(x.float(), (0, -n % 64))
    return torch.softmax(padded, -1)[..., :n].to(x.dtype).contiguous()
"""
SWALLOWS_NAN = HONEST.replace(
    "x.float()", "x.float().nan_to_num(nan=0.0, posinf=1e30, neginf=-1e30)"
)
MAKES_NAN = HONEST.replace(".to(x.dtype)", ".to(x.dtype).fill_(float('nan'))")
ASSUMES_DENSE = HONEST.replace(
    "x.float()", "torch.as_strided(x, x.shape, (x.shape[1], 1), x.storage_offset()).float()"
)

Writer = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    def to_file(source: str) -> Path:
        path = tmp_path / "kernel.py"
        path.write_text(source)
        return path

    return to_file


def bench_of(kernel: Path | None = None) -> Bench:
    return make_bench("row_softmax", kernel)


def tensor_of(args: list[Arg]) -> torch.Tensor:
    assert isinstance(args[0], torch.Tensor)
    return args[0]


def with_atol(bench: Bench, dtype: str, atol: float) -> Bench:
    contract = replace(bench.contract, tolerances={dtype: Tolerance(atol)})
    return replace(bench, contract=contract)


def with_params(case: CaseRecord, **params: Any) -> CaseRecord:
    return CaseRecord(case.label, case.dims, case.dtypes, case.fill, case.seed, params)


# --- drawing


def test_the_same_seed_draws_the_same_cases_and_bytes() -> None:
    for number in NUMBERS:
        first = fuzz_case(bench_of(), Strategy.MIXED, 5, number)
        second = fuzz_case(bench_of(), Strategy.MIXED, 5, number)
        assert first == second
        left, right = (tensor_of(fuzz_args(bench_of(), case)) for case in (first, second))
        assert torch.equal(left.nan_to_num(7.0), right.nan_to_num(7.0))


def test_another_seed_draws_other_cases() -> None:
    bench = bench_of()
    ours, theirs = ([fuzz_case(bench, Strategy.MIXED, s, n) for n in NUMBERS] for s in (5, 6))
    assert {case.seed for case in ours}.isdisjoint(case.seed for case in theirs)
    assert [case.dims for case in ours] != [case.dims for case in theirs]


@pytest.mark.parametrize("strategy", list(Strategy))
def test_every_shape_is_allowed_and_within_the_budget(strategy: Strategy) -> None:
    bench = bench_of()
    drawn = [fuzz_case(bench, strategy, 1, number).dims for number in NUMBERS]
    assert all(bench.contract.allows(dims) for dims in drawn)
    assert all(bench.elements(dims) <= bench.budget for dims in drawn)
    assert len({tuple(dims.values()) for dims in drawn}) > 3


def test_mixed_cases_reach_sizes_around_the_tile_of_the_kernel(write: Writer) -> None:
    bench = bench_of(write("BLOCK = 96\n" + HONEST))
    sizes = {fuzz_case(bench, Strategy.MIXED, 1, number).dims["N"] for number in range(200)}
    assert {95, 96, 97} <= sizes


def test_regular_cases_are_what_a_benchmark_would_try() -> None:
    drawn = [fuzz_case(bench_of(), Strategy.REGULAR, 1, number) for number in NUMBERS]
    assert all(n & (n - 1) == 0 for case in drawn for n in (case.dims["N"],))
    assert {(c.fill, c.params["plant"], c.params["layout"]) for c in drawn} == {
        ("wide", "", "dense")
    }


def test_no_bf16_for_a_triton_kernel_in_the_interpreter() -> None:
    bench = bench_of()
    if bench.device.type != "cpu":
        pytest.skip("CUDA device: there bf16 of a Triton kernel is judged")
    drawn = {fuzz_case(bench, Strategy.MIXED, 1, n).dtypes["T"] for n in NUMBERS}
    assert drawn == {"float32", "float16"}


@pytest.mark.parametrize("layout", [Layout.TRANSPOSED, Layout.STEP2, Layout.OFFSET])
def test_a_layout_changes_strides_or_offset_and_no_value(layout: Layout) -> None:
    bench = bench_of()
    case = fuzz_case(bench, Strategy.BOUNDARY, 1, 0)
    case = CaseRecord("c", {"M": 3, "N": 7}, case.dtypes, "normal", 9, {})
    dense, laid = (
        tensor_of(fuzz_args(bench, with_params(case, plant="", layout=one.value)))
        for one in (Layout.DENSE, layout)
    )
    assert torch.equal(dense, laid)
    assert (laid.stride(), laid.storage_offset()) != (dense.stride(), dense.storage_offset())


def denormal(x: torch.Tensor) -> torch.Tensor:
    return (x != 0) & (x.abs() < torch.finfo(x.dtype).tiny)


FOUND: dict[Plant, Callable[[torch.Tensor], torch.Tensor]] = {
    Plant.NAN: torch.isnan,
    Plant.INF: torch.isposinf,
    Plant.MINUS_INF: torch.isneginf,
    Plant.LARGE: lambda x: (x.abs() >= 5e3) & (x.abs() <= 1e4),
    Plant.LARGEST: lambda x: x.isfinite() & (x.abs() >= torch.finfo(x.dtype).max / 2.01),
    Plant.DENORMAL: denormal,
    Plant.MINUS_ZERO: lambda x: (x == 0) & x.signbit(),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("plant", list(Plant))
def test_a_plant_is_in_the_input_and_replaces_a_few_values(plant: Plant, dtype: str) -> None:
    case = CaseRecord("c", {"M": 8, "N": 64}, {"T": dtype}, "uniform", 9, {})
    args = fuzz_args(bench_of(), with_params(case, plant=plant.value, layout="dense"))
    assert 1 <= int(FOUND[plant](tensor_of(args)).sum()) <= 1 + 8 * 64 // 64


def test_few_adversarial_cases_meet_every_plant_that_the_contract_allows() -> None:
    bench = bench_of()
    for parity in (0, 1):
        cases = [fuzz_case(bench, Strategy.ADVERSARIAL, 1, n) for n in range(parity, 14, 2)]
        assert {case.params["plant"] for case in cases} == set(Plant)


@pytest.mark.parametrize(
    ("task", "dtype", "allowed"),
    [
        ("matmul", "float32", False),
        ("matmul", "float16", True),
        ("row_softmax", "float32", True),
        ("relu", "float32", True),
    ],
)
def test_the_greatest_numbers_come_only_where_no_order_of_a_sum_decides(
    task: str, dtype: str, allowed: bool
) -> None:
    assert (Plant.LARGEST in plants(make_bench(task), {"T": dtype})) is allowed


def test_an_op_on_integers_has_no_plants() -> None:
    bench = make_bench("add_int64")
    assert plants(bench, {}) == ()
    assert fuzz_case(bench, Strategy.ADVERSARIAL, 1, 0).params["plant"] == ""


# --- judging


def test_an_honest_kernel_passes_every_case(write: Writer) -> None:
    path = write(HONEST)
    tally = fuzz(bench_of(path), InProcess(path), seed=2, iterations=60)
    assert (tally.passed, tally.failed, tally.notes) == (60, 0, ())


def test_a_tail_bug_is_found_and_shrunk_to_a_tail(write: Writer) -> None:
    path = write(COUNTS_PADDING)
    tally = fuzz(bench_of(path), InProcess(path), seed=2, iterations=20)
    assert tally.failed
    example = tally.failures[0]
    assert example.case.dims["M"] == 1
    assert example.case.dims["N"] % 64
    assert example.index
    assert example.calls


def test_regular_shapes_do_not_find_the_tail_bug(write: Writer) -> None:
    path = write(COUNTS_PADDING)
    bench = bench_of(path)
    cases = [fuzz_case(bench, Strategy.REGULAR, 2, number) for number in NUMBERS]
    whole = [case for case in cases if case.dims["N"] % 64 == 0]
    assert whole
    assert all(fuzz_judge(bench, case, InProcess(path)).passed for case in whole)


def planted(plant: str) -> CaseRecord:
    params = {"plant": plant, "layout": "dense"}
    return CaseRecord("c", {"M": 3, "N": 7}, {"T": "float32"}, "normal", 9, params)


def test_nan_where_the_reference_has_nan_is_right(write: Writer) -> None:
    path, case = write(HONEST), planted("nan")
    bench = bench_of(path)
    golden = bench.golden(fuzz_args(bench, case))
    assert not isinstance(golden, str)
    assert golden[0].isnan().any()
    assert fuzz_judge(bench, case, InProcess(path)).passed


@pytest.mark.parametrize("plant", ["nan", "inf"])
def test_a_finite_value_where_the_reference_has_nan_is_wrong(write: Writer, plant: str) -> None:
    path = write(SWALLOWS_NAN)
    finding = fuzz_judge(bench_of(path), planted(plant), InProcess(path))
    assert finding.failed
    assert finding.hard


def element_case(plant: Plant) -> CaseRecord:
    params = {"plant": plant.value, "layout": "dense"}
    return CaseRecord("c", {"M": 8, "N": 65}, {"T": "float32"}, "uniform", 9, params)


SILU = "import torch\n\ndef run(x):\n    return x / (1 + torch.exp(-x.float())).to(x.dtype)\n"
OVERFLOWS = SILU.replace("x / (1 + torch.exp(-x", "x * torch.exp(x) / (1 + torch.exp(x")


@pytest.mark.parametrize("plant", list(Plant))
def test_an_honest_kernel_passes_every_plant(write: Writer, plant: Plant) -> None:
    path = write(SILU)
    bench = make_bench("silu_rows", path)
    finding = fuzz_judge(bench, element_case(plant), InProcess(path))
    assert finding.passed, finding.detail


@pytest.mark.parametrize("plant", [Plant.LARGE, Plant.LARGEST])
def test_an_overflow_at_large_values_is_found(write: Writer, plant: Plant) -> None:
    path = write(OVERFLOWS)
    bench = make_bench("silu_rows", path)
    assert fuzz_judge(bench, element_case(plant), InProcess(path)).failed


def test_a_lost_sign_of_zero_is_found(write: Writer) -> None:
    path = write(SILU.replace("to(x.dtype)", "to(x.dtype) + 0.0"))
    bench = make_bench("silu_rows", path)
    finding = fuzz_judge(bench, element_case(Plant.MINUS_ZERO), InProcess(path))
    assert finding.failed
    assert "sign" in finding.detail


def test_a_sum_may_lose_the_sign_of_zero(write: Writer) -> None:
    path = write("import torch\n\ndef run(x):\n    return x.sum(-1) + 0.0\n")
    bench = make_bench("row_sum", path)
    case = CaseRecord("c", {"M": 3, "N": 1}, {"T": "float32"}, "zeros", 9, {})
    case = with_params(case, plant="-0", layout="dense")
    assert fuzz_judge(bench, case, InProcess(path)).passed


def test_results_too_small_for_the_dtype_may_be_flushed(write: Writer) -> None:
    flush = "x = torch.where(x.abs() < torch.finfo(x.dtype).tiny, x * 0, x)\n    return"
    path = write(SILU.replace("return", flush))
    bench = make_bench("silu_rows", path)
    assert fuzz_judge(bench, element_case(Plant.DENORMAL), InProcess(path)).passed


def test_a_kernel_may_keep_what_cancels_in_the_reference() -> None:
    """At -9.3 the reference's 1 + tanh is exactly 0 in fp64; x * sigmoid(2u) gives 1e-16."""
    folder = SUITE / "tasks/gelu"
    kernel = SUITE / "kernels/p1_replica/gelu_triton.py"
    bench = make_bench(folder, kernel)
    case = CaseRecord("c", {"B": 1, "S": 1, "H": 1}, {"T": "float32"}, "wide", 0, {})
    (x,) = fuzz_args(bench, with_params(case, plant="", layout="dense"))
    assert isinstance(x, torch.Tensor)
    reply = InProcess(kernel).call([x.fill_(-9.3)])
    golden = bench.golden([x])
    assert not isinstance(golden, str)
    assert (float(golden[0].abs().max()), float(reply.outputs[0].abs().max()) > 0) == (0.0, True)
    assert bench.compare(case, [x], reply.outputs).passed


def test_what_eager_does_not_satisfy_is_no_failure(write: Writer) -> None:
    """Half precision cannot meet 1e-12, whoever computes it."""
    path = write(HONEST)
    bench = with_atol(bench_of(path), "float16", 1e-12)
    case = CaseRecord("c", {"M": 3, "N": 7}, {"T": "float16"}, "wide", 9, {})
    finding = fuzz_judge(bench, with_params(case, plant="", layout="dense"), InProcess(path))
    assert finding.status is GateStatus.NOT_APPLICABLE
    assert "reference does not satisfy" in finding.detail


def test_an_absolute_tolerance_is_not_asked_of_large_values(write: Writer) -> None:
    path = write(SILU.replace("x / (1 + torch.exp(-x.float()))", "x / (1 + torch.exp(-x))"))
    bench = with_atol(make_bench("silu_rows", path), "float32", 1e-4)
    wrong = SILU.replace("/ (1", "* 1.00001 / (1")
    assert fuzz_judge(bench, element_case(Plant.LARGE), InProcess(path)).passed
    assert fuzz_judge(bench, element_case(Plant.LARGE), InProcess(write(wrong))).failed


def test_an_op_that_draws_random_numbers_is_not_judged(write: Writer) -> None:
    path = write("def run(x):\n    return x\n")
    bench = make_bench("dropout", path)
    case = fuzz_case(bench, Strategy.BOUNDARY, 1, 0)
    assert fuzz_judge(bench, case, InProcess(path)).status is GateStatus.NOT_APPLICABLE


def test_nan_where_the_reference_is_finite_is_wrong(write: Writer) -> None:
    path = write(MAKES_NAN)
    finding = fuzz_judge(bench_of(path), planted(""), InProcess(path))
    assert finding.failed
    assert finding.hard


def test_a_kernel_that_assumes_dense_rows_fails_in_another_layout(write: Writer) -> None:
    path = write(ASSUMES_DENSE)
    bench = bench_of(path)
    case = CaseRecord("c", {"M": 3, "N": 7}, {"T": "float32"}, "normal", 9, {})
    for layout, right in ((Layout.DENSE, True), (Layout.TRANSPOSED, False)):
        laid = with_params(case, plant="", layout=layout.value)
        assert fuzz_judge(bench, laid, InProcess(path)).passed is right


# --- the command, through the sandbox


@pytest.fixture(scope="module")
def fuzz_command(command: Command) -> Command:
    """Fuzz a kernel, write the report to a file."""

    def run(kernel: Path, out: Path, *more: object) -> int:
        words = ("fuzz", "--task", TASK, "--kernel", kernel, "--device", "cpu", "--seed", 3)
        return command(*words, "--iterations", 8, "--json", out, *more)

    return run


@pytest.fixture
def replay(command: Command) -> Command:
    def run(report: Path, task: Path = TASK) -> int:
        return command("fuzz", "--task", task, "--replay", report, "--device", "cpu")

    return run


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, fuzz_command: Command) -> Path:
    """The report of a kernel with a tail bug."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "kernel.py").write_text(COUNTS_PADDING)
    out = folder / "report.json"
    assert fuzz_command(folder / "kernel.py", out) == 1
    return out


def forge(report: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    document = json.loads(report.read_text())
    change(document)
    forged = folder / "forged.json"
    forged.write_text(json.dumps(document))
    return forged


def test_a_report_holds_what_a_replay_needs(report: Path) -> None:
    document = json.loads(report.read_text())
    example = document["failures"][0]
    assert document["seed"] == 3
    assert len(document["task"]["digest"]) == 64
    assert {len(call[side]) for call in example["calls"] for side in ("inputs", "outputs")} == {64}
    assert {"dims", "dtypes", "fill", "seed", "params"} <= example["case"].keys()


def test_failures_that_are_not_listed_are_counted(report: Path) -> None:
    found = from_json(FuzzReport, json.loads(report.read_text()))
    more = replace(found, failed=len(found.failures) + 5)
    assert list(_lines(more))[-1] == "  and 5 more failed, which are counted and not listed"
    assert "not listed" not in "\n".join(_lines(replace(found, failed=len(found.failures))))


def test_a_report_replays_byte_for_byte(
    report: Path, replay: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(report) == 0
    printed = capsys.readouterr().out
    assert printed.count("fails again; digests match") == len(
        json.loads(report.read_text())["failures"]
    )


@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_a_forged_digest_does_not_replay(
    report: Path, tmp_path: Path, replay: Command, side: str
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["failures"][0]["calls"][0][side] = "0" * 64

    assert replay(forge(report, tmp_path, change)) == 1


def test_a_forged_case_does_not_replay(report: Path, tmp_path: Path, replay: Command) -> None:
    def change(document: dict[str, Any]) -> None:
        document["failures"][0]["case"]["seed"] += 1

    assert replay(forge(report, tmp_path, change)) == 1


def test_a_report_with_a_mended_kernel_does_not_replay(
    report: Path, tmp_path: Path, replay: Command
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["kernel"]["source"] = HONEST
        document["kernel"]["sha256"] = hashlib.sha256(HONEST.encode()).hexdigest()

    assert replay(forge(report, tmp_path, change)) == 1


def test_a_source_that_is_not_the_one_named_is_refused(
    report: Path, tmp_path: Path, replay: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["kernel"]["source"] += "# the same behaviour, other bytes\n"

    assert replay(forge(report, tmp_path, change)) == 2
    assert "sha256" in capsys.readouterr().err


@pytest.mark.parametrize("field", ["fuzz_version", "generator_version"])
def test_a_report_of_another_version_is_refused_because_it_drew_other_bytes(
    report: Path, tmp_path: Path, replay: Command, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    def change(document: dict[str, Any]) -> None:
        document[field] -= 1

    assert replay(forge(report, tmp_path, change)) == 2
    assert "versions" in capsys.readouterr().err


def test_a_report_of_another_task_is_refused(report: Path, replay: Command) -> None:
    assert replay(report, TASKS / "rms") == 2


def test_what_is_no_report_is_bad_usage(tmp_path: Path, replay: Command) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert replay(other) == 2


def test_a_kernel_that_cannot_be_loaded_is_a_violation_with_its_reason(
    write: Writer, tmp_path: Path, fuzz_command: Command
) -> None:
    out = tmp_path / "report.json"
    assert fuzz_command(write("def run(:"), out) == 1
    assert "SyntaxError" in json.loads(out.read_text())["failures"][0]["detail"]


def test_an_honest_kernel_leaves_the_command_with_0(
    write: Writer, tmp_path: Path, fuzz_command: Command
) -> None:
    assert fuzz_command(write(HONEST), tmp_path / "report.json") == 0


def test_no_iterations_is_bad_usage(write: Writer, tmp_path: Path, fuzz_command: Command) -> None:
    out = tmp_path / "report.json"
    assert fuzz_command(write(HONEST), out, "--iterations", 0) == 2


def test_tolerances_without_the_task_are_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"tolerances": {"relu": {"float32": 0.1}}}')
    assert read_tolerances(path, "relu") == {"float32": 0.1}
    with pytest.raises(UsageError, match="softmax"):
        read_tolerances(path, "softmax")
