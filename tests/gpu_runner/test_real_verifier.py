"""The agent with the verifier that it really supervises, on the processor."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from gpu_runner.agent import Agent
from kernelhub.core.models import Event, Run, Task
from tests import factories as make
from tests.gpu_runner.conftest import StartAgent

SERVE = (sys.executable, "-m", "verifier", "serve", "--device", "cpu")
PATIENCE_S = 120.0
CONTRACT = {
    "slug": "double",
    "title": "Double",
    "category": "elementwise",
    "dims": {"N": {"usual": 64, "candidates": [1, 7, 64]}},
    "dtypes": {"T": {"usual": "float32", "candidates": ["float32"]}},
    "inputs": [{"name": "x", "shape": ["N"], "dtype": "T"}],
    "outputs": [{"name": "out", "shape": ["N"], "dtype": "T"}],
}
REFERENCE = "def reference(x):\n    return x * 2\n"
GOOD = """
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, 2.0 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
"""
WRONG = GOOD.replace("2.0 *", "2.5 *")


@pytest.fixture
def task(transactional_db: None) -> Task:
    return make.make_task(contract=CONTRACT, reference=REFERENCE)


@pytest.fixture
def agent(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    return start_agent(verifier=SERVE)


def ended(run: Run) -> Run:
    deadline = time.monotonic() + PATIENCE_S
    while not run.is_ended:
        assert time.monotonic() < deadline, f"{run.status}: {run.error_message}"
        time.sleep(0.1)
        run.refresh_from_db()
    return run


def test_kernels_get_their_verdicts_and_a_senseless_contract_errors_its_run(
    task: Task, agent: Agent
) -> None:
    senseless = make.make_task(contract={"slug": "double"}, reference=REFERENCE)
    unjudged = make.make_run(make.make_kernel(senseless, GOOD))
    good = make.make_run(make.make_kernel(task, GOOD))
    wrong = make.make_run(make.make_kernel(task, WRONG))
    assert [ended(run).status for run in (good, wrong)] == ["finished", "finished"]
    assert [run.verdict.outcome for run in (good, wrong)] == ["accepted", "rejected"]
    assert Event.objects.filter(run=good, kind="gate").count() == 12
    ended(unjudged)
    assert (unjudged.status, unjudged.error_kind, unjudged.attempt) == ("errored", "task", 1)


def test_a_verifier_whose_agent_has_gone_ends(task: Task, agent: Agent) -> None:
    assert ended(make.make_run(make.make_kernel(task, GOOD))).status == "finished"
    verifier = agent.workers[0]._verifier
    assert verifier is not None
    stdin = verifier._child.stdin
    assert stdin is not None
    stdin.close()  # as the kernel closes it when the agent is killed
    assert verifier._child.wait(timeout=20) == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(verifier.pid, 0)
