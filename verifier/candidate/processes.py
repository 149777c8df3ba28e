"""What runs inside a candidate's cage, read from /proc by the forkserver."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Census:
    """The descendants of one process (itself included): how many, and their private memory."""

    pids: tuple[int, ...]
    threads: int
    memory_bytes: int


def census(root: int, baseline_bytes: int = 0) -> Census:
    """Count ``root`` and its descendants; each process is forgiven ``baseline_bytes`` of memory,
    which it shares with its parent since the fork."""
    pids = tuple(_descendants(root))
    status = [_status(pid) for pid in pids]
    memory = sum(max(0, anonymous - baseline_bytes) + shared for _, anonymous, shared in status)
    return Census(pids, sum(threads for threads, _, _ in status), memory)


def _descendants(root: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - polled; Path objects cost
        if name.isdigit() and (parent := _parent(int(name))):
            children.setdefault(parent, []).append(int(name))
    stack = [root]
    while stack:
        pid = stack.pop()
        yield pid
        stack += children.get(pid, [])


def _parent(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return 0 if fields[0] == "Z" else int(fields[1])


def descendants_count(root: int) -> int:
    """How many processes descend from ``root``, itself included; cheaper than a census."""
    try:
        return _count_by_children(root)
    except FileNotFoundError:  # gone, or a kernel without these files
        return len(tuple(_descendants(root)))


def _count_by_children(root: int) -> int:
    count, stack = 0, [str(root)]
    while stack:
        pid = stack.pop()
        count += 1
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - once a call
            with open(f"/proc/{pid}/task/{task}/children") as file:  # noqa: PTH123
                stack += file.read().split()
    return count


def anonymous_bytes(pid: int) -> int:
    return _status(pid)[1]


def _status(pid: int) -> tuple[int, int, int]:
    """Threads, anonymous bytes and shared-memory bytes of one process; zeros if it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return 0, 0, 0
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return (
        int(fields.get("Threads", "0")),
        _kib(fields.get("RssAnon", "0 kB")),
        _kib(fields.get("RssShmem", "0 kB")),
    )


def _kib(field: str) -> int:
    return int(field.split()[0]) * _KIB
