"""What a kernel that is no Python is told: the fault and its line, at once and everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.verifier.conftest import Command
from verifier.conventions.function import module_load
from verifier.records import Verdict, from_json

TASK = Path(__file__).resolve().parents[1] / "gates/tasks/row_softmax"
FAULTS = {
    "bracket": (
        b"import torch\n\ndef run(x:\n    return x\n",
        "SyntaxError: '(' was never closed (kernel.py, line 3)",
    ),
    "indent": (
        b"def run(x):\n    y = x\n      return y\n",
        "IndentationError: unexpected indent (kernel.py, line 3)",
    ),
    "no-body": (
        b"def run(x):\nreturn x\n",
        "IndentationError: expected an indented block after function definition on line 1 "
        "(kernel.py, line 2)",
    ),
    "tabs": (
        b"def run(x):\n        if True:\n\treturn x\n\n",
        "TabError: inconsistent use of tabs and spaces in indentation (kernel.py, line 3)",
    ),
    "null": (
        b"def run(x):\n    return x\n\0",
        "SyntaxError: the source holds a null byte, byte 25 (kernel.py, line 3)",
    ),
    "latin": (
        b"# caf\xe9\ndef run(x):\n    return x\n",
        "SyntaxError: the source is not UTF-8: invalid continuation byte at byte 5 "
        "(kernel.py, line 1)",
    ),
    "nested": (
        b"exec('def run(x:')\n",
        "SyntaxError: '(' was never closed (<string>, line 1)",
    ),
}


@pytest.mark.parametrize(("source", "said"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_syntax_is_told_in_one_line_with_its_place(
    source: bytes, said: str, tmp_path: Path
) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_bytes(source)
    with pytest.raises(SyntaxError) as caught:
        module_load(kernel)
    assert f"{caught.type.__name__}: {caught.value}" == said


@pytest.mark.parametrize("fault", FAULTS)
def test_every_judge_says_what_is_wrong_and_not_only_where(
    fault: str, tmp_path: Path, command: Command
) -> None:
    source, said = FAULTS[fault]
    kernel, out = tmp_path / "kernel.py", tmp_path / "verdict.json"
    kernel.write_bytes(source)
    assert command("verify", "--task", TASK, "--kernel", kernel, "--json", out) == 1
    verdict = from_json(Verdict, json.loads(out.read_text()))
    first, *others = [gate.reason for gate in verdict.gates]
    assert first == f"the kernel could not be loaded: {said}"
    assert set(others) == {f"not tried: {first}"}
    assert verdict.loose is not None
    assert verdict.loose.detail.endswith(said)
