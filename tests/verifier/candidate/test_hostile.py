"""Bad input of every kind: what the verdict says, and that the next kernel is unaffected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from tests.verifier.candidate.conftest import HONEST, HOSTILE, Load, residents
from verifier.candidate.client import Candidate, Sandbox
from verifier.subject import CallOptions, Poison, Reply, ReplyKind

Hostile = Callable[[str], Candidate]


@pytest.fixture(autouse=True)
def _nothing_remains(sandbox: Sandbox, x: torch.Tensor) -> Iterator[None]:
    """After each test here an honest kernel runs undisturbed and the sandbox is as it was."""
    before = residents(sandbox), _descriptors()
    yield
    after = sandbox.load(source=HONEST, entry="run")
    reply = after.call([x])
    after.close()
    assert reply.kind is ReplyKind.RETURNED, reply.detail
    assert torch.equal(reply.outputs[0], x * 2)
    assert (reply.effects, reply.touched_guards) == ((), ())
    assert residents(sandbox) <= before[0]
    assert _descriptors() <= before[1]


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def judge(candidate: Candidate, x: torch.Tensor) -> Reply:
    """One call, after which the process is gone, too."""
    try:
        return candidate.call([x])
    finally:
        candidate.close()


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("syntax_error", ReplyKind.LOAD_FAILED, "SyntaxError"),
        ("missing_entry", ReplyKind.LOAD_FAILED, "it defines: runn"),
        ("entry_is_no_function", ReplyKind.LOAD_FAILED, "'run' is a int, not callable"),
        ("wrong_arity", ReplyKind.RAISED, "missing 1 required positional argument"),
        ("import_raises", ReplyKind.LOAD_FAILED, "ValueError: not today"),
        ("import_hangs", ReplyKind.TIMED_OUT, "the import did not end within 3 s"),
        ("import_exits", ReplyKind.LOAD_FAILED, "SystemExit: 0"),
        ("import_dies", ReplyKind.CRASHED, "exited with status 0"),
        ("returns_none", ReplyKind.BAD_OUTPUT, "None"),
        ("returns_list", ReplyKind.BAD_OUTPUT, "a list"),
        ("returns_numpy", ReplyKind.BAD_OUTPUT, "a numpy.ndarray"),
        ("returns_float", ReplyKind.BAD_OUTPUT, "a float"),
        ("returns_empty_tuple", ReplyKind.BAD_OUTPUT, "an empty tuple"),
        ("returns_subclass", ReplyKind.BAD_OUTPUT, "a tensor subclass, kernel_under_test.Lazy"),
        ("returns_meta", ReplyKind.BAD_OUTPUT, "meta device"),
        ("returns_sparse", ReplyKind.BAD_OUTPUT, "layout torch.sparse_coo"),
        ("returns_quantized", ReplyKind.BAD_OUTPUT, "a quantized tensor"),
        ("returns_too_much", ReplyKind.BAD_OUTPUT, "1099511627776 bytes"),
        ("returns_many", ReplyKind.BAD_OUTPUT, "100000 tensors"),
        ("allocates_terabytes", ReplyKind.MEMORY, "can't allocate memory"),
        ("memory_bomb", ReplyKind.MEMORY, ""),
        ("thread_bomb", ReplyKind.RAISED, "can't start new thread"),
        ("os_exit", ReplyKind.CRASHED, "exited with status 0"),
        ("sys_exit", ReplyKind.CRASHED, "SystemExit: 0"),
        ("segfault", ReplyKind.CRASHED, "SIGSEGV"),
        ("base_exception", ReplyKind.CRASHED, "Sneaky"),
        ("keyboard_interrupt", ReplyKind.CRASHED, "KeyboardInterrupt"),
        ("exception_that_bites", ReplyKind.RAISED, "Bites"),
        ("closes_descriptors", ReplyKind.CRASHED, "closed its channel"),
        ("garbage_on_channel", ReplyKind.CRASHED, "protocol violation"),
        ("forged_reply", ReplyKind.CRASHED, "protocol violation"),
        ("lies_about_outputs", ReplyKind.CRASHED, "protocol violation"),
        ("uses_libdevice", ReplyKind.UNSUPPORTED, "libdevice.tanh"),
        ("needs_cuda", ReplyKind.UNSUPPORTED, "CUDA"),
    ],
)
def test_a_broken_kernel_gets_a_verdict_that_says_why(
    hostile: Hostile, x: torch.Tensor, name: str, kind: ReplyKind, words: str
) -> None:
    reply = judge(hostile(name), x)
    assert reply.kind is kind, reply.detail
    assert words in reply.detail
    assert reply.outputs == ()


@pytest.mark.parametrize("name", ["infinite_loop", "ignores_signals", "fork_bomb"])
def test_what_never_ends_is_ended_by_the_referees_clock(
    hostile: Hostile, x: torch.Tensor, name: str
) -> None:
    candidate = hostile(name)
    reply = candidate.call([x], CallOptions(timeout_s=1.5))
    candidate.close()
    assert reply.kind in (ReplyKind.TIMED_OUT, ReplyKind.CRASHED), reply.detail


@pytest.mark.parametrize("name", ["memory_bomb_shared", "memory_bomb_forked"])
def test_memory_outside_the_private_limit_is_watched_too(
    hostile: Hostile, x: torch.Tensor, name: str
) -> None:
    candidate = hostile(name)
    reply = candidate.call([x], CallOptions(timeout_s=30))
    candidate.close()
    assert reply.kind is ReplyKind.MEMORY, reply


@pytest.mark.parametrize(
    "source",
    [b"def run(x):\n    return x\0\n", b"def run(x):\n    return x  # \xff\xfe\n", b"\xff\xfe\x00"],
)
def test_a_source_that_is_no_text_fails_to_load(load: Load, x: torch.Tensor, source: bytes) -> None:
    reply = judge(load(source), x)
    assert reply.kind is ReplyKind.LOAD_FAILED
    assert "SyntaxError" in reply.detail


def test_a_source_of_ten_megabytes_is_judged_like_any_other(load: Load, x: torch.Tensor) -> None:
    reply = judge(load(HONEST + b"# filler\n" * (10 << 20 >> 3)), x)
    assert reply.returned, reply.detail


def test_a_gigabyte_on_stdout_is_cut_to_head_and_tail(hostile: Hostile, x: torch.Tensor) -> None:
    candidate = hostile("stdout_flood")
    reply = candidate.call([x])
    assert reply.returned, reply.detail
    assert candidate.log.startswith("the beginning")
    assert candidate.log.endswith("the end\n")
    assert len(candidate.log) < 70_000
    assert candidate.log_dropped_bytes > 1 << 29
    candidate.close()


@pytest.mark.parametrize(
    "name",
    [
        "writes_outside_scratch",
        "opens_socket",
        "reads_files",
        "reads_referee_memory",
        "new_user_namespace",
        "spawns_python",
        "reads_past_shared_memory",
        "kills_everyone_by_number",
    ],
)
def test_an_attempt_to_reach_out_of_the_sandbox_finds_nothing(
    hostile: Hostile, x: torch.Tensor, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_CANARY", "secret")
    candidate = hostile(name)
    reply = candidate.call([x])
    assert reply.returned, (reply, candidate.log)
    found = [line for line in candidate.log.splitlines() if line.split(" ")[0].isupper()]
    assert found == []
    candidate.close()


def test_no_library_file_was_changed_from_inside(hostile: Hostile, x: torch.Tensor) -> None:
    library = Path(torch.__file__)
    judge(hostile("writes_outside_scratch"), x)
    assert "# evil" not in library.read_text()
    assert not (library.parent / "evil.py").exists()


def test_a_kernel_cannot_kill_its_parent(hostile: Hostile, x: torch.Tensor) -> None:
    assert judge(hostile("kills_parent"), x).returned


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("thread_left", "python threads"),
        ("background_process", "child processes left running"),
        ("patches_torch", "patched torch.allclose"),
        ("patches_time", "patched time.perf_counter"),
        ("patches_numpy", "patched numpy.allclose"),
        ("patches_code", "patched torch.cuda.synchronize"),
    ],
)
def test_what_a_kernel_leaves_or_patches_is_named(
    hostile: Hostile, x: torch.Tensor, name: str, effect: str
) -> None:
    reply = judge(hostile(name), x)
    assert reply.returned, reply.detail
    assert any(effect in named for named in reply.effects), reply.effects


def test_each_changed_piece_of_global_state_is_named(hostile: Hostile, x: torch.Tensor) -> None:
    reply = judge(hostile("changes_global_state"), x)
    assert set(reply.effects) == {
        "torch random state",
        "numpy random state",
        "default dtype",
        "grad mode",
        "deterministic algorithms",
        "environment variable LEFT_BEHIND",
        "working directory",
    }


@pytest.mark.parametrize("name", ["leaves_things_behind", "poisons_triton_cache"])
def test_the_next_kernel_finds_no_file_shared_memory_or_cache_entry(
    hostile: Hostile, x: torch.Tensor, name: str
) -> None:
    first = hostile(name)
    assert first.call([x]).returned
    second = hostile("looks_for_remains")
    assert second.call([x]).returned
    assert second.log.splitlines() == ["[]", "[]", "[]", "[]", "[]"]
    first.close()
    second.close()


def test_writing_on_after_the_call_does_not_change_what_the_referee_holds(
    hostile: Hostile, x: torch.Tensor
) -> None:
    candidate = hostile("late_writer")
    reply = candidate.call([x])
    kept = reply.outputs[0].clone()
    candidate.call([x])
    assert torch.equal(reply.outputs[0], kept)
    candidate.close()


def test_a_store_past_an_input_is_seen(hostile: Hostile, x: torch.Tensor) -> None:
    reply = judge(hostile("writes_past_the_input"), x)
    assert reply.touched_guards == ("argument 0: after its end",)


def test_a_store_before_an_allocation_is_seen(hostile: Hostile, x: torch.Tensor) -> None:
    reply = judge(hostile("writes_before_the_output"), x)
    assert reply.touched_guards == ("allocation 0: before its start",)


@pytest.mark.parametrize(("poison", "value"), [(Poison.NAN, float("nan")), (Poison.BIG, 2.0**100)])
def test_what_a_kernel_leaves_unwritten_holds_poison(
    hostile: Hostile, x: torch.Tensor, poison: Poison, value: float
) -> None:
    candidate = hostile("leaves_output_unwritten")
    last = candidate.call([x], CallOptions(poison=poison)).outputs[0][-1]
    torch.testing.assert_close(last, torch.tensor(value), equal_nan=True)
    candidate.close()


def test_every_hostile_kernel_is_used_by_a_test() -> None:
    text = Path(__file__).read_text()
    unused = [path.stem for path in HOSTILE.glob("*.py") if f'"{path.stem}"' not in text]
    assert unused == []
