"""What the README says of the verifier alone, tried as its reader will try it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from verifier.records import GateId, GateStatus, Outcome
from verifier.session import Job, Session

REPO: Final = Path(__file__).parents[1]
SECTION: Final = re.compile(r"^## The verifier alone\n(.*?)^## ", re.DOTALL | re.MULTILINE)
TASK: Final = "benchmarks/fuzzoracle/tasks/softmax"


def readme_kernel() -> str:
    text = (REPO / "README.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return str(source)


def test_torch_alone_is_rejected_by_gate_12_as_the_readme_says(
    verifier_session: Session, tmp_path: Path
) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import torch\ndef run(x):\n    return torch.softmax(x, -1)\n")
    verdict = verifier_session.judge(Job(REPO / TASK, kernel, timed=False))
    assert verdict.outcome is Outcome.REJECTED
    assert verdict.gates[GateId.HONEST.number - 1].status is GateStatus.FAIL


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that looks like the reader's checkout and keeps what the commands write."""
    for name in ("benchmarks", "verifier"):
        (tmp_path / name).symlink_to(REPO / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "kernel.py").write_text(readme_kernel(), encoding="utf-8")
    return tmp_path


def lines_of_the_verifier() -> list[str]:
    """The section's shell lines, as they stand."""
    found = SECTION.search((REPO / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    blocks = re.findall(r"^```sh\n(.*?)^```", found[1], re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def test_the_lines_of_the_verifier_alone_do_what_they_say(checkout: Path) -> None:
    said = []
    for line in lines_of_the_verifier():
        promised = re.search(r"# exit (\d)", line)
        said.append(f"{line}\n[ $? = {promised[1] if promised else 0} ] || exit 9\n")
    script = "".join(said)
    done = subprocess.run(
        ["bash", "-c", script], cwd=checkout, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ACCEPTED: 12 passed" in done.stdout
    assert "REJECTED" in done.stdout
    assert "An illusion" in done.stdout
    assert "input digests match, output digests match" in done.stdout
    assert "DIFFER" not in done.stdout
    assert {"verdict.json", "fuzz.json", "tolerances.json"} <= {p.name for p in checkout.iterdir()}
