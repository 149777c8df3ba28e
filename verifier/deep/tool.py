"""compute-sanitizer on this machine: where it is, which version, and how it is asked."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final

from verifier.candidate.deep import Order

NAME: Final = "compute-sanitizer"
_VERSION: Final = re.compile(r"^Version (\S+)", re.MULTILINE)
_ASK_S: Final = 20.0


class Check(StrEnum):
    """The tools within the tool, in the order in which they are asked."""

    MEMCHECK = "memcheck"
    INITCHECK = "initcheck"
    RACECHECK = "racecheck"
    SYNCCHECK = "synccheck"


# Errors of API calls are answered to whoever made them; here only what kernels do counts. A kernel
# that did wrong is ended and others go on, so that one call of several does not hide the rest.
_COMMON: Final = (
    "--xml --save {0} --log-file {1} --target-processes application-only --launch-timeout 120 "
    "--require-cuda-init no --check-exit-code no --print-limit 1000"
)
_OWN: Final = {
    Check.MEMCHECK: "--destroy-on-device-error kernel --report-api-errors no --padding 1024",
    Check.INITCHECK: "",
    Check.RACECHECK: "",
    Check.SYNCCHECK: "--destroy-on-device-error kernel",
}


@dataclass(frozen=True, slots=True)
class Sanitizer:
    """The tool as it lies here."""

    program: Path
    version: str

    def order(self, check: Check) -> Order:
        """How a sandbox starts it."""
        options = f"--tool {check} {_COMMON} {_OWN[check]}".split()
        return Order(self.program.parent, self.program.name, tuple(options))


@lru_cache(maxsize=1)
def find_sanitizer() -> Sanitizer | None:
    """The first one that runs: on PATH, of a toolkit, of a wheel."""
    for place in _places():
        if os.access(place, os.X_OK) and (version := _version(place)):
            return Sanitizer(place, version)
    return None


def _places() -> Iterator[Path]:
    """Real programs, with their libraries beside them; a toolkit's bin/ holds a script only."""
    roots = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    found = shutil.which(NAME)
    if found:
        real = Path(found).resolve()
        yield real.parents[1] / NAME / NAME
        yield real
    for root in (*filter(None, roots), "/usr/local/cuda"):
        yield (Path(root) / NAME / NAME).resolve()
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        yield from sorted(Path(folder).glob(f"*/{NAME}/{NAME}"), reverse=True)


def _version(program: Path) -> str:
    try:
        asked = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_ASK_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    found = _VERSION.search(asked.stdout)
    return found[1] if found else ""
