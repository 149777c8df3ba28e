"""The hub's side of a node: each view reads a message, calls one service, says what came of it.

A node token reaches the runs that the node has leased, and of those only the ones that still
carry the attempt that it names. Everything else answers 409: stop, and write nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.db import DataError, IntegrityError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpu_runner import protocol
from kernelhub.accounts.authentication import TokenAuthentication, request_node
from kernelhub.accounts.roles import Scope
from kernelhub.api.problems import Kind, ProblemError
from kernelhub.core import events, services
from kernelhub.core.choices import ErrorKind, NodeStatus
from kernelhub.core.models import Node, Run
from kernelhub.core.services.lease import HEARTBEAT_S, LEASE_S
from verifier import records

Message = TypeVar("Message")

_KINDS: tuple[tuple[type[Exception], Kind], ...] = (
    (services.FencedError, Kind.CONFLICT),
    (services.TooManyEventsError, Kind.TOO_LARGE),
    (services.VerdictMismatchError, Kind.INVALID),
    (events.EventError, Kind.INVALID),
    (records.RecordError, Kind.INVALID),
)


@contextmanager
def problems() -> Iterator[None]:
    """Refusals of services, records and the database as problem documents.

    What the database cannot hold is the message's fault: as a failure of ours the node would post
    the same again and again.
    """
    try:
        yield
    except (services.ServiceError, events.EventError, records.RecordError) as error:
        kinds = (kind for cause, kind in _KINDS if isinstance(error, cause))
        raise ProblemError(next(kinds, Kind.INVALID), str(error)) from error
    except (DataError, IntegrityError) as error:
        raise ProblemError(Kind.INVALID, f"this cannot be stored: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


class NodeView(APIView):
    """Closed to everybody without a node token; nodes are not throttled."""

    scopes: ClassVar = {"POST": Scope.NODE, "GET": Scope.NODE}
    authentication_classes = (TokenAuthentication,)
    throttle_classes = ()

    def node(self) -> Node:
        node = request_node(self.request)
        services.node_seen(node=node)
        return node

    def read(self, kind: type[Message]) -> Message:
        """The request's body as a message; a problem document names each field that is wrong."""
        with problems():
            return records.from_json(kind, self.request.data)

    def leased(self, run_id: UUID, attempt: int) -> Run:
        """The run, if this node has it under this attempt; else 409."""
        with problems():
            return services.run_fence(run_id=run_id, node=self.node(), attempt=attempt)

    def fault(self, run_id: UUID, attempt: int, kind: ErrorKind, message: str) -> Response:
        with problems():
            services.run_fault(
                run_id=run_id, node=self.node(), attempt=attempt, kind=kind, message=message
            )
        return Response(status=204)


def answer(message: Any) -> Response:
    return Response(records.to_json(message))


class RegisterView(NodeView):
    def post(self, request: Request) -> Response:
        message = self.read(protocol.Registration)
        node = services.node_register(
            node=self.node(),
            queue=message.queue,
            environment=message.environment,
            afresh=message.afresh,
        )
        in_service = node.status != NodeStatus.SICK
        return answer(protocol.Welcome(node.name, LEASE_S, HEARTBEAT_S, in_service))


class HealthView(NodeView):
    def post(self, request: Request) -> Response:
        """The node leaves service, or asks to return; the answer says where it stands."""
        notice = self.read(protocol.HealthNotice)
        if notice.well:
            node = services.node_well(node=self.node(), report=notice.report)
        else:
            node = services.node_sick(node=self.node(), reason=notice.reason, report=notice.report)
        sick, held = node.status == NodeStatus.SICK, services.node_held(node)
        return answer(protocol.Standing(not sick, node.retest_asked, held))


class GoodbyeView(NodeView):
    def post(self, request: Request) -> Response:
        services.node_offline(node=self.node())
        return Response(status=204)


class LeaseView(NodeView):
    def post(self, request: Request) -> Response:
        """200 with a run, 204 when none waits that this node can judge."""
        wanted = self.read(protocol.LeaseRequest).run
        lease = services.run_claim(node=self.node(), run_id=_uuid(wanted) if wanted else None)
        return Response(status=204) if lease is None else answer(_leased_run(lease))


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise ProblemError(Kind.INVALID, f"{text!r} is no run id") from error


def _leased_run(lease: services.Lease) -> protocol.LeasedRun:
    run = lease.run
    return protocol.LeasedRun(
        run=str(run.pk),
        attempt=lease.attempt,
        lease_s=lease.lease_s,
        seed=run.seed,
        task=run.task.path,
        digest=run.task.digest,
        sha256=run.kernel.sha256,
        entry=run.kernel.entry,
        source=run.kernel.source,
    )


class TaskView(NodeView):
    def get(self, request: Request, run_id: UUID, attempt: int) -> Response:
        """The task folder of a leased run."""
        task = self.leased(run_id, attempt).task
        return answer(protocol.TaskFolder(task.contract_text, task.reference))


class HeartbeatView(NodeView):
    def post(self, request: Request, run_id: UUID) -> Response:
        attempt = self.read(protocol.Heartbeat).attempt
        self.leased(run_id, attempt)
        with problems():
            receipt = services.run_heartbeat(run_id=run_id, attempt=attempt)
        return answer(protocol.Receipt(receipt.received, receipt.cancelled))


class EventsView(NodeView):
    def post(self, request: Request, run_id: UUID) -> Response:
        """Stores what is new of a batch; ``received`` says from where to go on."""
        batch = self.read(protocol.EventBatch)
        if len(batch.events) > protocol.EVENTS_PER_BATCH:
            raise ProblemError(Kind.TOO_LARGE, f"at most {protocol.EVENTS_PER_BATCH} events a post")
        self.leased(run_id, batch.attempt)
        with problems():
            return answer(_append(run_id, batch))


def _append(run_id: UUID, batch: protocol.EventBatch) -> protocol.Receipt:
    happened = [events.read_progress(line.kind, line.payload) for line in batch.events]
    try:
        receipt = services.run_event_append(
            run_id=run_id, attempt=batch.attempt, first=batch.first, happened=happened
        )
    except services.EventGapError as gap:
        return protocol.Receipt(gap.expected, cancelled=False)
    return protocol.Receipt(receipt.received, receipt.cancelled)


class VerdictView(NodeView):
    def post(self, request: Request, run_id: UUID) -> Response:
        """A verdict in which a gate broke is an infrastructure error, and stored as that."""
        report = self.read(protocol.VerdictReport)
        with problems():
            verdict = records.from_json(records.Verdict, report.verdict)
        if breakage := services.verdict_breakage(verdict):
            return self.fault(run_id, report.attempt, ErrorKind.INFRASTRUCTURE, breakage)
        self.leased(run_id, report.attempt)
        with problems():
            services.run_finish(run_id=run_id, attempt=report.attempt, verdict=verdict)
        return Response(status=204)


class ErrorView(NodeView):
    def post(self, request: Request, run_id: UUID) -> Response:
        """A repeated report is answered like the first: its node shows in the stored event."""
        report = self.read(protocol.FaultReport)
        return self.fault(run_id, report.attempt, ErrorKind(report.kind.value), report.message)


class ReleaseView(NodeView):
    def post(self, request: Request, run_id: UUID) -> Response:
        """Giving back what is no longer held is no error: the node wanted to be rid of it."""
        release = self.read(protocol.Release)
        try:
            services.run_fence(run_id=run_id, node=self.node(), attempt=release.attempt)
        except services.FencedError:
            return Response(status=204)
        services.run_release(run_id=run_id, attempt=release.attempt, reason=release.reason)
        return Response(status=204)
