"""What the README says of the verifier alone, tried as its reader will try it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.verifier.conftest import Command
from verifier.records import GateId, GateStatus, Outcome
from verifier.session import Job, Session

REPO: Final = Path(__file__).parents[2]
SECTION: Final = re.compile(r"^## The verifier alone\n(.*?)^## ", re.DOTALL | re.MULTILINE)
PROGRAM: Final = ".venv/bin/python -m verifier"
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


def promised(line: str) -> int:
    """The exit code that a line of the README ends with."""
    code = re.search(r"# exit (\d)", line)
    return int(code[1]) if code else 0


def bash(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = ["bash", "-c", script]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600)


def words_of(lines: list[str], folder: Path) -> list[list[str]]:
    """What the shell makes of the lines: the words that each command of the verifier gets."""
    script = "\n".join(lines).replace(PROGRAM, "printf '%s\\n' COMMAND")
    told = bash(script, folder).stdout.split("COMMAND\n")
    return [command.splitlines() for command in told[1:]]


def test_the_first_line_works_in_a_shell(checkout: Path) -> None:
    lines = lines_of_the_verifier()
    first = next(n for n, line in enumerate(lines) if PROGRAM in line)
    done = bash("\n".join(lines[: first + 1]), checkout)
    assert done.returncode == promised(lines[first]), done.stdout + done.stderr
    assert "ACCEPTED: 12 passed" in done.stdout


def test_the_lines_of_the_verifier_alone_do_what_they_say(
    checkout: Path,
    command: Command,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On the warm session of this process: what starting one anew shows, the first line does."""
    lines = lines_of_the_verifier()
    codes = [promised(line) for line in lines if PROGRAM in line]
    commands = zip(words_of(lines, checkout), codes, strict=True)
    monkeypatch.chdir(checkout)
    for words, code in list(commands)[1:]:
        assert command(*words) == code, (words, capsys.readouterr())
    said = capsys.readouterr().out
    assert "REJECTED" in said
    assert "An illusion" in said
    assert "input digests match, output digests match" in said
    assert "DIFFER" not in said
    assert {"verdict.json", "fuzz.json", "tolerances.json"} <= {p.name for p in checkout.iterdir()}
