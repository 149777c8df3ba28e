"""Upstream figures come in exactly, and differences are told before they are written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from benchmarks.fuzzoracle.importer import import_entries, merged_candidates, read_entries
from benchmarks.fuzzoracle.suite import HERE, CorpusError


def upstream() -> dict[str, Any]:
    """The committed index, written back in upstream's own format."""
    index = json.loads((HERE / "kernels/p1_replica/index.json").read_text())
    return {
        "source": index["source"],
        "entries": {row["label"]: _meta(row["declared"]) for row in index["kernels"]},
    }


def _meta(declared: dict[str, Any]) -> dict[str, Any]:
    dims = [{"name": n, "candidates": sizes} for n, sizes in declared["candidates"].items()]
    return {
        "source": declared["source"],
        "benchmark_verdict": declared["verdict"],
        "dtypes": declared["dtypes"],
        "tolerances": declared["atol"],
        "op_schema": {"dims": dims},
    }


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "entries.json"
    path.write_text(json.dumps(upstream()))
    return path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    root = tmp_path / "suite"
    for name in ("tasks", "kernels"):
        shutil.copytree(HERE / name, root / name)
    return root


def test_the_committed_corpus_holds_upstreams_figures(document: Path) -> None:
    assert import_entries(document, write=False) == []


def test_upstreams_own_folder_is_read_as_the_document_is(document: Path, tmp_path: Path) -> None:
    for label, meta in upstream()["entries"].items():
        (tmp_path / "data" / label).mkdir(parents=True)
        (tmp_path / "data" / label / "meta.json").write_text(json.dumps(meta))
    assert read_entries(tmp_path / "data") == read_entries(document)


def test_a_folder_without_entries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"meta\.json"):
        read_entries(tmp_path)


def test_a_task_takes_the_union_of_its_entries_candidates(document: Path) -> None:
    _, entries = read_entries(document)
    matmuls = [entry for entry in entries if entry.op == "matmul"]
    assert len(matmuls) == 3
    assert merged_candidates(matmuls)["M"] == [1, 2, 7, 64, 128]


def test_a_changed_candidate_is_told_and_written(document: Path, copy: Path) -> None:
    changed = upstream()
    changed["entries"]["relu_triton"]["op_schema"]["dims"][0]["candidates"] = [1, 2, 9]
    document.write_text(json.dumps(changed))
    expected = ["index: relu_triton", "relu: candidates of B"]
    assert import_entries(document, root=copy, write=True) == expected
    assert import_entries(document, root=copy, write=False) == []


def test_without_write_nothing_changes(document: Path, copy: Path) -> None:
    changed = upstream()
    changed["entries"]["relu_triton"]["tolerances"] = {"float32": 1.0}
    document.write_text(json.dumps(changed))
    before = (copy / "kernels/p1_replica/index.json").read_bytes()
    assert import_entries(document, root=copy, write=False) == ["index: relu_triton"]
    assert (copy / "kernels/p1_replica/index.json").read_bytes() == before


def test_an_entry_without_a_kernel_of_ours_is_refused(document: Path, copy: Path) -> None:
    changed = upstream()
    changed["entries"]["new_triton"] = changed["entries"]["relu_triton"]
    document.write_text(json.dumps(changed))
    with pytest.raises(CorpusError, match="new_triton"):
        import_entries(document, root=copy, write=True)


def test_a_document_without_entries_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "entries.json"
    path.write_text("{}")
    with pytest.raises(CorpusError, match=r"entries\.json"):
        read_entries(path)


def test_the_command_checks_without_writing(
    document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("import_fuzzoracle", str(document), check=True)
    assert "0 changes" in capsys.readouterr().out


def test_the_command_says_what_it_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nowhere\.json"):
        call_command("import_fuzzoracle", str(tmp_path / "nowhere.json"))
