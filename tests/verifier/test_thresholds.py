"""Defence 2: one call a case, every rule judged on the same replies, and the curve they give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.gates.inprocess import make_bench
from tests.verifier.conftest import Command
from tests.verifier.test_calibrate import HONEST, make_suite
from verifier.calibrate import read_index
from verifier.commands.defence_thresholds import report_lines
from verifier.defences.thresholds import (
    DEFAULT,
    CaseOutcome,
    Grid,
    KernelOutcome,
    Remembered,
    curve,
    swayed,
    sweep_kernel,
    swept,
)
from verifier.gate import Finding, failed, passed
from verifier.records import GateId
from verifier.session import Session
from verifier.studies import ThresholdSweep, load
from verifier.subject import ORDINARY, Arg, CallOptions, Reply, ReplyKind

GRID = Grid((1.0, 2.0, 8.0), (0.0, 1.0))
SLIGHTLY_OFF = HONEST.replace("-1)", "-1).mul(1.0000003)")
GROSSLY_OFF = HONEST.replace("-1)", "-1).mul(1.01)")


class Counter:
    """A subject that counts its calls and answers with their number."""

    name = "kernel"

    def __init__(self) -> None:
        self.calls = self.restarts = 0

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        self.calls += 1
        return Reply(ReplyKind.RETURNED, outputs=(torch.tensor(self.calls),))

    def restart(self) -> None:
        self.restarts += 1

    def other(self) -> Counter:
        return self


def number(reply: Reply) -> int:
    return int(reply.outputs[0])


def test_the_same_judging_once_more_makes_no_call() -> None:
    counter = Counter()
    subject = Remembered(counter)
    for _ in range(3):
        subject.begin()
        assert [number(subject.call([torch.ones(2)])) for _ in range(2)] == [1, 2]
    assert counter.calls == 2


def test_other_values_layouts_and_options_are_other_calls() -> None:
    counter = Counter()
    subject = Remembered(counter)
    square = torch.arange(4.0).reshape(2, 2)
    for args, options in (
        ([square], ORDINARY),
        ([square + 1], ORDINARY),
        ([square.mT.contiguous().mT], ORDINARY),
        ([square], CallOptions(load=True)),
    ):
        subject.begin()
        subject.call(args, options)
    assert counter.calls == 4


def test_a_restart_happens_once_for_all_rules() -> None:
    counter = Counter()
    subject = Remembered(counter)
    for _ in range(3):
        subject.begin()
        subject.restart()
    assert counter.restarts == 1


def test_the_rule_in_use_is_always_tried() -> None:
    assert DEFAULT in Grid((1.0,), (0.0,)).points
    assert Grid((1.0, 8.0), (0.0, 4.0)).ends == ((1.0, 0.0), (8.0, 4.0))


def test_a_swept_bench_keeps_its_references_and_scales_the_floor() -> None:
    bench = make_bench("row_softmax")
    wide = swept(bench)
    case = bench.case(GateId.AGREEMENT, "x")
    bench.golden(bench.args(case))
    assert wide._golden is bench._golden
    assert wide.rule("float32") == bench.rule("float32")


def outcome(label: str, wrong: bool, findings: dict[tuple[float, float], Finding]) -> KernelOutcome:
    return KernelOutcome(label, wrong, (CaseOutcome(GateId.AGREEMENT, findings),))


def test_the_curve_counts_kernels_and_cases_of_each_side() -> None:
    soft = failed("off", hard=False)
    grid = Grid((1.0, 2.0), (1.0,))
    outcomes = [
        outcome("bug", True, dict.fromkeys(grid.points, failed("crash"))),
        outcome("subtle", True, {(1.0, 1.0): soft, (2.0, 1.0): passed()}),
        outcome("ok", False, {(1.0, 1.0): soft, (2.0, 1.0): passed()}),
    ]
    strict, used = curve(outcomes, grid)
    assert (strict.wrong_rejected, strict.wrong_rejected_softly, strict.wrong) == (2, 1, 2)
    assert (strict.controls_accused, strict.control_cases_failed) == (1, 1)
    assert (used.wrong_rejected, used.wrong_rejected_softly, used.controls_accused) == (1, 0, 0)
    assert [one.kernel for one in swayed(outcomes, grid)] == ["subtle", "ok"]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kernels = {
        "honest": ("control", HONEST),
        "slight": ("bug", SLIGHTLY_OFF),
        "gross": ("bug", GROSSLY_OFF),
    }
    made = make_suite(tmp_path_factory.mktemp("suite"), kernels)
    contract = made / "tasks/softmax/task.json"
    document = json.loads(contract.read_text())
    document.setdefault("behaviour", {})["library_calls"] = True  # these kernels are torch alone
    contract.write_text(json.dumps(document))
    return made


@pytest.fixture(scope="module")
def outcomes(verifier_session: Session, suite: Path) -> dict[str, KernelOutcome]:
    entries = read_index(suite, "group")
    return {one.label: sweep_kernel(verifier_session, suite, one, GRID, 5) for one in entries}


def test_a_gross_error_is_rejected_under_every_rule(outcomes: dict[str, KernelOutcome]) -> None:
    assert all(outcomes["gross"].rejected(point) for point in GRID.points)


def test_an_honest_kernel_is_accepted_under_the_rule_in_use(
    outcomes: dict[str, KernelOutcome],
) -> None:
    assert not outcomes["honest"].rejected(DEFAULT)


def test_a_wider_rule_never_rejects_what_a_narrower_one_accepts(
    outcomes: dict[str, KernelOutcome],
) -> None:
    for one in outcomes.values():
        for factor, floor in GRID.points:
            wider = [p for p in GRID.points if p[0] >= factor and p[1] >= floor]
            if not one.rejected((factor, floor)):
                assert not any(one.rejected(point) for point in wider)


def test_a_slight_error_hangs_on_the_rule(outcomes: dict[str, KernelOutcome]) -> None:
    assert outcomes["slight"].rejected((1.0, 0.0))
    assert not outcomes["slight"].rejected((8.0, 1.0))


def test_the_command_prints_both_grids_and_stores_them(
    suite: Path, tmp_path: Path, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sweep.json"
    words = ("defend", "thresholds", "--suite-dir", suite, "--groups", "group", "--only", "honest")
    assert command(*words, "--factors", "1,2", "--floors", "1", "--json", out) == 0
    study = load(ThresholdSweep, out)
    assert len(study.points) == 2
    printed = capsys.readouterr().out
    assert "wrong kernels rejected" in printed
    assert "controls accused" in printed
    assert list(report_lines(study))


def test_a_rule_that_is_no_number_is_bad_usage(suite: Path, command: Command) -> None:
    words = ("defend", "thresholds", "--suite-dir", suite, "--groups", "group")
    assert command(*words, "--factors", "two") == 2
    assert command(*words, "--only", "nobody") == 2
