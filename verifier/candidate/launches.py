"""In the host: Triton's launch path, wrapped once before any kernel is imported.

The wrappers write down what was launched, leave launches out when a call is ablated, and say
plainly what the interpreter cannot run, instead of the odd errors that Triton ends in there.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from verifier.candidate.staging import MAX_NAMES, Stage


class UnsupportedError(NotImplementedError):
    """The kernel needs something that this device does not have."""


class Launches:
    """Knows the stage of the call in progress, if any."""

    def __init__(self) -> None:
        self.stage: Stage | None = None
        self._interpreted = False

    def install(self, *, interpreted: bool) -> None:
        """Wrap the launch path for good."""
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.interpreter import InterpretedFunction
        from triton.runtime.jit import JITFunction

        self._interpreted = interpreted
        for owner in (InterpretedFunction, JITFunction):
            owner.run = self._wrap(owner.run)
        if interpreted:
            Autotuner._bench = _untimed
            _libdevice_refuse()

    def _wrap(self, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def launch(function: Any, *args: Any, **kwargs: Any) -> Any:
            stage = self.stage
            if stage is None or kwargs.get("warmup"):
                return run(function, *args, **kwargs)
            if stage.options.trace and len(stage.evidence.launches) < MAX_NAMES:
                stage.evidence.launches.append(str(getattr(function, "__name__", function)))
            if stage.options.ablate:
                return None
            with stage.paused(noting=self._interpreted), stage.launched(function, args, kwargs):
                return run(function, *args, **kwargs)

        return launch


def _untimed(tuner: Any, *args: Any, config: Any, **kwargs: Any) -> float:
    """There is nothing to time in the interpreter: the first configuration that is left after
    pruning is as good as any."""
    return 0.0


def _libdevice_refuse() -> None:
    """libdevice functions are empty shells in the interpreter: make each say so when it is used."""
    import triton.language.extra.cuda.libdevice as cuda
    import triton.language.extra.hip.libdevice as hip
    import triton.language.extra.libdevice as generic

    for module in (generic, cuda, hip):
        for name, value in list(vars(module).items()):
            if callable(value) and not name.startswith("_") and _is_from(value, module):
                setattr(module, name, _refusal(name, value))


def _is_from(value: Any, module: types.ModuleType) -> bool:
    return getattr(inspect.unwrap(value), "__module__", "") == module.__name__


def _refusal(name: str, shell: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(shell)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(f"libdevice.{name} does not exist in Triton's interpreter")

    return refuse
