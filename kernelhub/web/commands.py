"""Commands that a page shows: each works as it stands when pasted at the repository's root."""

from __future__ import annotations

import shlex
from typing import Final

from django.http import HttpRequest

from kernelhub.programs import BIN

DEFAULT_HUB: Final = "http://127.0.0.1:8000"
"""Where the command line looks by itself."""


def hub_command(request: HttpRequest, *words: str) -> str:
    """A call of the hub's command line that meets the hub that shows it."""
    hub = f"{request.scheme}://{request.get_host()}"
    place = () if hub == DEFAULT_HUB else ("--hub", hub)
    return shlex.join((f"{BIN}/kernelhub", *words, *place))


def python_command(*words: str) -> str:
    """A call of a module or file with the interpreter that has everything installed."""
    return shlex.join((f"{BIN}/python", *words))
