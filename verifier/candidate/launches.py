"""In the host: Triton's launch path, wrapped once before any kernel is imported.

The wrappers write down what was launched, and leave launches out when a call is ablated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from verifier.candidate.engine import Engine
from verifier.candidate.errors import RefusedError
from verifier.candidate.replies import interpreters_perhaps
from verifier.candidate.staging import MAX_NAMES, Stage
from verifier.conventions.calling import Grid


class Launches:
    """Knows the stage of the call in progress, if any."""

    def __init__(self) -> None:
        self.stage: Stage | None = None
        self.interpreted = False

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

    def _adapt(self, engine: Engine) -> None:
        """Triton itself, where it runs nothing on a GPU."""
        if engine is Engine.INTERPRETER:
            from verifier.candidate import interpreter

            interpreter.adapt(self._accessed)
        else:
            from verifier.candidate import compiler

            compiler.adapt()

    def _accessed(self, addresses: Any, mask: Any = True) -> None:
        """The launch in progress reads or writes at these addresses, as far as the mask lets it."""
        if self.stage is not None and self.stage.options.watch:
            self.stage.evidence.witness.accessed(addresses, mask)

    def _wrap(self, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def launch(function: Any, *args: Any, **kwargs: Any) -> Any:
            stage = self.stage
            if stage is None or kwargs.get("warmup"):
                return run(function, *args, **kwargs)
            name = str(getattr(function, "__name__", function))
            if stage.options.trace and len(stage.evidence.launches) < MAX_NAMES:
                stage.evidence.launches.append(name)
            if stage.options.ablate:
                return None
            stage.reached(args, kwargs)
            with stage.paused(noting=self.interpreted), stage.launched(function, args, kwargs):
                try:
                    return run(function, *args, **kwargs)
                except RefusedError as error:
                    stage.evidence.refused.append(f"{name}: {error}")
                    raise
                except Exception as error:
                    if self.interpreted and interpreters_perhaps(error):
                        stage.evidence.risen = error, name
                    raise

        return launch

    def native(self, name: str, grid: Grid, args: Sequence[Any], run: Callable[[], None]) -> None:
        """A launch that is none of Triton's, under the same eyes."""
        stage = self.stage
        if stage is None:
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
            result = run(tuner, *args, **kwargs)
            stage = self.stage
            if stage is not None and len(stage.evidence.tuned) < MAX_NAMES:
                stage.evidence.tuned.append(str(getattr(tuner, "best_config", "")))
            return result

        return tuned


def _untimed(tuner: Any, *args: Any, config: Any, **kwargs: Any) -> float:
    """There is nothing to time without a GPU: the first configuration that is left after pruning
    is as good as any."""
    return 0.0
