"""Packed corpora and resumable results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.rows import kernel, row, verdict
from verifier.audit.corpus import Corpus, CorpusError, CorpusTask
from verifier.audit.pack import is_pack, read_pack, write_pack
from verifier.audit.pool import CHUNK, chunks
from verifier.audit.results import ResultsFile, latest, read_rows

TASK = CorpusTask("relu", '{"slug": "relu"}', "def reference(x):\n    return x\n")


def corpus() -> Corpus:
    return Corpus({"relu": TASK}, (kernel("a"), kernel("b", problem="not Python", source="")))


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_a_pack_gives_back_what_was_packed(tmp_path: Path, name: str) -> None:
    write_pack(tmp_path / name, corpus())
    assert is_pack(tmp_path / name)
    assert read_pack(tmp_path / name) == corpus()


def test_equal_corpora_give_equal_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl.gz", tmp_path / "a2.jsonl.gz"]
    for path in paths:
        write_pack(path, corpus())
    one, other = (path.read_bytes() for path in paths)
    assert one == other


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    write_pack(path, corpus())
    path.write_text(path.read_text() + "{nonsense\n")
    with pytest.raises(CorpusError, match="line 5"):
        read_pack(path)


def test_two_kernels_cannot_share_a_key() -> None:
    with pytest.raises(CorpusError, match="share a key"):
        Corpus({"relu": TASK}, (kernel("a"), kernel("a")))


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "r.jsonl", resume=False)
    results.append(row("a", verdict()))
    results.close()
    assert list(read_rows(tmp_path / "r.jsonl")) == [row("a", verdict())]


def test_a_line_that_a_crash_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    results = ResultsFile(path, resume=False)
    results.append(row("a", verdict()))
    results.close()
    path.write_bytes(path.read_bytes() + b'{"key": "b", "corp')
    again = ResultsFile(path, resume=True)
    again.append(row("c", verdict()))
    again.close()
    assert [one.key for one in read_rows(path)] == ["a", "c"]


def test_results_are_not_overwritten_by_accident(tmp_path: Path) -> None:
    ResultsFile(tmp_path / "r.jsonl", resume=False).close()
    with pytest.raises(CorpusError, match="--resume"):
        ResultsFile(tmp_path / "r.jsonl", resume=False)


def test_the_last_row_of_a_kernel_counts() -> None:
    first = row("a", error_kind="infrastructure", error="died")
    assert latest([first, row("a", verdict())]) == [row("a", verdict())]


def test_kernels_of_a_task_stay_together() -> None:
    mixed = [kernel(f"{i}", task=f"t{i % 2}") for i in range(2 * CHUNK + 2)]
    portions = list(chunks(mixed))
    assert all(len({one.task for one in portion}) == 1 for portion in portions)
    assert [len(portion) for portion in portions] == [CHUNK, 1, CHUNK, 1]
