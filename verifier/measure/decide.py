"""Decisions of the timing, as arithmetic on seconds and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

MIB: Final = 1 << 20
CALLS: Final = 50
LEAST_CALLS: Final = 5
RUN_S: Final = 0.5
"""A short run takes about so long at most."""
KEPT_BYTES: Final = 6 << 30
"""Outputs of one run that are kept on the device until one of them is looked at."""
RING_BYTES: Final = 4 << 30
SLOTS: Final = 4
LAUNCH_BOUND: Final = 0.8
"""A call is launch-bound when the device needs less than this share of what the host needs."""
IN_GRAPH: Final = 20
REPLAYS: Final = 4
FLUSH_BYTES: Final = 256 * MIB
MOST_FLUSH_BYTES: Final = 2048 * MIB
COVER: Final = 1.3
"""The flush takes so much longer than the host needs for a turn: the device never waits."""
BUSY: Final = 0.7
"""From this share of a turn on, the device and not the host is what a turn waits for."""


def calls_of(per_call_s: float, output_bytes: int) -> int:
    """N of a short run; the long one has 2N."""
    by_time = int(RUN_S / per_call_s) if per_call_s > 0 else CALLS
    by_memory = KEPT_BYTES // (2 * max(output_bytes, 1))
    return max(LEAST_CALLS, min(CALLS, by_time, by_memory))


def slots_of(input_bytes: int) -> int:
    """How many input sets take turns, each at addresses of its own."""
    return max(2, min(SLOTS, RING_BYTES // max(input_bytes, 1)))


def in_graph_of(output_bytes: int) -> int:
    """Calls in one graph."""
    return max(2, min(IN_GRAPH, KEPT_BYTES // (2 * REPLAYS * max(output_bytes, 1))))


@dataclass(frozen=True, slots=True)
class Flush:
    """How much memory is overwritten between calls."""

    nbytes: int
    covers: bool
    """Whether it takes longer than the host needs for a turn."""


def flush_of(l2_bytes: int, turn_s: float, claimed_s: float, bytes_per_s: float) -> Flush:
    """Twice the L2 or 256 MiB at least; more where the host needs longer for a turn (``turn_s``, by
    the referee's clock, without flush) than the device does: it then runs ahead of the device, and
    what the marks enclose is the device's time alone."""
    least = max(2 * l2_bytes, FLUSH_BYTES)
    if claimed_s >= BUSY * turn_s:
        return Flush(least, True)
    wanted = ceil(COVER * turn_s * bytes_per_s / MIB) * MIB
    return Flush(min(max(least, wanted), MOST_FLUSH_BYTES), wanted <= MOST_FLUSH_BYTES)


def is_launch_bound(device_s: float, host_s: float) -> bool:
    """``host_s`` is what the referee's clock sees of a call in an unbroken stream of calls: the
    longer of what host and device need for it."""
    return device_s < LAUNCH_BOUND * host_s
