"""What a user may have on disk, read into a corpus. One module a format, registered by name."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final, Protocol

from verifier.audit.corpus import Corpus, CorpusError


class Adapter(Protocol):
    """A module of this package."""

    ABOUT: str
    """One line for people: what the folder or file must hold."""

    def read(self, root: Path) -> Corpus:
        """The corpus below ``root``. Runs the benchmark's own references at most, and no kernel.

        Raises CorpusError saying what it looked for and did not find.
        """


ADAPTERS: Final = {
    "cuda-l1": "cuda_l1",
    "cuda-l2": "cuda_l2",
    "kernelbench": "kernelbench",
    "kernelbench-com": "kernelbench_com",
    "kernelbench-x": "kernelbench_x",
    "plain": "plain",
    "tritonbench": "tritonbench",
}
"""Names on the command line, and the modules behind them."""


def find(name: str) -> Adapter:
    """The adapter of that name. Raises CorpusError naming those that there are."""
    if name not in ADAPTERS:
        raise CorpusError(f"no adapter {name!r}; there are {', '.join(ADAPTERS)}")
    module: Adapter = importlib.import_module(f"{__name__}.{ADAPTERS[name]}")
    return module
