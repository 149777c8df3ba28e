"""One warm session for the commands: a test of what they say need not start a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest

import verifier.commands.calibrate
import verifier.commands.defence_agreement
import verifier.commands.defence_positive
import verifier.commands.defence_thresholds
import verifier.commands.fuzz
import verifier.commands.replay
import verifier.commands.selfcheck
import verifier.commands.verify
from verifier.__main__ import main
from verifier.session import Session

COMMANDS = (
    verifier.commands.calibrate,
    verifier.commands.defence_agreement,
    verifier.commands.defence_positive,
    verifier.commands.defence_thresholds,
    verifier.commands.fuzz,
    verifier.commands.replay,
    verifier.commands.selfcheck,
    verifier.commands.verify,
)

Command = Callable[..., int]


@pytest.fixture(scope="module")
def command(verifier_session: Session) -> Iterator[Command]:
    """`python -m verifier` in this process: the exit code of the words, on the warm session."""

    def run(*words: object) -> int:
        try:
            return main([str(word) for word in words])
        except SystemExit as stop:  # argparse's own way out
            return int(stop.code or 0)

    with pytest.MonkeyPatch.context() as patch:
        for module in COMMANDS:
            patch.setattr(module, "Session", lambda *args, **kwargs: nullcontext(verifier_session))
        yield run
