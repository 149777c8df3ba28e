"""The fleet's rows: what a node is, and whether it answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from kernelhub.core.choices import NodeStatus
from kernelhub.core.models import Node
from kernelhub.core.services.lease import node_runs_lose
from kernelhub.core.text import storable
from verifier import records

SILENT_S: Final = 60
SEEN_STEP_S: Final = 5
"""How coarse ``last_seen_at`` is, so that polling does not write a row each time."""


def node_register(
    *, node: Node, queue: str, environment: records.Environment, afresh: bool = True
) -> Node:
    """Puts the node online with what its verifier says of the device.

    An agent that starts (``afresh``) holds no run, so whatever the node had leased is taken back
    first. A sick node stays sick: only node_well returns it.
    """
    if afresh:
        node_runs_lose(node=node, reason=f"the agent of {node.name} started afresh")
    node.queue = queue
    node.mode = environment.mode.value
    node.device_name = environment.device_name
    node.device_uuid = environment.device_uuid
    node.environment = storable(records.to_json(environment))
    if node.status not in (NodeStatus.DRAINING, NodeStatus.SICK):
        node.status = NodeStatus.ONLINE
    node.save()
    Node.objects.filter(pk=node.pk).update(last_seen_at=Now())
    return node


def node_seen(*, node: Node) -> None:
    """Notes that the node answers; an offline one is online again."""
    fresh_from = timezone.now() - timedelta(seconds=SEEN_STEP_S)
    if node.last_seen_at is not None and node.last_seen_at > fresh_from:
        return
    stale = Q(last_seen_at=None) | Q(last_seen_at__lt=Now() - timedelta(seconds=SEEN_STEP_S))
    Node.objects.filter(stale, pk=node.pk).update(last_seen_at=Now())
    revived = Node.objects.filter(pk=node.pk, status=NodeStatus.OFFLINE).exclude(queue="")
    if revived.update(status=NodeStatus.ONLINE):
        node.status = NodeStatus.ONLINE


def node_offline(*, node: Node) -> None:
    """The agent said goodbye; what it still held is queued again."""
    node_runs_lose(node=node, reason=f"the agent of {node.name} stopped")
    Node.objects.filter(pk=node.pk, status=NodeStatus.ONLINE).update(status=NodeStatus.OFFLINE)


def nodes_mark_silent() -> int:
    """Nodes that have not answered for SILENT_S are shown offline; how many there were."""
    silent = Q(last_seen_at__lt=Now() - timedelta(seconds=SILENT_S))
    return Node.objects.filter(silent, status=NodeStatus.ONLINE).update(status=NodeStatus.OFFLINE)
