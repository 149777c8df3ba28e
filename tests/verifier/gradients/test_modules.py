"""Gradients of a module's weights, where kernels are modules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from verifier.records import GateId, GateResult, GateStatus
from verifier.session import Job, Session

TASK: Final[dict[str, Any]] = {
    "slug": "scale",
    "title": "A gain for each column",
    "category": "elementwise",
    "dims": {},
    "inputs": [{"name": "x", "shape": [4, 8], "dtype": "float32"}],
    "outputs": [{"name": "y", "shape": [4, 8], "dtype": "float32"}],
    "behaviour": {"library_calls": True, "fixed_shape": True},
    "convention": "kernelbench",
    "module": {"init": [8]},
    "gradients": {
        "inputs": ["x"],
        "weights": [{"name": "gain", "shape": [8], "dtype": "float32"}],
    },
}
MODULE: Final = """
import torch


class {name}(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.{weight} = torch.nn.Parameter(torch.randn(size))

    def forward(self, x):
        return x * self.{weight}{detached}
"""
REFERENCE: Final = (
    MODULE.format(name="Model", weight="gain", detached="")
    + """

from verifier.exchange.reference import module_reference

reference = module_reference(Model, lambda: [8], seed=42)
"""
)


def agreement(session: Session, folder: Path, *, weight: str, detached: str = "") -> GateResult:
    (folder / "task.json").write_text(json.dumps(TASK), encoding="utf-8")
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    kernel = folder / "kernel.py"
    source = MODULE.format(name="ModelNew", weight=weight, detached=detached)
    kernel.write_text(source, encoding="utf-8")
    job = Job(folder, kernel, seed=7, gates=(GateId.AGREEMENT,), timed=False)
    return session.judge(job).gates[0]


def test_the_gradient_of_a_weight_is_judged(session: Session, tmp_path: Path) -> None:
    result = agreement(session, tmp_path, weight="gain")
    assert result.status is GateStatus.PASS, result.reason


@pytest.mark.parametrize(
    ("weight", "detached", "words"),
    [
        ("gain", ".detach()", "the gradient of gain is None"),
        ("scale", "", "no parameter gain: its module has scale"),
    ],
)
def test_a_weight_without_gradient_fails(
    session: Session, tmp_path: Path, weight: str, detached: str, words: str
) -> None:
    result = agreement(session, tmp_path, weight=weight, detached=detached)
    assert result.status is GateStatus.FAIL
    assert words in result.reason
