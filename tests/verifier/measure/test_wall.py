"""In the interpreter: wall times of whole calls, and nothing made of them."""

from __future__ import annotations

from pathlib import Path

from tests.gates.inprocess import InProcess, make_bench
from verifier.measure.latency import INTERPRETER_NOTE, measure
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
