"""What is put on the clock: the kernel in its sandbox, and, in this process, what it is held
against: eager, torch.compile's output, and nothing at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, Protocol

import torch

from verifier.candidate.stopwatch import Call, GraphError, Setup, Stopwatch, Tape
from verifier.candidate.timed import NoGraphError, Run, TimingError
from verifier.referee.eager import Function, as_tuple, copy_with_layout, exact_matmul
from verifier.subject import Arg

KERNEL: Final = "kernel"
EAGER: Final = "eager"
COMPILE: Final = "compile"
NOTHING: Final = "nothing"


class Timed(Protocol):
    """Anything that can be timed. All methods raise TimingError, NoGraphError or CaughtError."""

    @property
    def name(self) -> str: ...

    def arm(self, args: Sequence[Arg], setup: Setup) -> None:
        """Take the arguments (on the CPU, contiguous) that all calls begin from."""

    def play(self, tape: Tape) -> Run:
        """One run of the loop, by the referee's clock."""

    def reveal(self, call: int) -> tuple[torch.Tensor, ...]:
        """The outputs of one call of the last run: what it returned, then what it changed in
        place, on the CPU."""


class Local:
    """A function that we trust, around which this process runs the loop itself."""

    def __init__(self, name: str, call: Call, device: torch.device, *, allow_tf32: bool) -> None:
        self.name = name
        self._device = device
        self._allow_tf32 = allow_tf32
        self._stopwatch = Stopwatch(device, call)

    def arm(self, args: Sequence[Arg], setup: Setup) -> None:
        placed = [
            copy_with_layout(arg, self._device) if isinstance(arg, torch.Tensor) else arg
            for arg in args
        ]
        with self._as_eager():
            self._tried(lambda: self._stopwatch.arm(placed, setup))

    def play(self, tape: Tape) -> Run:
        started = time.perf_counter()
        with self._as_eager():
            played = self._tried(lambda: self._stopwatch.play(tape))
            commit = played.commit  # the host makes one too, on the clock
        wall_s = time.perf_counter() - started
        assert commit  # noqa: S101
        return Run(tape.calls, wall_s, tuple(played.seconds), tuple(map(tuple, played.digests)))

    def reveal(self, call: int) -> tuple[torch.Tensor, ...]:
        return tuple(out.cpu() for out in self._stopwatch.reveal(call))

    def _as_eager(self) -> AbstractContextManager[Any]:
        stack = ExitStack()
        stack.enter_context(torch.no_grad())
        stack.enter_context(exact_matmul(self._allow_tf32))
        return stack

    def _tried(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except GraphError as error:
            raise NoGraphError(str(error)) from error
        except Exception as error:
            first = (str(error).strip().splitlines() or [""])[0]
            raise TimingError(f"{type(error).__name__}: {first[:300]}") from error


def eager(reference: Function, device: torch.device, *, allow_tf32: bool) -> Local:
    """The reference as it is."""
    return Local(EAGER, lambda args: as_tuple(reference(*args)), device, allow_tf32=allow_tf32)


_MOST_COMPILATIONS: Final = 256


class Compiled:
    """What torch.compile makes of a function, and how often code that it made has run: wherever it
    will not compile (a mode is set, a limit reached) it goes on eagerly and says nothing."""

    def __init__(self, reference: Function) -> None:
        self.runs = 0
        # Each workload is a compilation of its own; beyond this many it would be eager.
        torch._dynamo.config.recompile_limit = _MOST_COMPILATIONS
        self._function = torch.compile(reference, backend=self._inductor, dynamic=False)

    def __call__(self, args: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        return as_tuple(self._function(*args))

    def _inductor(self, graph: Any, inputs: Any) -> Call:
        from torch._inductor import compile_fx

        made: Any = compile_fx.compile_fx(graph, inputs)

        def counted(*args: Any) -> Any:
            self.runs += 1
            return made(*args)

        return counted


class LocalCompiled(Local):
    """The baseline of torch.compile, which is none where nothing is compiled."""

    def __init__(self, function: Compiled, device: torch.device, *, allow_tf32: bool) -> None:
        super().__init__(COMPILE, function, device, allow_tf32=allow_tf32)
        self._function = function

    def arm(self, args: Sequence[Arg], setup: Setup) -> None:
        before = self._function.runs
        super().arm(args, setup)
        if self._function.runs == before:
            raise TimingError("torch.compile compiled nothing: it would be eager once more")


_COMPILED: Final[dict[tuple[str, str], Compiled]] = {}
"""By the reference's module, whose name holds the task's digest: one compilation serves all kernels
of a task that this process times."""


def compiled(reference: Function, device: torch.device, *, allow_tf32: bool) -> Local:
    """What torch.compile makes of the reference; it compiles when it is armed."""
    key = (reference.__module__, reference.__qualname__)
    if key not in _COMPILED:
        _COMPILED[key] = Compiled(reference)
    return LocalCompiled(_COMPILED[key], device, allow_tf32=allow_tf32)


def nothing(outputs: Sequence[torch.Tensor], device: torch.device) -> Local:
    """The loop around no work: the outputs were there before. What is left is the loop's own."""
    ready = tuple(out.to(device) for out in outputs)
    return Local(NOTHING, lambda args: ready, device, allow_tf32=False)
