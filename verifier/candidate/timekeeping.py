"""In the host: the requests that timing consists of, around the stopwatch.

Time is claimed in two steps. ``play`` runs the loop and answers with a commitment to the digests of
all outputs, nothing else, so that what the referee's clock sees does not grow with the length of
an answer; ``claims`` then gives times and digests, ``reveal`` the outputs of one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from verifier.candidate.replies import OutputRegion, failure_classify
from verifier.candidate.stopwatch import Call, GraphError, Setup, Stopwatch, Tape
from verifier.subject import ReplyKind

Body = dict[str, Any]
OPS: Final = ("arm", "play", "claims", "reveal")


class Timekeeping:
    """The stopwatch of one host, behind requests."""

    def __init__(self, device: torch.device, call: Call) -> None:
        self._stopwatch = Stopwatch(device, call)

    def arm(self, arguments: Sequence[Any], body: Mapping[str, Any]) -> Body:
        setup = Setup.from_json(body["setup"])
        return _tried(lambda: self._stopwatch.arm(arguments, setup))

    def answer(self, body: Mapping[str, Any], region: OutputRegion) -> Body:
        """The answer to one request other than ``arm``."""
        match body["op"]:
            case "play":
                tape = Tape.from_json(body["tape"])
                return _tried(lambda: self._stopwatch.play(tape), self._committed)
            case "claims":
                played = self._stopwatch.played
                return _returned({"seconds": played.seconds, "digests": played.digests})
            case _:
                return _tried(lambda: None, lambda: self._revealed(int(body["call"]), region))

    def _committed(self) -> Body:
        return {"commit": self._stopwatch.played.commit}

    def _revealed(self, call: int, region: OutputRegion) -> Body:
        region.reset()
        return {"outputs": region.put(self._stopwatch.reveal(call))}


def _returned(body: Body) -> Body:
    return {"kind": ReplyKind.RETURNED, **body}


def _tried(do: Callable[[], Any], then: Callable[[], Body] = dict) -> Body:
    try:
        do()
        return _returned(then())
    except GraphError as error:
        return {"kind": ReplyKind.RAISED, "detail": str(error), "no_graph": True}
    except BaseException as error:  # noqa: BLE001 - whatever the kernel throws is a reply
        kind, detail = failure_classify(error, loading=False)
        return {"kind": kind, "detail": detail}
