"""The torch.compile that kernels are held against is compiled, or is no baseline."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
import torch
from torch.autograd.profiler import profile

from verifier.candidate.stopwatch import Setup
from verifier.candidate.timed import TimingError
from verifier.measure import subjects
from verifier.measure.subjects import Local
from verifier.measure.trial import Mode, tape_of

CPU = torch.device("cpu")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's, of its own parts


def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Neither torch nor we remember what another test has compiled, or not compiled."""
    subjects._COMPILED.clear()
    torch._dynamo.reset()
    with torch._dynamo.config.patch(recompile_limit=8):  # which the baseline raises for good
        yield
    subjects._COMPILED.clear()


def operations(subject: Local) -> set[str]:
    """What torch's profiler sees of two calls as the clock makes them."""
    subject.arm([torch.ones(64)], Setup(2))
    with profile() as seen:
        subject.play(tape_of(Mode(), 2))
    return {event.name for event in seen.function_events}


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler on the CPU")
def test_on_the_clock_runs_what_was_compiled_and_not_the_operations_of_eager() -> None:
    eager = operations(subjects.eager(doubled, CPU, allow_tf32=False))
    compiled = operations(subjects.compiled(doubled, CPU, allow_tf32=False))
    assert "aten::relu" in eager
    assert "aten::relu" not in compiled
    assert any(name.startswith("Torch-Compiled Region") for name in compiled)


def test_where_nothing_is_compiled_there_is_no_such_baseline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **how: function)
    subject = subjects.compiled(doubled, CPU, allow_tf32=False)
    with pytest.raises(TimingError, match="compiled nothing"):
        subject.arm([torch.ones(64)], Setup(2))


def test_beyond_the_limit_of_programs_it_is_no_baseline_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As torch itself then does: it goes on eagerly."""
    from torch._inductor import compile_fx

    monkeypatch.setattr(compile_fx, "compile_fx", lambda graph, inputs: graph)
    monkeypatch.setattr(subjects, "_MOST_COMPILATIONS", 1)
    subject = subjects.compiled(doubled, CPU, allow_tf32=False)
    subject.arm([torch.ones(64)], Setup(2))
    with pytest.raises(TimingError, match="compiled nothing"):
        subject.arm([torch.ones(65)], Setup(2))
