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
from verifier.records import GateId, GateResult, GateStatus, Outcome, Verdict
from verifier.session import Job, Session

ROOT = Path(__file__).parents[3]
TASK = ROOT / "tests/gates/tasks/rms_norm_grad"
KERNELS = Path(__file__).with_name("kernels")
HONEST: Final = (KERNELS / "honest.py").read_text(encoding="utf-8")
SEED: Final = 20261130


@dataclass(frozen=True, slots=True)
class Violator:
    """The honest kernel with one text replaced, the gate that must find it, and a few of its words."""

    name: str
    old: str
    new: str
    gate: GateId
    words: str


VIOLATORS: Final = (
    Violator(
        "no gradient of the weight",
        "return dx, dw",
        "return dx, None",
        GateId.AGREEMENT,
        "the gradient of w is None",
    ),
    Violator(
        "outside of autograd",
        "return RmsNorm.apply(x, w)",
        "return RmsNorm.forward(type('Ctx', (), {'save_for_backward': print}), x, w)",
        GateId.AGREEMENT,
        "y does not require grad",
    ),
    Violator(
        "takes its own scale for a constant",
        "dx = scale * (up * w - normed * share)",
        "dx = scale * up * w",
        GateId.AGREEMENT,
        "gradient of x is off",
    ),
    Violator(
        "answers with what it gave before",
        "return dx, dw",
        "dw.copy_(KEPT.setdefault((w.dtype, w.shape), dw.clone()))\n        return dx, dw",
        GateId.AGREEMENT,
        "gradient of w is off",
    ),
    Violator(
        "takes the upstream gradient for contiguous",
        "up = up.contiguous()",
        "",
        GateId.AGREEMENT,
        "the upstream gradient has stride 0",
    ),
    Violator(
        "spoils what it has saved",
        "        dw += up * normed",
        "        dw += up * normed\n        tl.store(scale_ptr + row, 2 * scale, mask=row < n_rows)",
        GateId.AGREEMENT,
        "in a second pass over the same graph",
    ),
    Violator(
        "forgets the last rows of an odd number",
        "parts, block = triton.cdiv(rows, PART.value)",
        "parts, block = max(rows // PART.value, 1)",
        GateId.SHAPES,
        "gradient of",
    ),
    Violator(
        "writes over the upstream gradient",
        "dx, dw = torch.empty_like(x), torch.empty_like(w)",
        "dx, dw = up, torch.empty_like(w)",
        GateId.SIDE_EFFECTS,
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
        "torch computes for it",
    ),
    Violator(
        "is another kernel where gradients are asked for",
        "    return RmsNorm.apply(x, w)",
        "    if x.requires_grad:\n"
        "        return torch.nn.functional.rms_norm(x, w.shape, w, 1e-5)\n"
        "    return RmsNorm.apply(x, w)",
        GateId.HONEST,
        "torch computes for it",
    ),
    Violator(
        "leaves a sum to autograd",
        "    return RmsNorm.apply(x, w)",
        "    return RmsNorm.apply(x, w.expand(2, -1)[0])",
        GateId.HONEST,
        "torch computes for it: sum",
    ),
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session("cpu") as opened:
        yield opened


def judge(session: Session, source: str, folder: Path, *gates: GateId) -> Verdict:
    kernel = folder / "kernel.py"
    kernel.write_text(source + "\n\nKEPT = {}\n", encoding="utf-8")
    asked = gates or tuple(GateId)
    return session.judge(Job(TASK, kernel, seed=SEED, gates=asked, timed=False))


def changed(old: str, new: str) -> str:
    assert HONEST.count(old) == 1, old
    return HONEST.replace(old, new)


def result_of(verdict: Verdict, gate: GateId) -> GateResult:
    return verdict.gates[gate.number - 1]


def test_an_honest_kernel_is_accused_by_no_gate(session: Session, tmp_path: Path) -> None:
    verdict = judge(session, HONEST, tmp_path)
    assert verdict.outcome is Outcome.ACCEPTED, [(r.gate, r.reason) for r in verdict.gates]


@pytest.mark.parametrize("violator", VIOLATORS, ids=lambda violator: violator.name)
def test_a_broken_backward_pass_fails(
    session: Session, tmp_path: Path, violator: Violator
) -> None:
    source = changed(violator.old, violator.new)
    verdict = judge(session, source, tmp_path, violator.gate)
    result = result_of(verdict, violator.gate)
    assert result.status is GateStatus.FAIL, result.reason
    assert result.reason.startswith("backward: ")
    assert violator.words in result.reason
    assert verdict.illusion
