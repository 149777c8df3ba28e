"""In a sandbox of its own: start a tool that starts a candidate, watch over both, end both.

The tool is NVIDIA's and trusted to report what it sees; what it starts is not. Both run under the
limits and filters of any candidate, which are taken on before the tool is there, so that no thread
of either is without them. This process, pid 1 of the sandbox, keeps the leash: when the referee
lets go of it, or ends however, everything in here ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from verifier.candidate import isolation, processes, syscalls
from verifier.candidate.channel import Channel, ChannelClosedError
from verifier.candidate.isolation import Cage

_LOOK_S: Final = 0.1
_NOT_STARTED: Final = 127


def main(text: str) -> None:
    """Carry out one order (``verifier.candidate.deep.Order`` as JSON) and end."""
    order = json.loads(text)
    cage = Cage.from_json(order["cage"])
    child = os.fork()
    if child == 0:
        _become_tool(order, cage)
    leash = Channel.from_fd(order["leash_fd"])
    for fd in (*order["tool_fds"], order["log_fd"]):
        os.close(fd)
    with suppress(ChannelClosedError):
        leash.send(_watch(child, order["limits"]["resident_bytes"], leash))
    os._exit(0)


def _become_tool(order: Mapping[str, Any], cage: Cage) -> None:
    """In the child: no rights, limits, filters, and then the tool."""
    try:
        os.close(order["leash_fd"])
        isolation.init_settle(cage)
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
        os.setsid()
        isolation.streams(order["log_fd"])
        isolation.limits_set(order["limits"], cage)
        isolation.filters_set(cage)
        for fd in order["tool_fds"]:
            os.set_inheritable(fd, True)
        os.chdir(cage.scratch)
        os.execv(order["command"][0], order["command"])  # noqa: S606 - that is what we are for
    except BaseException:  # noqa: BLE001 - nothing may unwind into the watcher's code
        traceback.print_exc()
    os._exit(_NOT_STARTED)


def _watch(child: int, resident_bytes: int, leash: Channel) -> dict[str, Any]:
    """Wait for the tool's end, and see to it that it comes: its status, and what we held against
    it."""
    reason = ""
    while True:
        status = _reaped(child)
        if status is not None:
            return {"status": os.waitstatus_to_exitcode(status), "reason": reason}
        if leash.pending():
            os._exit(0)  # as pid 1 we take everything along
        if not reason and processes.census(child).memory_bytes > resident_bytes:
            reason = "memory"
            os.killpg(child, signal.SIGKILL)
        select.select([leash.fileno()], [], [], _LOOK_S)


def _reaped(child: int) -> int | None:
    """The child's wait status, once there is one. Orphans of anybody's are ours, too."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == child:
                return found[1]
    return None
