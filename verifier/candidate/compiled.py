"""In the host: torch.compile, for kernels that use it.

Where the task permits library calls, compiled code runs under the stage as it does without
(``Stage.ignore_compile_internals``). What it allocates it takes past the dispatcher, from functions
of torch's that are led back to it here, so that this memory is poisoned and guarded like any other.
What torch leaves behind when it compiles for the first time is done before a kernel is there, or is
known by its name (``effects``).

Elsewhere torch.compile is switched off, in each call and on the clock alike: what it is given runs
as it is written. So torch's operations are seen one by one, and a wrapper's own launches as well,
which compiled code would make past everything that looks at launches.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Final

import torch

_ALLOCATORS: Final = ("_empty_strided_cpu", "_empty_strided_cuda")
"""In ``torch._C._dynamo.guards``, where the code that Inductor writes takes its memory from."""

MOST_SIZES: Final = 4096
"""One kernel meets many sizes here; at torch's own limit of 8 programs a function it goes on
eagerly, without a word."""


def prepare(is_staged: Callable[[], bool]) -> None:
    """Once, before any kernel is imported. ``is_staged`` says whether a stage is set."""
    import torch._dynamo
    import torch._inductor.config
    import torch.hub
    from torch._dynamo.mutation_guard import install_generation_tagging_init

    install_generation_tagging_init()  # it patches torch.nn.Module, and would in a kernel's call
    torch._dynamo.config.recompile_limit = MOST_SIZES
    torch._dynamo.config.accumulated_recompile_limit = 16 * MOST_SIZES
    torch._dynamo.config.disable = True
    # Other processes and threads would outlive the call that starts them: of compilers, and one
    # that looks after the progress bars that torch makes while it traces, shown or not.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    torch._inductor.config.compile_threads = 1
    bars: Any = vars(torch.hub).get("tqdm")
    if bars is not None:
        bars.monitor_interval = 0
    for name in _ALLOCATORS:
        _lead_back(name, is_staged)


def permit() -> None:
    """From now on torch.compile compiles: for a task that permits library calls."""
    torch._dynamo.config.disable = False


def _lead_back(name: str, is_staged: Callable[[], bool]) -> None:
    owner: Any = torch._C._dynamo.guards
    device = name.rpartition("_")[2]
    below = getattr(owner, name)

    @functools.wraps(below)
    def allocate(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
        if not is_staged():
            return below(size, stride, dtype)  # type: ignore[no-any-return]
        return torch.empty_strided(size, stride, dtype=dtype, device=device)

    setattr(owner, name, allocate)
