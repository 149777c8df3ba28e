"""A node whose device cannot be trusted leaves service by itself, says why, and may come back.

It comes back when an examination finds the device healthy. One that leaves again and again stays
out until an operator has looked at it: each return costs the queue attempts.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Case, F, PositiveSmallIntegerField, Q, Value, When
from django.db.models.functions import Now

from kernelhub.core.choices import NodeStatus
from kernelhub.core.models import Node
from kernelhub.core.services.lease import node_runs_release
from kernelhub.core.text import storable
from verifier import records

OUTAGES_MAX: Final = 3
"""After so many outages in an hour the node waits for an operator."""
OUTAGES_WITHIN: Final = timedelta(hours=1)
_COUNT: Final = PositiveSmallIntegerField()


@transaction.atomic
def node_sick(*, node: Node, reason: str, report: records.HealthReport | None = None) -> Node:
    """Takes the node out of service; a node that is out already only says more with a report.

    What the node still holds is queued again at once, and costs the runs no attempt.
    """
    said = {"health_reason": storable(reason) or "its device is sick"}
    said |= {"health": storable(records.to_json(report))} if report else {}
    recent = Q(health_changed_at__gt=Now() - OUTAGES_WITHIN)
    left = Node.objects.filter(pk=node.pk).exclude(status=NodeStatus.SICK)
    entered = left.update(
        status=NodeStatus.SICK,
        outages=Case(When(recent, then=F("outages") + 1), default=Value(1), output_field=_COUNT),
        health_changed_at=Now(),
        retest_asked=False,
        **said,
    )
    if entered:
        node_runs_release(node=node, reason=f"{node.name} left service: {reason}")
    elif report:
        Node.objects.filter(pk=node.pk).update(**said)
    node.refresh_from_db()
    return node


def node_well(*, node: Node, report: records.HealthReport | None = None) -> Node:
    """The device was examined and found healthy: a sick node returns, unless it has left too often
    (see ``node_held``); then an operator must ask for it first."""
    said = {"health": storable(records.to_json(report))} if report else {}
    may_return = Q(outages__lt=OUTAGES_MAX) | Q(retest_asked=True)
    sick = Node.objects.filter(pk=node.pk, status=NodeStatus.SICK)
    sick.filter(may_return).update(
        status=NodeStatus.ONLINE,
        outages=Case(
            When(retest_asked=True, then=Value(0)), default=F("outages"), output_field=_COUNT
        ),
        health_reason="",
        health_changed_at=Now(),
        retest_asked=False,
    )
    if said:
        Node.objects.filter(pk=node.pk).update(**said)
    node.refresh_from_db()
    return node


def node_retest(*, node: Node) -> bool:
    """An operator asks a sick node to examine its device now, and to return if it is healthy."""
    sick = Node.objects.filter(pk=node.pk, status=NodeStatus.SICK)
    return sick.update(retest_asked=True) == 1


def node_held(node: Node) -> bool:
    """Whether the node stays out until an operator asks for it."""
    return node.status == NodeStatus.SICK and node.outages >= OUTAGES_MAX and not node.retest_asked
