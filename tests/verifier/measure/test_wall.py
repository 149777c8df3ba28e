"""In the interpreter: wall times of whole calls, and nothing made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.inprocess import InProcess, make_bench
from verifier.gates.g12_honest import GATE
from verifier.measure.latency import INTERPRETER_NOTE, measure
from verifier.measure.looks import WrongOutputError
from verifier.records import Clock

KERNEL = "import torch\ndef run(x):\n    return torch.relu(x)\n"


def test_without_a_device_kernel_and_eager_have_wall_times_and_no_speedup(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    kernel, eager = measure(make_bench("relu"), InProcess(path))
    assert (kernel.subject, eager.subject) == ("kernel", "eager")
    assert {kernel.clock, eager.clock} == {Clock.WALL}
    assert {kernel.note, eager.note} == {INTERPRETER_NOTE}
    assert kernel.speedup is None
    assert kernel.n == 7


STALE = """
import torch
kept = []
def run(x):
    kept.append(torch.relu(x))
    return kept[-1 if len(kept) < 3 else 0].clone()
"""


def test_a_wrong_timed_output_is_told_as_a_case_that_fails_again(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(STALE)
    bench = make_bench("relu")
    with pytest.raises(WrongOutputError, match="wrong output in a timed call") as caught:
        measure(bench, InProcess(path))
    assert caught.value.finding.index
    assert GATE.judge(bench, caught.value.case, InProcess(path)).failed
    path.write_text(KERNEL)
    assert GATE.judge(bench, caught.value.case, InProcess(path)).passed
