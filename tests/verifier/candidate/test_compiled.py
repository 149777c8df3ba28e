"""torch.compile in a kernel: compiled in every call where the task permits library calls, in none
elsewhere, and never under our eyes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from verifier.candidate import effects
from verifier.candidate.client import Candidate, Sandbox
from verifier.conventions.names import LIBRARY_CALLS
from verifier.subject import CallOptions, Poison, Reply

COUNTING = b"""
import torch

ran = []

def backend(graph, inputs):
    def counted(*args):
        ran.append(None)
        return graph(*args)
    return counted

@torch.compile(backend=backend)
def body(x):
    return x * 2

def run(x):
    ran.clear()
    y = body(x)
    return y, torch.full((1,), float(len(ran)))
"""
AGAIN = b"import torch\ntorch._dynamo.config.disable = False\n" + COUNTING
MARKED = b"""
import torch

def run(x):
    with torch.profiler.record_function("mine"):
        return x.clone()
"""
BARRED = b"""
import threading
import torch

class Bar(torch.hub.tqdm):
    def __new__(cls, *args, **kwargs):  # where tqdm is installed, as tqdm does
        if cls.monitor_interval:
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        return object.__new__(cls)

def run(x):
    Bar(total=1, disable=True)
    return x.clone()
"""
ALLOCATING = b"""
import torch

def run(x):
    allocate = torch._C._dynamo.guards._empty_strided_cpu  # as the code that Inductor writes does
    y = allocate((6,), (1,), torch.float32)
    torch.as_strided(y, (7,), (1,))[6] = 1.0
    return y
"""

Ask = Callable[..., Candidate]
STAGED = CallOptions(trace=True, below=True)
BARE = CallOptions(bare=True, below=True)


@pytest.fixture
def ask(sandbox: Sandbox) -> Iterator[Ask]:
    loaded: list[Candidate] = []

    def load(source: bytes, *, permitted: bool) -> Candidate:
        details = {LIBRARY_CALLS: True} if permitted else {}
        loaded.append(sandbox.load(source=source, entry="run", details=details))
        return loaded[-1]

    yield load
    for candidate in loaded:
        candidate.close()


def compiled_calls(reply: Reply) -> float:
    assert reply.returned, reply.detail
    return reply.outputs[1].item()


def test_compiled_code_runs_under_the_stage_and_without_it(ask: Ask, x: torch.Tensor) -> None:
    candidate = ask(COUNTING, permitted=True)
    calls = [candidate.call([x], how) for how in (STAGED, BARE, STAGED)]
    assert list(map(compiled_calls, calls)) == [1, 1, 1]
    assert all("torch.compile" in (call.hidden or ()) for call in calls)


def test_without_permission_nothing_is_compiled_whoever_looks(ask: Ask, x: torch.Tensor) -> None:
    candidate = ask(COUNTING, permitted=False)
    calls = [candidate.call([x], how) for how in (BARE, STAGED, BARE)]
    assert list(map(compiled_calls, calls)) == [0, 0, 0]
    assert "aten::mul" in calls[1].ops


def test_who_switches_it_on_again_is_seen_in_every_call(ask: Ask, x: torch.Tensor) -> None:
    candidate = ask(AGAIN, permitted=False)
    calls = [candidate.call([x], how) for how in (STAGED, BARE, STAGED)]
    assert [call.hidden and "torch.compile" in call.hidden for call in calls] == [True] * 3


def test_what_torch_leaves_behind_when_it_compiles_is_no_effect_of_the_kernels(
    ask: Ask, x: torch.Tensor
) -> None:
    reply = ask(COUNTING, permitted=True).call([x])
    assert (reply.effects, reply.effects_before) == ((), ())


def test_the_variables_and_the_recursion_limit_of_the_compiler_are_no_effects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    limit, before = sys.getrecursionlimit(), effects.state_take()
    monkeypatch.setenv("_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR", "1")
    try:
        sys.setrecursionlimit(max(limit, 2000))
        assert effects.state_changes(before, effects.state_take()) == []
        sys.setrecursionlimit(max(limit, 2000) + 1)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
        changed = effects.state_changes(before, effects.state_take())
    finally:
        sys.setrecursionlimit(limit)
    assert changed == ["recursion limit", "environment variable CUDA_VISIBLE_DEVICES"]


def test_what_compiled_code_allocates_is_poisoned_and_guarded(ask: Ask, x: torch.Tensor) -> None:
    reply = ask(ALLOCATING, permitted=True).call([x], CallOptions(poison=Poison.BIG))
    assert reply.returned, reply.detail
    assert reply.outputs[0].eq(2.0**100).all()
    assert reply.touched_guards == ("allocation 0: after its end",)


def test_a_mark_for_the_profiler_is_no_operation_that_computes(ask: Ask, x: torch.Tensor) -> None:
    reply = ask(MARKED, permitted=False).call([x], STAGED)
    assert reply.ops == ("aten::clone",)
    assert reply.hidden == ()


def test_progress_bars_that_torch_makes_start_no_thread(ask: Ask, x: torch.Tensor) -> None:
    reply = ask(BARRED, permitted=True).call([x])
    assert reply.returned, reply.detail
    assert reply.effects == ()
