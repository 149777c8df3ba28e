"""In the host: Triton's launch path, wrapped once before any kernel is imported.

The wrappers write down what was launched, and leave launches out when a call is ablated.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from verifier.candidate.engine import Engine
from verifier.candidate.errors import RefusedError, SurroundingsError
from verifier.candidate.programs import program, settings
from verifier.candidate.replies import interpreters_perhaps, is_surroundings
from verifier.candidate.staging import MAX_NAMES, Stage
from verifier.conventions.calling import Grid


class Launches:
    """Knows the stage of the call in progress, if any."""

    def __init__(self) -> None:
        self.stage: Stage | None = None
        self.interpreted = False
        self.names: deque[str] = deque(maxlen=MAX_NAMES)
        """Of what was launched last without a stage."""
        self._config: int | None = None
        self.looks: Sequence[Callable[[], Iterable[str]]] = ()
        """Each tells what is not as it should be around a launch."""

    def _look_around(self, stage: Stage) -> None:
        if len(stage.evidence.around) < MAX_NAMES:
            stage.evidence.around |= dict.fromkeys(name for look in self.looks for name in look())

    def install(self, engine: Engine) -> None:
        """Wrap the launch path for good."""
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.interpreter import InterpretedFunction
        from triton.runtime.jit import JITFunction

        self.interpreted = engine is Engine.INTERPRETER
        if engine is not Engine.GPU:
            self._adapt(engine)
            Autotuner._bench = _untimed
        for owner in (InterpretedFunction, JITFunction):
            owner.run = self._wrap(owner.run)
        Autotuner.run = self._wrap_tuner(Autotuner.run)

    def unstaged(self, config: int | None) -> None:
        """What comes is called without a stage; autotuners take this configuration."""
        self.names.clear()
        self._config = config

    def _adapt(self, engine: Engine) -> None:
        """Triton itself, where it runs nothing on a GPU."""
        if engine is Engine.INTERPRETER:
            from verifier.candidate import interpreter

            interpreter.adapt(self._accessed)
        else:
            from verifier.candidate import compiler

            compiler.adapt()

    def _accessed(self, addresses: Any, mask: Any, verb: str, nbytes: int) -> None:
        """The launch in progress reads or writes at these addresses, as far as the mask lets it."""
        stage = self.stage
        if stage is None:
            return
        stage.accessed(addresses, mask, verb, nbytes)
        if stage.options.watch:
            stage.evidence.witness.accessed(addresses, mask)

    def _wrap(self, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def launch(function: Any, *args: Any, **kwargs: Any) -> Any:
            stage = self.stage
            name = str(getattr(function, "__name__", function))
            if stage is None or kwargs.get("warmup"):
                self.names.append(name)
                return run(function, *args, **kwargs)
            if stage.options.trace and len(stage.evidence.launches) < MAX_NAMES:
                stage.evidence.launches.append(name)
            if stage.options.ablate:
                _tell_program(stage, function, args, kwargs)
                return None
            stage.reached(args, kwargs)
            with (
                stage.paused(noting=self.interpreted),
                stage.bounded(name, args, kwargs, on=self.interpreted),
                stage.launched(function, args, kwargs),
            ):
                try:
                    self._look_around(stage)
                    done = run(function, *args, **kwargs)
                    self._look_around(stage)
                    _tell_program(stage, function, args, kwargs)
                    return done
                except RefusedError as error:
                    stage.evidence.refused.append(f"{name}: {error}")
                    raise
                except Exception as error:
                    if not self.interpreted and is_surroundings(error):
                        raise SurroundingsError(f"{type(error).__name__}: {error}") from error
                    if self.interpreted and interpreters_perhaps(error):
                        stage.evidence.risen = error, name
                    raise

        return launch

    def native(self, name: str, grid: Grid, args: Sequence[Any], run: Callable[[], None]) -> None:
        """A launch that is none of Triton's, under the same eyes."""
        stage = self.stage
        if stage is None:
            self.names.append(name)
            return run()
        if stage.options.trace and len(stage.evidence.launches) < MAX_NAMES:
            stage.evidence.launches.append(name)
        if stage.options.ablate:
            return None
        last: dict[str, Any] = {"grid": grid}
        stage.reached(tuple(args), {})
        with stage.paused(noting=False), stage.launched(run, (name, *args), last):
            last["grid"]({})
            return run()

    def _wrap_tuner(self, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def tuned(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            stage = self.stage
            if stage is None:
                if self._config is None:
                    return run(tuner, *args, **kwargs)
                left = _in_turn(tuner, args, kwargs, self._config)
                return _first_possible(run, tuner, left, args, kwargs)
            if stage.options.config is None:
                result = run(tuner, *args, **kwargs)
            else:
                left = _in_turn(tuner, args, kwargs, stage.options.config)
                stage.evidence.configs = max(stage.evidence.configs, len(left))
                result = _first_possible(run, tuner, left, args, kwargs)
            if len(stage.evidence.tuned) < MAX_NAMES:
                stage.evidence.tuned.append(str(getattr(tuner, "best_config", "")))
            return result

        return tuned


def _tell_program(
    stage: Stage, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """A launch that was not refused, nor failed, has run this, or would have."""
    if stage.options.programs and len(stage.evidence.programs) < MAX_NAMES:
        told = function.__name__, program(function), settings(function, args, kwargs)
        stage.evidence.programs.append(told)


def _untimed(tuner: Any, *args: Any, config: Any, **kwargs: Any) -> float:
    """There is nothing to time without a GPU: the first configuration that is left after pruning
    is as good as any."""
    return 0.0


def _in_turn(tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any], first: int) -> list[Any]:
    """The configurations that the tuner would time for this launch, from the wanted one on."""
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))  # as its own run begins
    left = list(tuner.prune_configs(kwargs))
    first %= len(left)
    return left[first:] + left[:first]


def _first_possible(
    run: Callable[..., Any],
    tuner: Any,
    configs: Iterable[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Launch with the first of these configurations that can be launched here."""
    every, problem = tuner.configs, None
    for config in configs:
        tuner.configs = [config]
        try:
            return run(tuner, *args, **kwargs)
        except Exception as error:
            if not _is_passed_over(error):
                raise
            problem = error
        finally:
            tuner.configs = every
    assert problem is not None  # noqa: S101 - a tuner has a configuration
    raise problem


def _is_passed_over(error: Exception) -> bool:
    """What needs too much of the device, or asserts that it does not fit, no tuner chooses."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import InterpreterError, OutOfResources, PTXASError

    unfit = (OutOfResources, PTXASError, CompileTimeAssertionFailure, AssertionError)
    wrapped = isinstance(error, (RefusedError, InterpreterError))
    return isinstance(error.__cause__ if wrapped else error, unfit)
