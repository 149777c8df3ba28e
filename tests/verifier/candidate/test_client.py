"""What one call carries there and back, and how long a candidate lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.verifier.candidate.conftest import HONEST, LIMITS, Load
from verifier.candidate import outer, processes
from verifier.candidate.client import Sandbox
from verifier.candidate.dtypes import DTYPES
from verifier.candidate.outer import Plan
from verifier.records import DeviceMode
from verifier.subject import (
    Arg,
    CallOptions,
    InfrastructureError,
    Placement,
    Poison,
    Reply,
    ReplyKind,
    Subject,
)

IDENTITY = b"def run(x):\n    return x\n"
TRITON = b"""
import torch, triton, triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

def run(x):
    y = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y
"""

TUNED = TRITON.replace(
    b"@triton.jit\n",
    b"@triton.autotune([triton.Config({'BLOCK': b}) for b in (16, 32)], key=['n'])\n@triton.jit\n",
).replace(b", BLOCK=16", b"")
GREEDY = b"""
import torch, triton, triton.language as tl

@triton.jit
def power(x, y, steps, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros((N, N), dtype=tl.float32)
    for step in range(steps):
        a = tl.load(x + step * N * N + at)
        b = tl.load(x + (step + 1) * N * N + at)
        total = tl.dot(a, b, total)
    tl.store(y + at, total)

def run(x):
    x, y = torch.ones(9, 64, 64).half(), torch.empty(64, 64)
    power[(1,)](x, y, 8, N=64, num_stages=32)
    return y
"""


def test_a_candidate_is_a_subject(load: Load) -> None:
    subject: Subject = load(HONEST)
    assert subject.name == "kernel"


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_every_dtype_travels_byte_for_byte(load: Load, dtype: torch.dtype) -> None:
    raw = torch.arange(256, dtype=torch.uint8)
    if dtype is torch.bool:
        raw = raw % 2
    reply = load(b"def run(x):\n    return x.clone()\n").call([raw.view(dtype).reshape(4, -1)])
    assert reply.outputs[0].dtype is dtype
    assert torch.equal(reply.outputs[0].reshape(-1).view(torch.uint8), raw)


@pytest.mark.parametrize(
    "argument",
    [
        torch.arange(12.0).reshape(3, 4).T,
        torch.arange(12.0)[1:],
        torch.arange(12.0)[::2],
        torch.arange(3.0).reshape(3, 1).expand(3, 5),
        torch.arange(16.0).reshape(1, 2, 2, 4).to(memory_format=torch.channels_last),
        torch.tensor(3.0),
        torch.empty(0, 5),
    ],
    ids=["transposed", "offset", "step", "expanded", "channels_last", "scalar", "empty"],
)
def test_layouts_are_meant_literally(load: Load, argument: torch.Tensor) -> None:
    source = b"""
def run(x):
    print(tuple(x.shape), x.stride(), x.storage_offset(), x.untyped_storage().nbytes())
    return x
"""
    candidate = load(source)
    reply = candidate.call([argument])
    nbytes = argument.untyped_storage().nbytes()
    seen = f"{tuple(argument.shape)} {argument.stride()} {argument.storage_offset()} {nbytes}\n"
    assert candidate.log == seen
    assert torch.equal(reply.outputs[0], argument)
    assert reply.outputs[0].is_contiguous()


def test_scalars_and_none_arrive_as_they_are(load: Load) -> None:
    candidate = load(b"def run(*args):\n    print(args)\n    return args[0]\n")
    args: list[Arg] = [torch.zeros(1), 3, 2.5, True, "mode", None, float("inf")]
    candidate.call(args)
    assert candidate.log == "(tensor([0.]), 3, 2.5, True, 'mode', None, inf)\n"


def test_arguments_that_share_a_storage_share_it_in_the_candidate(load: Load) -> None:
    base = torch.zeros(8)
    source = b"def run(a, b):\n    a.fill_(1)\n    return b.clone()\n"
    reply = load(source).call([base[:4], base[2:]])
    assert reply.outputs[0].tolist() == [1, 1, 0, 0, 0, 0]
    assert base.tolist() == [0] * 8


def test_the_whole_storage_is_read_back_after_the_call(load: Load) -> None:
    base = torch.zeros(6)
    source = b"def run(x, n):\n    x.as_strided((6,), (1,), 0)[5] = 7\n    return x.clone()\n"
    reply = load(source).call([base[:3], 1])
    after, nothing = reply.inputs_after
    assert after is not None
    assert after.view(torch.float32).tolist() == [0, 0, 0, 0, 0, 7]
    assert nothing is None


def test_overlaps_are_reported(load: Load) -> None:
    source = b"""
kept = None

def run(x, y):
    global kept
    kept = y * 2 if kept is None else kept
    return y.view(-1), kept, kept[1:]
"""
    candidate = load(source)
    first = candidate.call([torch.zeros(4), torch.ones(4)]).infos
    again = candidate.call([torch.zeros(4), torch.ones(4)]).infos
    assert [info.alias_inputs for info in first] == [(1,), (), ()]
    assert [info.alias_outputs for info in first] == [(), (2,), (1,)]
    assert [info.alias_previous for info in first] == [False, False, False]
    assert [info.alias_previous for info in again] == [True, True, True]


def test_previous_outputs_are_read_again(load: Load) -> None:
    source = b"""
buffer = None

def run(x):
    global buffer
    buffer = x.clone() if buffer is None else buffer.copy_(x)
    return buffer
"""
    candidate = load(source)
    candidate.call([torch.zeros(2)])
    reply = candidate.call([torch.ones(2)], CallOptions(recheck_previous=True))
    assert reply.previous_outputs[0].tolist() == [1, 1]


@pytest.mark.parametrize("count", [1, 3])
def test_a_strided_output_travels_even_when_it_is_one_value(load: Load, count: int) -> None:
    source = b"import torch\ndef run(x):\n    return torch.stack((x + 1, x), -1)[..., 0]\n"
    reply = load(source).call([torch.ones(count)])
    assert reply.returned, reply.detail
    assert reply.outputs[0].tolist() == [2.0] * count


def test_placement_decides_the_addresses(load: Load) -> None:
    candidate = load(b"import torch\ndef run(x):\n    return torch.tensor(x.data_ptr())\n")

    def address(placement: Placement) -> int:
        reply = candidate.call([torch.zeros(1000)], CallOptions(placement=placement))
        return int(reply.outputs[0])

    first = address(Placement.SAME)
    assert address(Placement.SAME) == first
    fresh = [address(Placement.FRESH) for _ in range(5)]
    assert len({first, *fresh}) == 6
    assert all(value % 64 == 0 for value in fresh)


def test_fresh_addresses_do_not_run_out(load: Load) -> None:
    source = b"import torch\ndef run(x):\n    return torch.tensor(x.data_ptr()), x[-1]\n"
    candidate = load(source)
    big = torch.ones(5 << 20)  # 20 MiB: an arena holds few of these
    replies = [candidate.call([big], CallOptions(placement=Placement.FRESH)) for _ in range(12)]
    assert len({int(reply.outputs[0]) for reply in replies[-4:]}) == 4
    assert all(reply.outputs[1] == 1 for reply in replies)


@pytest.mark.parametrize(
    ("dtype", "poison", "value"),
    [
        (torch.float16, Poison.BIG, 2.0**14),
        (torch.bfloat16, Poison.BIG, 2.0**100),
        (torch.int32, Poison.BIG, 2**30),
        (torch.int8, Poison.BIG, 127),
        (torch.int64, Poison.NAN, 2**63 - 1),
        (torch.uint8, Poison.INT_MAX, 255),
        (torch.bool, Poison.BIG, True),
    ],
)
def test_poison_is_what_the_subject_interface_says(
    load: Load, dtype: torch.dtype, poison: Poison, value: float
) -> None:
    source = b"import torch\ndef run(x):\n    return torch.empty(3, dtype=x.dtype)\n"
    reply = load(source).call([torch.zeros(1, dtype=dtype)], CallOptions(poison=poison))
    assert reply.outputs[0].tolist() == [value] * 3


def test_an_out_argument_may_be_resized(load: Load) -> None:
    source = b"""
import torch, warnings
warnings.simplefilter("ignore")
def run(x):
    out = torch.empty(1)
    return torch.add(x, x, out=out)
"""
    reply = load(source).call([torch.ones(500)])
    assert reply.outputs[0].tolist() == [2] * 500
    assert reply.touched_guards == ()


def test_trace_tells_compute_from_views_and_names_launches(load: Load) -> None:
    source = TRITON.replace(b"    return y", b"    return torch.relu(y.view(-1)[:4].T)")
    reply = load(source).call([torch.ones(8)], CallOptions(trace=True))
    carried = {"aten::copy_"}  # Triton's interpreter moves the arguments of a launch about
    assert [op for op in reply.ops if op not in carried] == ["aten::relu"]
    assert reply.launches == ("double",)


TABLE = """
import torch, triton, triton.language as tl

@triton.jit
def touch(t):
    tl.store(t, 1.0)

KEPT = []
def run(x, make):
    if make:
        KEPT[:] = [torch.arange(8.0) / 3]
        {made}
        return x + 1
    return torch.exp(KEPT[0])
"""


@pytest.mark.parametrize(
    ("made", "noted"),
    [
        ("pass", False),
        ("KEPT[0] = KEPT[0].view(2, 4).T.contiguous().sqrt()", False),
        ("KEPT[0] = torch.zeros_like(x).add_(2)", False),
        ("KEPT[0].copy_(x)", True),
        ("KEPT[0][2:3].add_(x[0])", True),
        ("torch.add(x, 1, out=KEPT[0])", True),
        ("KEPT[0] = KEPT[0] * x", True),
        ("KEPT[0].set_(x.untyped_storage())", True),
        ("KEPT[0] = torch.from_numpy(x.numpy())", True),
        ("KEPT[0] = torch.rand(8)", True),
        ("touch[(1,)](KEPT[0])", True),
        ("touch[(1,)](KEPT[0][4:])", True),
        ("touch[(1,)](KEPT[0].clone())", False),
    ],
)
def test_torch_computes_where_data_come_in_even_in_an_earlier_call(
    load: Load, made: str, noted: bool
) -> None:
    candidate = load(TABLE.format(made=made).encode())
    assert candidate.call([torch.ones(8), True]).returned
    reply = candidate.call([torch.ones(8), False], CallOptions(trace=True))
    assert reply.returned
    assert ("aten::exp" in reply.ops) is noted


def test_without_arguments_that_hold_data_all_that_torch_computes_counts(load: Load) -> None:
    source = b"import torch\ndef run(n):\n    return torch.arange(n).float().cos()\n"
    assert "aten::cos" in load(source).call([8], CallOptions(trace=True)).ops


def test_bookkeeping_says_whether_it_was_done_on_integers_alone(load: Load) -> None:
    source = b"""
import torch
def run(x):
    torch.cumsum(x.long(), 0)
    torch.cumsum(x.long(), 0, dtype=torch.float32)
    return torch.cumsum(x, 0)
"""
    reply = load(source).call([torch.ones(8)], CallOptions(trace=True))
    sums = [op for op in reply.ops if "cumsum" in op]
    assert sums == ["aten::cumsum on integers", "aten::cumsum", "aten::cumsum"]


def test_ablation_leaves_the_launches_out(load: Load) -> None:
    candidate = load(TRITON)
    x = torch.ones(8)
    assert candidate.call([x]).outputs[0].tolist() == [2] * 8
    assert candidate.call([x], CallOptions(ablate=True)).outputs[0].isnan().all()


def test_an_autotuned_kernel_runs_in_the_interpreter(load: Load) -> None:
    reply = load(TUNED).call([torch.ones(8)])
    assert reply.outputs[0].tolist() == [2] * 8
    assert [choice.partition(",")[0] for choice in reply.tuned] == ["BLOCK: 16"]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_wrap_in_the_interpreter_as_on_a_device(load: Load, dtype: torch.dtype) -> None:
    source = b"""
import torch, triton, triton.language as tl
@triton.jit
def kernel(x, y, one, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(y + at, (value + value) * value - (value - value) - one)
def run(x):
    y = torch.empty_like(x)
    kernel[(1,)](x, y, 1, BLOCK=8)
    return y
"""
    info = torch.iinfo(dtype)
    x = torch.tensor([info.max, info.min, info.max - 1, info.min + 1, 3, -3, 0, 1], dtype=dtype)
    reply = load(source).call([x])
    assert reply.outputs[0].tolist() == ((x + x) * x - 1).tolist()


def test_load_keeps_a_core_busy_only_during_the_call(sandbox: Sandbox, load: Load) -> None:
    candidate = load(b"import time\ndef run(x):\n    time.sleep(0.3)\n    return x\n")
    x = torch.ones(1)
    candidate.call([x], CallOptions(load=True))
    server = sandbox._server
    assert server is not None
    pids = processes.census(server.pid).pids
    busy = [_ticks(pid) for pid in pids]
    candidate.call([x])
    idle = [_ticks(pid) for pid in pids]
    assert max(busy) >= 15
    assert max(b - a for a, b in zip(busy, idle, strict=True)) <= 5


def _ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def test_what_happens_at_import_is_reported_once(load: Load) -> None:
    candidate = load(b"import os\nos.environ['A_NEW_ONE'] = '1'\ndef run(x):\n    return x\n")
    x = torch.ones(1)
    assert candidate.call([x]).effects == ("at import: environment variable A_NEW_ONE",)
    assert candidate.call([x]).effects == ()


def test_a_patch_made_at_import_stays_reported(load: Load) -> None:
    candidate = load(b"import time\ntime.time = lambda: 0.0\ndef run(x):\n    return x\n")
    x = torch.ones(1)
    assert [candidate.call([x]).effects for _ in range(2)] == [("patched time.time",)] * 2


def test_after_a_crash_the_next_call_runs_in_a_fresh_process(load: Load) -> None:
    source = b"import os\ncalls = 0\ndef run(x):\n    global calls; calls += 1\n"
    source += b"    if x[0] < 0: os._exit(3)\n    return x * 0 + calls\n"
    candidate = load(source)
    good, bad = torch.ones(1), -torch.ones(1)
    kinds = [candidate.call([x]).kind for x in (good, bad, good)]
    assert kinds == [ReplyKind.RETURNED, ReplyKind.CRASHED, ReplyKind.RETURNED]
    assert candidate.call([good]).outputs[0].tolist() == [2]
    candidate.restart()
    assert candidate.call([good]).outputs[0].tolist() == [1]


def test_a_kernel_that_always_dies_is_given_up(load: Load) -> None:
    candidate = load(b"import os\ndef run(x):\n    os._exit(3)\n")
    replies = [candidate.call([torch.ones(1)]) for _ in range(LIMITS.crashes + 2)]
    assert {reply.kind for reply in replies} == {ReplyKind.CRASHED}
    assert "not tried again" in replies[-1].detail


def test_fifty_candidates_leak_no_process_descriptor_or_mapping(sandbox: Sandbox) -> None:
    def once() -> None:
        candidate = sandbox.load(source=HONEST, entry="run")
        assert candidate.call([torch.ones(4)]).returned
        candidate.close()

    once()
    before = _held(sandbox)
    for _ in range(50):
        once()
    assert _held(sandbox) <= before


def _held(sandbox: Sandbox) -> tuple[int, int, int]:
    server = sandbox._server
    assert server is not None
    fds = sum(1 for _ in Path("/proc/self/fd").iterdir())
    arenas = Path("/proc/self/maps").read_text().count("memfd:")
    return len(processes.census(server.pid).pids), fds, arenas


def test_two_candidates_live_side_by_side(load: Load) -> None:
    one, two = load(HONEST), load(IDENTITY)
    x = torch.ones(2)
    for _ in range(3):
        assert one.call([x]).outputs[0].tolist() == [2, 2]
        assert two.call([x]).outputs[0].tolist() == [1, 1]


def test_a_dead_forkserver_is_replaced_once_and_then_reported() -> None:
    with Sandbox.open(mode=DeviceMode.CPU_INTERPRET, device="cpu", limits=LIMITS) as opened:
        candidate = opened.load(source=HONEST, entry="run")
        x = torch.ones(1)
        assert candidate.call([x]).returned
        _kill_server(opened)
        assert candidate.call([x]).returned
        _kill_server(opened)
        with pytest.raises(InfrastructureError):
            candidate.call([x])
        candidate.close()


def _kill_server(sandbox: Sandbox) -> None:
    server = sandbox._server
    assert server is not None
    for pid in processes.census(server.pid).pids:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "admit",
    [
        lambda plan: plan.own_server,
        lambda plan: plan.user_namespace and not plan.own_server,
        lambda plan: plan.name == "process",
    ],
    ids=["a bubblewrap per candidate", "user namespaces", "landlock alone"],
)
def test_weaker_mechanisms_contain_a_candidate_too(admit: object) -> None:
    """Each plan below the strongest: no network, no foreign files, nothing left running."""
    source = b"""
import os, socket, time
def run(x):
    for path in ("/etc/passwd", "/etc/hostname", "/home"):
        try:
            os.listdir(path) if os.path.isdir(path) else open(path).read()
            print("READ", path)
        except OSError:
            pass
    try:
        socket.socket()
        print("OPENED")
    except OSError:
        pass
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    return x * 2
"""
    with Sandbox.open(
        mode=DeviceMode.CPU_INTERPRET,
        device="cpu",
        limits=LIMITS,
        only=admit,  # type: ignore[arg-type]
    ) as opened:
        candidate = opened.load(source=source, entry="run")
        before = set(processes.census(os.getpid()).pids)
        reply = candidate.call([torch.ones(1)])
        caged = set(processes.census(os.getpid()).pids) - before
        candidate.close()
    assert reply.returned, reply.detail
    assert reply.effects == ("1 child processes left running",)
    assert candidate.log == ""
    assert len(caged) >= 3  # init, host, the sleeper
    assert [pid for pid in caged if Path(f"/proc/{pid}").exists()] == []


REFEREE = """
import sys, torch
from tests.verifier.candidate.conftest import LIMITS
from verifier.candidate.client import Sandbox
from verifier.records import DeviceMode
from verifier.subject import CallOptions

only = (lambda plan: plan.name == "process") if sys.argv[1] == "landlock" else lambda plan: True
with Sandbox.open(
    mode=DeviceMode.CPU_INTERPRET, device="cpu", limits=LIMITS, only=only
) as sandbox:
    source = b"def run(x):\\n    print(x)\\n    while x[0] > 0: pass\\n    return x\\n"
    candidate = sandbox.load(source=source, entry="run")
    candidate.call([torch.zeros(1)], CallOptions(load=True))
    print("ready", flush=True)
    candidate.call([torch.ones(1)], CallOptions(load=True, timeout_s=600))
"""


@pytest.mark.parametrize("mechanism", ["strongest", "landlock"])
def test_nothing_survives_a_referee_that_is_killed(mechanism: str) -> None:
    """A hanging kernel and the load generator are running when it happens."""
    command = [sys.executable, "-c", REFEREE, mechanism]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as referee:
        assert referee.stdout is not None
        assert referee.stdout.readline() == "ready\n"
        time.sleep(0.3)
        family = [pid for pid in processes.census(referee.pid).pids if pid != referee.pid]
        referee.kill()
    assert len(family) >= 4  # forkserver, load generator, init, host
    deadline = time.monotonic() + 10
    while (left := [pid for pid in family if _runs(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def _runs(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False


def test_closing_a_sandbox_ends_its_load_generator() -> None:
    with Sandbox.open(mode=DeviceMode.CPU_INTERPRET, device="cpu", limits=LIMITS) as opened:
        candidate = opened.load(source=HONEST, entry="run")
        candidate.call([torch.ones(1)], CallOptions(load=True))
        server = opened._server
        assert server is not None
        family = processes.census(server.pid).pids
        candidate.close()
    assert len(family) >= 3
    assert [pid for pid in family if _runs(pid)] == []


def test_without_any_isolation_no_kernel_is_run() -> None:
    with pytest.raises(InfrastructureError, match="no isolation works here"):
        Sandbox.open(mode=DeviceMode.CPU_INTERPRET, device="cpu", only=lambda plan: False)


def test_unsafe_is_the_last_resort_and_says_so() -> None:
    last = list(outer.plans(unsafe=True))[-1]
    assert (last.name, last.filters) == ("none (unsafe)", False)
    assert last not in list(outer.plans(unsafe=False))


def test_a_plan_that_cannot_work_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    real = list(outer.plans(unsafe=False))

    def with_a_broken_one(*, unsafe: bool) -> list[Plan]:
        return [replace(real[0], bubblewrap="/bin/false"), *real]

    monkeypatch.setattr(outer, "plans", with_a_broken_one)
    with Sandbox.open(mode=DeviceMode.CPU_INTERPRET, device="cpu", limits=LIMITS) as opened:
        assert opened.plan == real[0]


@pytest.fixture(scope="module")
def compiling() -> Iterator[Sandbox]:
    with Sandbox.open(
        mode=DeviceMode.CPU_INTERPRET, device="cpu", limits=LIMITS, compiler=True
    ) as opened:
        yield opened


def compiled(sandbox: Sandbox, source: bytes) -> Reply:
    candidate = sandbox.load(source=source, entry="run")
    try:
        return candidate.call([torch.ones(8)], CallOptions(compile=True, trace=True))
    finally:
        candidate.close()


def test_a_launch_is_compiled_and_not_run(compiling: Sandbox) -> None:
    reply = compiled(compiling, TRITON)
    assert reply.returned
    assert reply.launches == ("double",)
    assert reply.refused == ()
    assert reply.outputs[0].isnan().all()


def test_an_autotuned_kernel_is_compiled(compiling: Sandbox) -> None:
    assert compiled(compiling, TUNED).refused == ()


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        (b"* 2", b"* FACTOR", "Cannot access global variable FACTOR"),
        (b"BLOCK=16", b"BLOCK=24", "power of 2"),
        (b"* 2", b"* torch.abs(at)", "abs"),
    ],
)
def test_what_the_compiler_refuses_is_told(
    compiling: Sandbox, right: bytes, wrong: bytes, why: str
) -> None:
    reply = compiled(compiling, b"FACTOR = 2\n" + TRITON.replace(right, wrong))
    assert not reply.returned
    assert len(reply.refused) == 1
    assert reply.refused[0].startswith("double: ")
    assert why in reply.refused[0]


def test_more_shared_memory_than_a_block_has_is_refused(compiling: Sandbox) -> None:
    reply = compiled(compiling, GREEDY)
    assert "bytes of shared memory" in reply.refused[0], reply


def test_a_sandbox_without_a_compiler_says_so(load: Load) -> None:
    reply = load(TRITON).call([torch.ones(8)], CallOptions(compile=True))
    assert reply.kind is ReplyKind.UNSUPPORTED


NAMES = TRITON.replace(b"tl.arange", b"arange").replace(
    b"@triton.jit", b"from triton.language import arange\n\n@triton.jit"
)
SUMS = b"tl.sum(tl.full((BLOCK,), 1 << 30, tl.int32), 0)"
WRAPS = TRITON.replace(b"* 2", b"* 2 + " + SUMS)
WITHOUT = (
    TRITON.replace(b"import torch, triton, triton.language as tl", b"import torch, triton")
    .replace(b"tl.constexpr", b'"constexpr"')
    .replace(
        b"@triton.jit",
        b"from triton.language import arange, load, program_id, store\n\n@triton.jit",
    )
    .replace(b"tl.", b"")
)


def interpreted(sandbox: Sandbox, source: bytes) -> Reply:
    candidate = sandbox.load(source=source, entry="run")
    try:
        return candidate.call([torch.ones(8)])
    finally:
        candidate.close()


@pytest.mark.parametrize("source", [NAMES, WRAPS, WITHOUT], ids=["names", "wraps", "without"])
def test_what_the_interpreter_fails_in_and_the_compiler_takes_is_no_fault(
    compiling: Sandbox, source: bytes
) -> None:
    reply = interpreted(compiling, source)
    assert reply.kind is ReplyKind.UNSUPPORTED, reply
    assert reply.detail.startswith("Triton's interpreter fails where its compiler does not: ")
    assert reply.in_launch == "double"


def _launched(body: bytes) -> bytes:
    return TRITON.replace(b"    at =", body + b"\n    at =")


@pytest.mark.parametrize(
    "source",
    [
        _launched(b"    assert n < 0, 'too long'"),
        _launched(b"    raise ValueError('no')"),
        NAMES.replace(b"* 2", b"* FACTOR").replace(b"@triton.jit", b"FACTOR = 2\n\n@triton.jit"),
        NAMES.replace(b"    return y", b"    return y.nothing").replace(
            b" arange(", b" tl.arange("
        ),
        TRITON.replace(b"(triton.cdiv(x.numel(), 16),)", b"lambda meta: (meta['NONE'],)"),
        NAMES.replace(b"    double[", b"    try:\n        double[").replace(
            b"    return y", b"    except Exception:\n        raise ValueError('no')\n    return y"
        ),
        NAMES.replace(b"def run(x):", b"import os, sys\ndef run(x):\n    LEAVE").replace(
            b"LEAVE", b"os.environ.get('TRITON_INTERPRET') == '1' or os._exit(1)"
        ),
    ],
    ids=["assert", "raise", "refused", "wrapper", "grid", "anew", "compiler_dies"],
)
def test_what_else_is_raised_excuses_nothing(compiling: Sandbox, source: bytes) -> None:
    reply = interpreted(compiling, source)
    assert reply.kind is ReplyKind.RAISED, reply


def test_without_a_compiler_nothing_is_excused(load: Load) -> None:
    reply = load(NAMES).call([torch.ones(8)])
    assert reply.kind is ReplyKind.RAISED
    assert reply.in_launch == "double"


def test_the_compiler_is_asked_once_about_an_error(
    compiling: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate = compiling.load(source=NAMES, entry="run")
    asked: list[str] = []
    ask = candidate._is_taken

    def asking(name: str, args: Sequence[Arg]) -> bool:
        asked.append(name)
        return ask(name, args)

    monkeypatch.setattr(candidate, "_is_taken", asking)
    kinds = [candidate.call([torch.ones(8)]).kind for _ in range(3)]
    candidate.close()
    assert kinds == [ReplyKind.UNSUPPORTED] * 3
    assert asked == ["double"]


def test_the_language_is_as_it_was_after_a_launch(load: Load) -> None:
    source = (
        WITHOUT.replace(b"arange, load", b"core, load").replace(b"arange(", b"core.arange(")
        + b"""
import triton.language
BEFORE = dict(vars(triton.language)), dict(vars(triton.language.core.tensor))
launching = run
def run(x):
    try:
        launching(x)
    except Exception:
        pass
    now = dict(vars(triton.language)), dict(vars(triton.language.core.tensor))
    return torch.tensor([now == BEFORE])
"""
    )
    reply = load(source).call([torch.ones(8)])
    assert reply.outputs[0].tolist() == [True], reply


NOISY = TRITON.replace(b"* 2", b"/ 0").replace(
    b"def run(x):\n", b"import warnings\n\ndef run(x):\n    warnings.warn('its own')\n"
)


def test_the_log_holds_what_the_kernel_says_and_not_what_the_interpreter_does(load: Load) -> None:
    candidate = load(NOISY)
    for _ in range(3):
        assert candidate.call([torch.ones(8)]).outputs[0].isinf().all()
    assert candidate.log.count("its own") == 2, candidate.log  # the message and its source line
    assert "RuntimeWarning" not in candidate.log
