"""What the two corpora hold, and that every file of them is usable."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.fuzzoracle.suite import HERE, SUITE, CorpusError, read_corpus, read_group
from kernelhub.core import suites
from tests.benchmarks.fuzzoracle.verdicts import PARTS, WITNESSES, distinct, replica
from verifier.contract import load_task
from verifier.records import GateId

REPLICA = read_group("p1_replica")
DISTINCT = read_group("illusions26")
TASKS = sorted(path.name for path in (HERE / "tasks").iterdir() if path.is_dir())
FLASH = "op-flash-attention"
"""The variant beside the 26 ops."""


def roles(entries: tuple[object, ...]) -> Counter[str]:
    return Counter(getattr(entry, "role", "") for entry in entries)


def test_the_replica_has_26_entries_over_14_ops() -> None:
    assert roles(REPLICA) == {"control": 16, "bug": 10}
    assert len({entry.task for entry in REPLICA}) == 14


def test_four_entries_of_the_replica_are_numpy() -> None:
    numpy = {e.label for e in REPLICA if "import triton" not in e.path.read_text()}
    assert numpy == {"softmax", "layernorm", "matmul", "softmax_llm_buggy"}


def test_26_distinct_ops_and_a_flash_variant_have_one_control_each() -> None:
    controls = Counter(entry.task for entry in DISTINCT if entry.role == "control")
    assert len(controls) == 27
    assert FLASH in controls
    assert set(controls.values()) == {1}


def test_every_distinct_op_has_an_illusion() -> None:
    assert {e.task for e in DISTINCT} == {e.task for e in DISTINCT if e.role == "illusion"}


def test_the_verdict_tests_judge_every_kernel_in_exactly_one_file() -> None:
    files = [*(distinct(part) for part in PARTS), replica("control"), replica("bug")]
    shares = Counter(entry.label for entries in files for entry in entries)
    assert shares == Counter(entry.label for entry in read_corpus())
    names = {path.stem for path in Path(__file__).parent.glob("test_verdicts_*.py")}
    expected = {*PARTS, "replica_controls", "replica_bugs"}
    assert names == {f"test_verdicts_{part}" for part in expected}


def test_every_gate_has_an_illusion_that_must_be_caught_by_it() -> None:
    illusions = {entry.label for entry in DISTINCT if entry.role == "illusion"}
    assert set(WITNESSES) == set(GateId)
    assert set(WITNESSES.values()) <= illusions


def test_the_corpora_share_no_task_and_no_label() -> None:
    assert not {e.task for e in REPLICA} & {e.task for e in DISTINCT}
    labels = Counter(entry.label for entry in read_corpus())
    assert max(labels.values()) == 1


@pytest.mark.parametrize("group", ["p1_replica", "illusions26"])
def test_index_and_files_agree(group: str) -> None:
    files = {path.stem for path in (HERE / "kernels" / group).glob("*.py")}
    assert files == {entry.label for entry in read_group(group)}


def test_every_task_has_a_kernel() -> None:
    assert set(TASKS) == {entry.task for entry in read_corpus()}


@pytest.mark.parametrize("slug", TASKS)
def test_a_task_folder_loads_under_its_own_name(slug: str) -> None:
    assert load_task(HERE / "tasks" / slug).contract.slug == slug


def test_the_suite_enters_the_registry() -> None:
    assert suites.get("fuzzoracle") is SUITE


def test_suite_and_verifier_name_a_task_by_the_same_digest() -> None:
    for source in SUITE.tasks():
        assert source.digest == load_task(HERE / "tasks" / source.slug).digest


def test_every_kernel_reaches_core_with_role_and_note() -> None:
    kernels = {kernel.label: kernel for kernel in SUITE.corpus()}
    assert len(kernels) == len(read_corpus())
    assert kernels["softmax_triton_buggy"].expectation == "bug"
    assert "H is a power of two" in kernels["softmax_triton_buggy"].note
    assert kernels["softmax_triton"].note == ""


def test_an_index_without_a_role_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kernels" / "broken"
    folder.mkdir(parents=True)
    row = {"label": "k", "task": "t", "role": "hero", "defect": "", "hides": ""}
    (folder / "index.json").write_text(json.dumps({"kernels": [row]}))
    monkeypatch.setattr("benchmarks.fuzzoracle.suite.HERE", tmp_path)
    with pytest.raises(CorpusError, match="hero"):
        read_group("broken")
