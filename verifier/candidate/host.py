"""The candidate host: the untrusted process that imports one kernel and calls it on request.

Nothing that it says is believed. It tells honest kernels' failures apart and gathers evidence; what
matters for judgement (inputs, canaries of inputs, outputs, time) the referee reads for itself.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from verifier.candidate import compiled, effects
from verifier.candidate.arena import map_bytes
from verifier.candidate.backward import differentiated
from verifier.candidate.beneath import functions_remember
from verifier.candidate.channel import Channel, ChannelClosedError, Message
from verifier.candidate.engine import Engine
from verifier.candidate.gpu import wait_asleep
from verifier.candidate.interpreter import interpreter_changed
from verifier.candidate.isolation import Cage
from verifier.candidate.launches import Launches
from verifier.candidate.profiling import profiled
from verifier.candidate.rehearsal import rehearse, rehearse_for_gpu
from verifier.candidate.replies import (
    OutputRegion,
    failure_classify,
    is_deliberate,
    is_our_refusal,
    output_info,
)
from verifier.candidate.staging import Inputs, Options, Stage, ops_remember
from verifier.candidate.timekeeping import OPS, Timekeeping
from verifier.candidate.witness import Launch, Witness, triton_remember
from verifier.conventions import cuda, extensions, function, kernelbench, solution
from verifier.conventions.calling import Convention, Setup
from verifier.conventions.errors import CompileError, OutputError, UnsupportedError
from verifier.conventions.names import LIBRARY_CALLS
from verifier.subject import Poison, ReplyKind
from verifier.vast import Vast

Body = dict[str, Any]
_CONVENTIONS: Final[Mapping[str, Convention]] = {
    "function": function,
    "kernelbench": kernelbench,
    "cuda": cuda,
    "flashinfer": solution,
}
LAUNCHES: Final = Launches()
_PATCHES: list[effects.Patches] = []
_ENVIRONMENT: Final = {
    "HOME": "",
    "TMPDIR": "",
    "XDG_CACHE_HOME": "cache",
    "TRITON_HOME": "",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "CUDA_CACHE_PATH": "cuda",
}
"""Variables that name a place for caches, and the folder of the scratch that they get."""


CHANNEL_LOST: Final = 81
"""Exit status of a host that can no longer speak to the referee."""


def warm(*, engine: Engine, threads: int) -> None:
    """In the forkserver: import and exercise what every host needs, without touching a device."""
    import torch._dynamo
    import triton.experimental.gluon
    import triton.language
    import triton.testing
    import triton.tools.tensor_descriptor  # noqa: F401

    torch.set_num_threads(threads)
    LAUNCHES.install(engine)
    extensions.install(None)
    compiled.prepare(lambda: LAUNCHES.stage is not None)
    if engine is Engine.GPU:
        rehearse_for_gpu()
    else:
        _rehearse()
    effects.rehearse()
    ops_remember()
    functions_remember()
    triton_remember()
    _PATCHES.append(effects.Patches())
    LAUNCHES.looks = (effects.hooks, *(interpreter_changed,) * LAUNCHES.interpreted)


def _rehearse() -> None:
    """One call and one launch, so that lazy imports happen before the fork."""
    options = Options(Poison.NAN, Poison.NAN, False, True, False, False, False, False, below=True)
    stage = Stage(options)
    with profiled(stage), stage:
        torch.empty(8).copy_(torch.arange(8.0)).add_(1)
        rehearse()
    stage.finish()
    np.matmul(np.ones((4, 4)), np.ones((4, 4)))


def run(channel_fd: int, cage: Cage, limits: Mapping[str, float]) -> None:
    """Serve one candidate until its channel closes."""
    scratch = scratch_enter(cage.scratch)
    host = Host(Channel.from_fd(channel_fd), scratch, limits, cuda=cage.cuda)
    with suppress(ChannelClosedError):
        host.serve()
    os._exit(CHANNEL_LOST)


def scratch_enter(scratch: str) -> Path:
    for name, folder in _ENVIRONMENT.items():
        os.environ[name] = str(Path(scratch) / folder)
    tempfile.tempdir = None  # it remembers another place from before
    os.chdir(scratch)
    sys.stdout = open(1, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    return Path(scratch)


class Host:
    """One kernel, its entry point, and what is remembered from call to call."""

    def __init__(
        self, channel: Channel, scratch: Path, limits: Mapping[str, float], *, cuda: bool
    ) -> None:
        self._channel = channel
        self._scratch = scratch
        self._limits = limits
        self._device = torch.device("cuda:0" if cuda else "cpu")
        self._inputs = Inputs(self._device)
        self._arena: torch.Tensor | None = None
        self._arenas: list[torch.Tensor] = []
        self._region: OutputRegion | None = None
        self._entry: Callable[..., Any] | None = None
        self._state: effects.State = {}
        self._at_import: list[str] = []
        self._effects_before: dict[str, None] = {}
        self._previous: tuple[torch.Tensor, ...] = ()
        self._earlier: deque[torch.Tensor] = deque(maxlen=_EARLIER)
        self._timekeeping: Timekeeping | None = None

    def serve(self) -> None:
        while True:
            message = self._channel.receive(fds=True)
            reply = self._answered(self._answerer(message.body["op"]), message)
            _flush()
            self._channel.send({"nonce": message.body["nonce"], **reply})

    def _answerer(self, op: str) -> Callable[[Message], Body]:
        own = {"load": self._load, "call": self._call, "build": self._build}
        return self._time if op in OPS else own[op]

    def _answered(self, answer: Callable[[Message], Body], message: Message) -> Body:
        """The answer. After a fault of the device even our own copies throw: that is a crash."""
        try:
            return answer(message)
        except ChannelClosedError:
            raise
        except Exception as error:  # noqa: BLE001
            return {**failure_body(error, loading=False), "kind": ReplyKind.CRASHED}

    # -- loading -----------------------------------------------------------------------------

    def _load(self, message: Message) -> Body:
        body, (source_fd, output_fd) = message.body, message.fds
        region = map_bytes(output_fd, body["output_arena_bytes"])
        self._region = OutputRegion(region, int(self._limits["output_bytes"]))
        convention = _CONVENTIONS[body["convention"]]
        path = self._scratch / convention.FILE
        path.write_bytes(_read_all(source_fd, body["source_bytes"]))
        os.close(output_fd)
        os.environ.update(body["env"])
        if self._device.type == "cuda":
            device_start()
        if body["builds"]:
            extensions.install(lambda request: self._request_build(request, body["nonce"]))
        if body["details"].get(LIBRARY_CALLS):
            compiled.permit()
        self._state = effects.state_take()
        try:
            setup = Setup(body["entry"], body["details"], self._device, LAUNCHES.native)
            self._entry = convention.load(path, setup)
            if "gradients" in setup.details:
                self._entry = differentiated(self._entry, setup.details["gradients"])
        except BaseException as error:  # noqa: BLE001 - whatever it throws is a reply
            return failure_body(error, loading=True)
        self._at_import = self._state_advance()
        return {"kind": ReplyKind.RETURNED}

    def _request_build(self, request: Body, nonce: str) -> bytes:
        """Have the referee see to an extension, in the middle of the kernel's import."""
        self._channel.send({"nonce": nonce, "kind": "build", "request": request})
        message = self._channel.receive(fds=True)
        if message.body["problem"]:
            raise (UnsupportedError if message.body["absent"] else CompileError)(
                message.body["problem"]
            )
        return _read_all(message.fds[0], message.body["nbytes"])

    def _build(self, message: Message) -> Body:
        """In a process that builds and does nothing else: one extension, into the output arena."""
        body, (output_fd,) = message.body, message.fds
        region = map_bytes(output_fd, body["output_arena_bytes"])
        os.close(output_fd)
        os.environ.update(body["env"])
        try:
            library = extensions.build_here(body["request"], self._scratch / "build")
        except (CompileError, UnsupportedError) as error:
            return {"problem": str(error), "absent": isinstance(error, UnsupportedError)}
        if len(library) > region.numel():
            return {"problem": f"the library has {len(library)} bytes", "absent": False}
        region[: len(library)].copy_(torch.frombuffer(bytearray(library), dtype=torch.uint8))
        return {"problem": "", "absent": False, "nbytes": len(library)}

    # -- calling -----------------------------------------------------------------------------

    def _call(self, message: Message) -> Body:
        body = message.body
        if message.fds:
            self._arena_take(message.fds[0], body["arena_bytes"])
        assert self._arena is not None  # noqa: S101 - protocol order
        options = Options.from_json(body["options"])
        arguments = self._inputs.stage(self._arena, body, fresh=options.fresh)
        stage = Stage(options, self._inputs.ranges, interpreted=LAUNCHES.interpreted)
        clock = _DeviceClock(self._device, options)
        run = self._run_bare if options.bare else self._run_kernel
        outputs, failure = run(arguments, stage, clock)
        late = effects.written_late(self._state, outputs)
        stage.returned(outputs)
        changes = ["outputs, by late threads"] * late + self._state_advance()
        with clock.stream():
            reply = failure or self._describe(outputs, body, options)
        self._inputs.copy_back(self._arena, body)
        evidence = stage.finish()
        if options.vast and self._device.type == "cuda":
            del outputs, arguments
            torch.cuda.empty_cache()  # neighbours need it
        if options.watch and reply["kind"] is ReplyKind.RETURNED:
            reply |= self._watched(evidence.witness)
        reply |= {"guards": evidence.touched, "far": evidence.far, "ops": evidence.ops}
        reply |= {"launches": evidence.launches, "tuned": evidence.tuned}
        reply |= {"refused": evidence.refused, "configs": evidence.configs}
        reply |= {"kernels": evidence.ran, "hidden": evidence.hidden, "met": list(evidence.met)}
        reply |= {"programs": evidence.programs}
        reply |= {"effects_before": list(self._effects_before), "latency_s": clock.seconds()}
        reply |= {"effects": self._effects([*changes, *evidence.around])}
        return reply

    def _time(self, message: Message) -> Body:
        """A request of the timing: no guards, no poison, no stage around the kernel."""
        body = message.body
        if message.fds:
            self._arena_take(message.fds[0], body["arena_bytes"])
        assert self._arena is not None and self._region is not None  # noqa: S101, PT018 - order
        if body["op"] == "arm":
            arguments = self._inputs.stage(self._arena, body, fresh=True)
            self._timekeeping = Timekeeping(self._device, self._called)
            return self._timekeeping.arm(arguments, body)
        assert self._timekeeping is not None  # noqa: S101 - armed first
        return self._timekeeping.answer(body, self._region)

    def _called(self, arguments: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        assert self._entry is not None  # noqa: S101 - protocol order
        return function.outputs_take(self._entry(*arguments))

    def _arena_take(self, fd: int, nbytes: int) -> None:
        """Map a new arena. Earlier ones stay mapped for a while, so that addresses are new ones."""
        self._arenas = [*self._arenas[-_KEPT_ARENAS:], map_bytes(fd, nbytes)]
        self._arena = self._arenas[-1]
        os.close(fd)

    def _run_kernel(
        self, arguments: Sequence[Any], stage: Stage, clock: _DeviceClock
    ) -> tuple[tuple[torch.Tensor, ...], Body | None]:
        assert self._entry is not None  # noqa: S101 - protocol order
        vast = stage.options.vast
        LAUNCHES.stage = stage
        try:
            arguments = vast.expand(arguments) if vast else arguments
            with (
                _load_on(self._device, on=stage.options.load),
                profiled(stage),
                clock,
                stage,
            ):
                returned = self._entry(*arguments)
            clock.synchronize()
            outputs = function.outputs_take(returned)
            return _rows_taken(vast, outputs) if vast else outputs, None
        except BaseException as error:  # noqa: BLE001 - whatever it throws is a reply
            failure = failure_body(error, loading=False)
            risen, name = stage.evidence.risen or (None, "")
            if risen is error and failure["kind"] is ReplyKind.RAISED:
                failure["in_launch"] = name
            return (), failure
        finally:
            LAUNCHES.stage = None

    def _run_bare(
        self, arguments: Sequence[Any], stage: Stage, clock: _DeviceClock
    ) -> tuple[tuple[torch.Tensor, ...], Body | None]:
        """As the clock calls it, but for torch's profiler, which is looking on from below."""
        LAUNCHES.unstaged(stage.options.config)
        try:
            with profiled(stage):
                outputs = self._called(arguments)
            clock.synchronize()
            stage.evidence.launches = list(LAUNCHES.names)
            return outputs, None
        except BaseException as error:  # noqa: BLE001 - whatever it throws is a reply
            return (), failure_body(error, loading=False)
        finally:
            LAUNCHES.unstaged(None)

    def _describe(self, outputs: tuple[torch.Tensor, ...], body: Body, options: Options) -> Body:
        """Copy the outputs out and say what they are."""
        region, previous = self._region, self._previous
        assert region is not None  # noqa: S101 - protocol order
        region.reset()
        ranges = [self._inputs.ranges[a["slot"]] if "slot" in a else None for a in body["args"]]
        try:
            claims = region.put(outputs)
            for i, claim in enumerate(claims):
                claim |= output_info(i, outputs, ranges, [*previous, *self._earlier])
            again = region.put(previous) if options.recheck_previous else []
        except Exception as error:  # noqa: BLE001 - a lazy or broken tensor can throw anything
            return failure_body(error, loading=False)
        self._hold(outputs)
        return {"kind": ReplyKind.RETURNED, "outputs": claims, "previous": again}

    def _hold(self, outputs: tuple[torch.Tensor, ...]) -> None:
        """As callers do with results: those of the call before, and of some before that."""
        self._earlier.extend(self._previous)
        self._previous = outputs
        while self._earlier and sum(map(_nbytes, self._earlier)) > _EARLIER_BYTES:
            self._earlier.popleft()

    def _watched(self, witness: Witness) -> Body:
        """What the launches saw, copied out behind the outputs."""
        region = self._region
        assert region is not None  # noqa: S101 - protocol order
        claims: dict[int, Body] = {}

        def put(tensors: Sequence[torch.Tensor]) -> list[Body]:
            """What lies there in several launches is copied out once."""
            new = [tensor for tensor in tensors if id(tensor) not in claims]
            claims.update(zip(map(id, new), region.put(new), strict=True))
            return [claims[id(tensor)] for tensor in tensors]

        def told(launch: Launch) -> Body:
            return {
                "before": put(launch.before),
                "after": put(launch.after),
                "places": launch.places,
                "numbers": launch.numbers,
                "strays": launch.strays,
                "carries": launch.carries,
            }

        final = told(witness.final) if witness.final else None
        launches = [told(launch) for launch in witness.launches]
        return {"watched": launches, "final": final, "watch_full": witness.full}

    def _state_advance(self) -> list[str]:
        """What changed since the last look, the time between calls included."""
        before, self._state = self._state, effects.state_take()
        return effects.state_changes(before, self._state)

    def _effects(self, changes: list[str]) -> list[str]:
        at_import, self._at_import = self._at_import, []
        found = [*(f"at import: {name}" for name in at_import), *changes, *_PATCHES[0].changed()]
        found = found[:_MAX_EFFECTS]
        if len(self._effects_before) < _MAX_EFFECTS:
            self._effects_before |= dict.fromkeys(found)
        return found


_KEPT_ARENAS: Final = 3
_EARLIER: Final = 16
_EARLIER_BYTES: Final = 64 << 20
_MAX_EFFECTS: Final = 200


def _nbytes(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes()


def _rows_taken(vast: Vast, outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Raises OutputError where the outputs are not as large as the inputs were made."""
    try:
        return vast.pick(outputs)
    except ValueError as error:
        raise OutputError(str(error)) from None


def failure_body(error: BaseException, *, loading: bool) -> Body:
    kind, detail = failure_classify(error, loading=loading)
    answer = {"kind": kind, "detail": detail, "chosen": not is_our_refusal(error)}
    return answer | {"deliberate": is_deliberate(error)}


def _read_all(fd: int, nbytes: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read(nbytes)


def _flush() -> None:
    """Whatever the kernel printed is in the log before its reply is."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def device_start() -> None:
    """Create the CUDA context before the kernel is there, so that its cost is not the kernel's."""
    wait_asleep(0)
    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.empty(1, device="cuda:0").fill_(1)
    torch.cuda.synchronize()


class _DeviceClock:
    """Device events around a call, and the stream that it runs on. On the CPU it does nothing."""

    def __init__(self, device: torch.device, options: Options) -> None:
        self._cuda = device.type == "cuda"
        side = self._cuda and options.side_stream
        self._side: Any = torch.cuda.Stream() if side else None  # type: ignore[no-untyped-call]
        self._events: list[Any] = []
        self._ended = False

    def stream(self) -> Any:
        """The context of the stream that the call runs on, and that its outputs are read on."""
        return torch.cuda.stream(self._side) if self._side is not None else nullcontext()

    def __enter__(self) -> None:
        if not self._cuda:
            return
        torch.cuda.synchronize()
        if self._side is not None:
            # Whatever the kernel wrongly puts on the default stream comes too late behind this.
            torch.cuda._sleep(_DELAY_CYCLES)  # type: ignore[no-untyped-call]
        self._scope = self.stream()
        self._scope.__enter__()
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
        self._events[0].record()

    def __exit__(self, kind: object, *error: object) -> None:
        if self._cuda:
            self._ended = kind is None
            self._events[1].record()
            self._scope.__exit__(None, None, None)

    def synchronize(self) -> None:
        """Wait: for the stream's own event on a side stream, else for the whole device."""
        if self._side is not None:
            self._events[1].synchronize()
        elif self._cuda:
            torch.cuda.synchronize()

    def seconds(self) -> float | None:
        """Between the events; None on the CPU and for a call that did not end."""
        if not self._ended:
            return None
        return float(self._events[0].elapsed_time(self._events[1])) / 1000


_DELAY_CYCLES: Final = 20_000_000


@contextmanager
def _load_on(device: torch.device, *, on: bool) -> Iterator[None]:
    """Keep the device busy from a side stream while the call begins (on the CPU the forkserver
    does it): for some milliseconds, because neighbours want the device, too."""
    if on and device.type == "cuda":
        with torch.cuda.stream(torch.cuda.Stream(device)):  # type: ignore[no-untyped-call]
            field = torch.ones(_LOAD_ELEMENTS, device=device)
            for _ in range(_LOAD_PASSES):
                field.mul_(1.0)
    yield


_LOAD_ELEMENTS: Final = 1 << 26
_LOAD_PASSES: Final = 40
"""512 MB to read and write each. A library's matrix product would take longer to start."""
