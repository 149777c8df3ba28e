"""Gate 12 on kernels that cheat, and on their honest twins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.gates.caged import bench_for, judge_kernel
from tests.gates.inprocess import CUDA
from verifier.candidate.client import Sandbox
from verifier.gates.g12_honest import GATE
from verifier.records import GateStatus

HERE = Path(__file__).parent
VIOLATORS = {
    "violator": "torch computes for it: _softmax",
    "violator_fallback": "torch computes for it",
    "violator_odd_fallback": "torch computes for it",
    "violator_copies": "torch computes for it",
    "violator_numpy_beside": "its kernels are for show",
    "violator_pointer_cache": "it was remembered",
    "violator_content_cache": "it was remembered",
    "violator_sampled_cache": "what other data gave before",
    "violator_tires": "right at first, wrong in call 6",
    "violator_torch": "torch computes for it",
    "violator_torch_inside": "torch computes for it: _softmax",
    "violator_numpy_passed_on": "handed values that no launch computed",
    "violator_unseen_torch": "handed values that no launch computed",
    "violator_patches": "patched torch.allclose",
    "violator_python_inside": "Triton's compiler refuses softmax_kernel",
    "violator_real_sums": "torch computes for it: cumsum",
    "violator_scratch": "torch computes for it: _softmax",
    "violator_global_number": "Cannot access global variable LOWEST",
}
HOSTILE = {
    "hostile_subclass": "tensor subclass",
    "hostile_overwritten": "an output holds values that no launch left behind",
    "hostile_words": "handed values that no launch computed",
    "hostile_address": "memory that is no tensor's",
    "hostile_halved_address": "memory that is no tensor's",
    "hostile_late_grid": "handed values that no launch computed",
    "hostile_neighbour": "handed values that no launch computed",
    "hostile_byte_table": "launch 2 is handed values that no launch computed",
    "hostile_grid": "depends on the data, in a number, a grid or a name",
    "hostile_nested": "handed values that no launch computed",
    "hostile_great_ints": "depends on the data, in a number, a grid or a name",
    "hostile_integers": "launch 2 is handed values that no launch computed",
    "hostile_integer_task": "handed values that no launch computed",
    "hostile_small_only": "handed values that no launch computed",
    "hostile_alike": "handed values that no launch computed",
}
"""More ways round the kernel. The subclass is no output to the sandbox: the loose test, which runs
there too, rejects it."""
TWINS = [
    "twin",
    "twin_bookkeeping",
    "twin_constexpr",
    "twin_custom_op",
    "twin_last_block",
    "twin_lazy_table",
    "twin_numpy",
    "twin_padded_rows",
    "twin_plain_helper",
    "twin_pointer_table",
    "twin_pruned",
    "twin_settings",
    "twin_shared_arena",
    "twin_workspace",
    "twin_wrapper",
]
INTERPRETERS_FAULT = "interpreter fails where its compiler does not"
UNJUDGED = {
    "unjudged_names": INTERPRETERS_FAULT,
    "unjudged_wrap": INTERPRETERS_FAULT,
    "unjudged_picky": "it asks for a GPU",
}
"""Honest ones that Triton's compiler takes and its interpreter fails in, and one that chooses itself
what is not judged."""


def test_every_violator_has_its_accusation() -> None:
    assert {path.stem for path in HERE.glob("violator*.py")} == set(VIOLATORS)
    assert {path.stem for path in HERE.glob("hostile*.py")} == set(HOSTILE)


@pytest.mark.parametrize(("name", "accusation"), (VIOLATORS | HOSTILE).items())
def test_violator_fails_hard(name: str, accusation: str, sandbox: Sandbox) -> None:
    followed = name.startswith("hostile") and name != "hostile_subclass"
    only = "provenance" if followed else ""  # of some, each call takes long
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py", only=only)
    assert judged.status is GateStatus.FAIL, judged.explain()
    assert accusation in judged.explain()
    assert any(finding.hard for _, finding in judged.failures), judged.explain()


@pytest.mark.parametrize("name", TWINS)
def test_twin_passes(name: str, sandbox: Sandbox) -> None:
    if CUDA and name == "twin_numpy":
        pytest.skip("NO CPU: numpy on a GPU's host is no kernel for that GPU")
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    assert judged.status is GateStatus.PASS, judged.explain()


@pytest.mark.skipif(CUDA, reason="NO INTERPRETER: the kernels run on the device, and are judged")
@pytest.mark.parametrize(("name", "reason"), UNJUDGED.items())
def test_what_the_interpreter_cannot_run_leaves_the_gate_open(
    name: str, reason: str, sandbox: Sandbox
) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    assert judged.status is GateStatus.INCONCLUSIVE, judged.explain()
    assert reason in judged.explain()
    assert any(f.passed for c, f in judged.findings if c.label.startswith("compiles"))


@pytest.mark.skipif(CUDA, reason="NO CPU: numpy on a GPU's host is no kernel for that GPU")
def test_what_a_device_cannot_show_has_a_reason(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "twin_numpy.py")
    reasons = {c.label: f.detail for c, f in judged.findings if f.status is not GateStatus.PASS}
    assert "numpy works on the CPU" in reasons["work"]
    assert "no launch" in reasons["ablation"]
    assert "without a GPU" in reasons["stream"]


def test_a_task_that_permits_library_calls_still_forbids_memory(sandbox: Sandbox) -> None:
    bench = bench_for(HERE / "violator_torch.py")
    behaviour = replace(bench.contract.behaviour, library_calls=True)
    lenient = replace(bench, contract=replace(bench.contract, behaviour=behaviour))
    kernel = sandbox.load(source=(HERE / "violator_torch.py").read_bytes(), entry="run")
    statuses = {c.label: GATE.judge(lenient, c, kernel).status for c in GATE.cases(lenient)}
    kernel.close()
    assert statuses["work"] is GateStatus.NOT_APPLICABLE
    assert statuses["memory"] is GateStatus.PASS
    assert statuses["repeats"] is GateStatus.PASS


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("unseen_pointer_object", "cannot be seen through"),
        ("unseen_silence", "elsewhere it returns, and here it does not"),
    ],
)
def test_what_cannot_be_seen_through_leaves_the_gate_open(
    name: str, reason: str, sandbox: Sandbox
) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py", only="provenance")
    assert judged.status is GateStatus.INCONCLUSIVE, judged.explain()
    assert reason in judged.explain()
