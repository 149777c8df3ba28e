"""The README's example of a kernel, judged as its reader will have it judged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

REPO: Final = Path(__file__).parents[1]
TASK: Final = "benchmarks/fuzzoracle/tasks/softmax"


def readme_kernel() -> str:
    text = (REPO / "README.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return str(source)


def verify(kernel: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = ("verify", "--task", TASK, "--kernel", str(kernel), "--device", "cpu", "--no-timing")
    return subprocess.run(
        [sys.executable, "-m", "verifier", *words, *options],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_kernel_of_the_readme_passes_all_twelve_gates(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(readme_kernel(), encoding="utf-8")
    done = verify(kernel)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ACCEPTED: 12 passed" in done.stdout


def test_torch_alone_is_rejected_by_gate_12_as_the_readme_says(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import torch\ndef run(x):\n    return torch.softmax(x, -1)\n")
    done = verify(kernel, "--gates", "G12")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "REJECTED" in done.stdout
