"""Gate 3 on kernels whose runs differ, and on honest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.gates.caged import judge_kernel
from tests.gates.inprocess import CUDA, InProcess, judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.gates.g03_determinism import GATE
from verifier.records import CaseRecord, DeviceMode, GateStatus
from verifier.referee.bench import Bench
from verifier.subject import ORDINARY, Arg, CallOptions, Placement, Poison, Reply

HERE = Path(__file__).parent
VIOLATORS = sorted(HERE.glob("violator*.py"))
TWINS = sorted(HERE.glob("twin*.py"))


@pytest.mark.parametrize("kernel", VIOLATORS, ids=lambda path: path.stem)
def test_violator_fails(kernel: Path, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, kernel)
    assert judged.status is GateStatus.FAIL, judged.explain()


@pytest.mark.parametrize("kernel", TWINS, ids=lambda path: path.stem)
def test_twin_passes(kernel: Path, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, kernel)
    assert judged.status is GateStatus.PASS, judged.explain()


@pytest.mark.parametrize("task", ["row_softmax", "matmul", "scatter_add"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(task))
    assert judged.status is GateStatus.PASS, judged.explain()


def test_a_difference_in_one_bit_is_a_hard_failure(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator.py")
    assert all(finding.hard for _, finding in judged.failures)


def _repeat(bench: Bench) -> CaseRecord:
    return next(case for case in GATE.cases(bench) if case.params["kind"] == "repeat")


def _nondeterministic(bench: Bench) -> Bench:
    behaviour = replace(bench.contract.behaviour, nondeterministic=True)
    return replace(bench, contract=replace(bench.contract, behaviour=behaviour))


def test_declared_nondeterminism_is_judged_by_value_and_said_so() -> None:
    bench = _nondeterministic(make_bench("row_softmax"))
    finding = GATE.judge(bench, _repeat(bench), InProcess(HERE / "violator.py", bench.device))
    assert finding.passed
    assert "declared nondeterministic" in finding.detail


class Spy(InProcess):
    """A kernel that records how it is called; ``worn`` changes its results after a restart."""

    def __init__(
        self,
        path: Path,
        bench: Bench,
        *,
        worn: bool = False,
        configs: int = 0,
    ) -> None:
        super().__init__(path, bench.device)
        self.options: list[CallOptions] = []
        self.restarts = 0
        self.worn = worn
        self.configs = configs

    def restart(self) -> None:
        super().restart()
        self.restarts += 1

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        self.options.append(options)
        reply = replace(super().call(args, options), configs=self.configs)
        if not (self.worn and self.restarts):
            return reply
        return replace(reply, outputs=tuple(out.nextafter(out * 2) for out in reply.outputs))


def test_ten_runs_or_more_at_other_addresses_and_over_other_dirt() -> None:
    bench = make_bench("row_softmax")
    spy = Spy(HERE / "twin.py", bench)
    assert GATE.judge(bench, _repeat(bench), spy).passed
    assert len(spy.options) >= 10
    assert {options.poison for options in spy.options} == set(Poison)
    assert {options.placement for options in spy.options} == set(Placement)
    assert {options.load for options in spy.options} == {True, False}


def test_a_fresh_process_must_give_the_same_bytes() -> None:
    bench = make_bench("row_softmax")
    finding = GATE.judge(bench, _repeat(bench), Spy(HERE / "twin.py", bench, worn=True))
    assert finding.failed
    assert finding.hard


def test_random_ops_are_not_asked() -> None:
    assert GATE.applies(make_bench("dropout")) == "the op draws random numbers"


def test_ids_are_made_to_collide() -> None:
    labels = [case.label for case in GATE.cases(make_bench("scatter_add"))]
    assert "repeated runs, colliding indices" in labels


def test_the_interpreter_does_not_claim_to_have_seen_no_race() -> None:
    bench = replace(make_bench("row_softmax"), mode=DeviceMode.CPU_INTERPRET)
    case = next(case for case in GATE.cases(bench) if case.params["kind"] == "race")
    finding = GATE.judge(bench, case, bench.new_eager())
    assert finding.status is GateStatus.NOT_APPLICABLE
    assert "race" in finding.detail


@pytest.mark.gpu
@pytest.mark.skipif(not CUDA, reason="NO RACE TEST: needs a CUDA device")
def test_atomics_race_on_a_gpu(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "kernels" / "race.py")
    assert judged.status is GateStatus.FAIL, judged.explain()


def test_a_configuration_that_is_wrong_is_found_whichever_the_tuner_would_choose(
    sandbox: Sandbox,
) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator_config.py")
    assert judged.status is GateStatus.FAIL, judged.explain()
    assert "configuration 6 of 6" in judged.explain()


def test_configurations_that_assert_that_they_do_not_fit_are_passed_over(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "twin_config.py")
    assert judged.status is GateStatus.PASS, judged.explain()


def test_each_configuration_is_asked_for_and_more_than_once() -> None:
    bench = make_bench("row_softmax")
    case = next(case for case in GATE.cases(bench) if case.params["kind"] == "configurations")
    spy = Spy(HERE / "twin.py", bench, configs=3)
    assert GATE.judge(bench, case, spy).passed
    asked = [options.config for options in spy.options[1:]]
    assert set(asked) == {0, 1, 2}
    assert min(asked.count(number) for number in range(3)) >= 2
