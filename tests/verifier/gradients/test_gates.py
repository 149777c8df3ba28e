"""The gates on gradients: an honest kernel passes all, and each change to it that breaks its
backward pass fails the gate that asks for what it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from verifier.commands.replay import replay_all
from verifier.contract import load_task
from verifier.gate import Finding
from verifier.gradients import BackwardGate, backward_choice
from verifier.pipeline import GATES, build_backward, build_bench
from verifier.records import GateId, GateStatus, Outcome, Verdict
from verifier.session import Job, Session, make_request
from verifier.source import read_source

ROOT = Path(__file__).parents[3]
TASK = ROOT / "tests/gates/tasks/rms_norm_grad"
KERNELS = Path(__file__).with_name("kernels")
HONEST: Final = (KERNELS / "honest.py").read_text(encoding="utf-8")
SEED: Final = 20261130


@dataclass(frozen=True, slots=True)
class Violator:
    """The honest kernel with one text replaced, the gate that must find it, how the label of the
    case begins that shows it, and a few words of the reason."""

    name: str
    old: str
    new: str
    gate: GateId
    case: str
    words: str


VIOLATORS: Final = (
    Violator(
        "no gradient of the weight",
        "return dx, dw",
        "return dx, None",
        GateId.AGREEMENT,
        "normal",
        "the gradient of w is None",
    ),
    Violator(
        "outside of autograd",
        "return RmsNorm.apply(x, w)",
        "return RmsNorm.forward(type('Ctx', (), {'save_for_backward': print}), x, w)",
        GateId.AGREEMENT,
        "normal",
        "y does not require grad",
    ),
    Violator(
        "takes its own scale for a constant",
        "dx = scale * (up * w - normed * share)",
        "dx = scale * up * w",
        GateId.AGREEMENT,
        "normal",
        "gradient of x is off",
    ),
    Violator(
        "answers with what it gave before",
        "return dx, dw",
        "dw.copy_(KEPT.setdefault((w.dtype, w.shape), dw.clone()))\n        return dx, dw",
        GateId.AGREEMENT,
        "normal values, float32",
        "gradient of w is off",
    ),
    Violator(
        "takes the upstream gradient for contiguous",
        "up = up.contiguous()",
        "",
        GateId.AGREEMENT,
        "upstream of stride 0",
        "the upstream gradient has stride 0",
    ),
    Violator(
        "spoils what it has saved",
        "        dw += up * normed",
        "        dw += up * normed\n        tl.store(scale_ptr + row, 2 * scale, row < n_rows)",
        GateId.AGREEMENT,
        "second pass",
        "in a second pass over the same graph",
    ),
    Violator(
        "forgets the last rows of an odd number",
        "parts, block = triton.cdiv(rows, PART.value)",
        "parts, block = max(rows // PART.value, 1)",
        GateId.SHAPES,
        "M=17",
        "gradient of",
    ),
    Violator(
        "writes over the upstream gradient",
        "dx, dw = torch.empty_like(x), torch.empty_like(w)",
        "dx, dw = up, torch.empty_like(w)",
        GateId.SIDE_EFFECTS,
        "usual",
        "upstream of y",
    ),
    Violator(
        "leaves the gradient to torch",
        "        x, w, scale = ctx.saved_tensors\n",
        "        x, w, scale = ctx.saved_tensors\n"
        "        with torch.enable_grad():\n"
        "            x, w = x.detach().requires_grad_(), w.detach().requires_grad_()\n"
        "            y = torch.nn.functional.rms_norm(x, w.shape, w, 1e-5)\n"
        "        return torch.autograd.grad(y, (x, w), up)\n",
        GateId.HONEST,
        "work",
        "torch computes for it",
    ),
    Violator(
        "is another kernel where gradients are asked for",
        "    return RmsNorm.apply(x, w)",
        "    if x.requires_grad:\n"
        "        return torch.nn.functional.rms_norm(x, w.shape, w, 1e-5)\n"
        "    return RmsNorm.apply(x, w)",
        GateId.HONEST,
        "work",
        "torch computes for it",
    ),
    Violator(
        "leaves a sum to autograd",
        "    return RmsNorm.apply(x, w)",
        "    return RmsNorm.apply(x, w.expand(2, -1)[0])",
        GateId.HONEST,
        "work",
        "torch computes for it: sum",
    ),
    Violator(
        "has autograd add up its rows",
        "    return RmsNorm.apply(x, w)",
        "    return torch.cat([RmsNorm.apply(x[i : i + 1], w) for i in range(len(x))])",
        GateId.HONEST,
        "work",
        "torch computes for it: add",
    ),
)


def changed(old: str, new: str) -> bytes:
    assert HONEST.count(old) == 1, old
    return (HONEST.replace(old, new) + "\n\nKEPT = {}\n").encode()


def judge(session: Session, source: bytes, folder: Path, *gates: GateId) -> Verdict:
    """The whole way, from the pipeline to the verdict."""
    kernel = folder / "kernel.py"
    kernel.write_bytes(source)
    asked = gates or tuple(GateId)
    return session.judge(Job(TASK, kernel, seed=SEED, gates=asked, timed=False))


def findings(session: Session, source: bytes, gate: GateId, label: str) -> Iterator[Finding]:
    """What one gate finds in the gradients, case by case."""
    request = make_request(Job(TASK, Path(), seed=SEED), read_source(source))
    derived = build_backward(build_bench(request, session.mode, session.device))
    assert derived is not None
    choice = backward_choice(request.choice, request.task.contract)
    candidate = session.sandbox.load(source=source, **choice.options())
    backward = BackwardGate(GATES[gate.number - 1])
    try:
        for case in backward.cases(derived):
            if case.label.startswith(f"backward: {label}"):
                yield backward.judge(derived, case, candidate)
    finally:
        candidate.close()


def test_an_honest_kernel_is_accused_by_no_gate(session: Session, tmp_path: Path) -> None:
    verdict = judge(session, HONEST.encode(), tmp_path)
    assert verdict.outcome is Outcome.ACCEPTED, [(r.gate, r.reason) for r in verdict.gates]


@pytest.mark.parametrize("violator", VIOLATORS, ids=lambda violator: violator.name)
def test_a_broken_backward_pass_fails(session: Session, violator: Violator) -> None:
    source = changed(violator.old, violator.new)
    found = list(findings(session, source, violator.gate, violator.case))
    failures = [finding for finding in found if finding.failed]
    assert failures, found
    assert violator.words in failures[0].detail
    assert failures[0].detail.startswith("backward: ")


def test_a_violation_is_the_gates_and_is_replayed_from_its_seed(
    session: Session, tmp_path: Path
) -> None:
    source = changed("dx = scale * (up * w - normed * share)", "dx = scale * up * w")
    verdict = judge(session, source, tmp_path, GateId.AGREEMENT)
    assert verdict.illusion
    result = verdict.gates[0]
    assert result.status is GateStatus.FAIL
    assert result.reason.startswith("backward: gradient of x")
    assert result.passed > 0
    outcomes = replay_all(verdict, load_task(TASK), [result], session)
    assert [outcome.exact for outcome in outcomes] == [True]


def test_what_autograd_itself_adds_up_is_not_held_against_a_kernel(session: Session) -> None:
    halves = "torch.cat([RmsNorm.apply(x[:2], w), RmsNorm.apply(x[2:], w)])"
    source = changed("return RmsNorm.apply(x, w)", f"return {halves}")
    for label in ("work", "provenance"):
        found = list(findings(session, source, GateId.HONEST, label))
        assert found
        assert all(finding.passed for finding in found), found
