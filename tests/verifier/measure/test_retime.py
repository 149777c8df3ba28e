"""`retime`: the clock against itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verifier.commands.retime import pair, read_jobs
from verifier.records import Measurement
from verifier.session import UsageError


def row(ms: float, workload: str = "usual", rejected: str = "") -> Measurement:
    return Measurement(workload, "kernel", ms, ms, ms, 10, rejected=rejected)


def test_the_difference_is_a_share_of_the_mean() -> None:
    (twice,) = pair("relu", [row(1.0)], [row(1.1)])
    assert twice.difference == pytest.approx(0.1 / 1.05)


def test_only_workloads_that_were_believed_both_times_are_compared() -> None:
    first = [row(1.0, "a"), row(1.0, "b"), row(1.0, "c", rejected="no")]
    second = [row(1.0, "a"), row(1.0, "b", rejected="no"), row(1.0, "c")]
    assert [twice.workload for twice in pair("relu", first, second)] == ["a"]


def test_a_job_may_ask_for_dims_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text(json.dumps({"task": "t", "kernel": "k.py", "dims": {"N": 4096}}) + "\n\n")
    (line,) = read_jobs(path)
    assert (line.job.kernel, line.dims) == (Path("k.py"), {"N": 4096})


@pytest.mark.parametrize("text", ["{", '{"task": "t"}', "[1]"])
def test_a_line_that_is_no_job_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text(text + "\n")
    with pytest.raises(UsageError, match="line 1"):
        read_jobs(path)
