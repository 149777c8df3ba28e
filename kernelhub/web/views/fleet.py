"""Nodes and the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from kernelhub.core.models import Node
from kernelhub.core.selectors import fleet, queue_rows
from kernelhub.core.services import node_held
from kernelhub.web import selectors
from kernelhub.web.access import readers_only
from kernelhub.web.catalogue import DASH, Look
from kernelhub.web.present import plural

LOOKS = {
    "online": Look("pass", "✓", "online"),
    "draining": Look("maybe", "?", "draining"),
    "offline": Look("na", DASH, "offline"),
    "sick": Look("fail", "✕", "out of service"),
}


@dataclass(frozen=True, slots=True)
class NodeRow:
    node: Node
    look: Look
    running: int
    held: bool
    """It stays out of service until an operator asks for it."""


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    queued: int
    running: int
    oldest: datetime | None


@require_GET
@readers_only
def fleet_page(request: HttpRequest) -> HttpResponseBase:
    found: Sequence[Any] = fleet()
    nodes = [NodeRow(node, LOOKS[node.status], node.running, node_held(node)) for node in found]
    queues = queue_table()
    context = {"nodes": nodes, "queues": queues, "sentence": sentence(nodes, queues)}
    return render(request, "web/fleet.html", context)


def queue_table() -> list[Queue]:
    """Waiting and running by the queue that runs asked for."""
    waiting = {row.queue: row for row in queue_rows()}
    running = selectors.running_by_queue()
    return [
        Queue(
            name,
            waiting[name].waiting if name in waiting else 0,
            running.get(name, 0),
            waiting[name].oldest_at if name in waiting else None,
        )
        for name in sorted({*waiting, *running})
    ]


def sentence(nodes: Sequence[NodeRow], queues: Sequence[Queue]) -> str:
    online = sum(row.node.status == "online" for row in nodes)
    waiting = sum(queue.queued for queue in queues)
    if not nodes:
        return "No node has reported in, so nothing can be judged yet."
    if not online:
        return f"No node is online; {plural(waiting, 'run')} {'waits' if waiting == 1 else 'wait'}."
    tail = (
        f"{plural(waiting, 'run')} {'waits' if waiting == 1 else 'wait'}"
        if waiting
        else "nothing waits"
    )
    return (
        f"{online} of {plural(len(nodes), 'node')} {'is' if online == 1 else 'are'} online; {tail}."
    )
