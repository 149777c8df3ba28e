"""Results of an audit in the hub: a campaign whose runs carry the verdicts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import call_command

from kernelhub.core.models import Campaign, Run
from tests.audit.rows import kernel, row, verdict
from verifier.audit.corpus import Corpus, CorpusTask, sha256_of
from verifier.audit.pack import write_pack
from verifier.audit.results import ResultsFile
from verifier.records import KernelRef, Language, TaskRef

SOURCE = "import torch\n\n\ndef run(x):\n    return x\n"
CONTRACT = json.dumps({"slug": "relu", "title": "ReLU", "category": "elementwise"})


@pytest.fixture
def audited(tmp_path: Path) -> tuple[Path, Path]:
    task = CorpusTask("relu", CONTRACT, "def reference(x):\n    return x\n")
    kernels = (kernel("a", source=SOURCE), kernel("b", source=SOURCE + "# b\n"))
    write_pack(tmp_path / "corpus.jsonl.gz", Corpus({"relu": task}, kernels))
    found = replace(
        verdict(),
        task=TaskRef("relu", task.digest),
        kernel=KernelRef(sha256_of(SOURCE), "run", Language.TORCH, ""),
    )
    results = ResultsFile(tmp_path / "results.jsonl", resume=False)
    results.append(row("a", found))
    results.append(row("b", error_kind="task", error="the reference raises"))
    results.close()
    return tmp_path / "corpus.jsonl.gz", tmp_path / "results.jsonl"


@pytest.mark.django_db(transaction=True)
def test_each_row_becomes_a_run_of_the_campaign(audited: tuple[Path, Path]) -> None:
    call_command("record_audit", *map(str, audited), campaign="sample")
    runs = Run.objects.filter(campaign__slug="sample")
    assert sorted(runs.values_list("status", "error_message")) == [
        ("errored", "the reference raises"),
        ("finished", ""),
    ]


@pytest.mark.django_db(transaction=True)
def test_recording_again_changes_nothing(audited: tuple[Path, Path]) -> None:
    for _ in range(2):
        call_command("record_audit", *map(str, audited), campaign="sample")
    assert Campaign.objects.get(slug="sample").runs.count() == 2
