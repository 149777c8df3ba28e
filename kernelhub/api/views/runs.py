"""Submitting, watching and cancelling runs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from kernelhub.accounts.roles import Role, Scope, user_role
from kernelhub.api.pagination import bad_cursor, next_url
from kernelhub.api.problems import Kind, ProblemError
from kernelhub.api.serializers.base import read_body, read_query
from kernelhub.api.serializers.runs import (
    EventPageSerializer,
    EventSerializer,
    EventsQuery,
    RunDetailSerializer,
    RunListSerializer,
    RunQuery,
    RunRequest,
    RunSerializer,
    SubmittedRunSerializer,
)
from kernelhub.api.submissions import KEY_HEADER, KEY_MAX, read_key, run_submit
from kernelhub.api.views.base import ApiView, request_user
from kernelhub.core.models import Run, Verdict
from kernelhub.core.selectors import (
    CursorError,
    RunFilters,
    RunPage,
    events_after,
    run_detail,
    run_list,
)
from kernelhub.core.services import run_cancel

KEY_PARAMETER: Final = OpenApiParameter(
    KEY_HEADER,
    str,
    OpenApiParameter.HEADER,
    description=f"1 to {KEY_MAX} visible ASCII characters; the same key and body give the same run",
)


class RunsView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ, "POST": Scope.RUNS_WRITE}

    @extend_schema(
        operation_id="runs_list", tags=["runs"], parameters=[RunQuery], responses=RunListSerializer
    )
    def get(self, request: Request) -> Response:
        """Runs, the newest first."""
        query = read_query(RunQuery, request)
        page = _page(query)
        results = RunSerializer(page.runs, many=True).data
        return Response({"results": results, "next": next_url(request, page.next)})

    @extend_schema(
        operation_id="runs_submit",
        tags=["runs"],
        parameters=[KEY_PARAMETER],
        request=RunRequest,
        responses={201: SubmittedRunSerializer, 200: SubmittedRunSerializer},
    )
    def post(self, request: Request) -> Response:
        """Submit a kernel to be judged: 201 with its run.

        200 with the earlier run where the same Idempotency-Key came with the same body. Source
        that is no valid Python is taken too: judging it is the verifier's work.
        """
        key = read_key(request.headers.get(KEY_HEADER))
        wanted = read_body(RunRequest, request)
        submitted = run_submit(
            user=request_user(request), wanted=wanted, key=key, body=request.data
        )
        run = _run(submitted.run.pk)
        headers = {"Location": f"{request.path.rstrip('/')}/{run.pk}"}
        status = 201 if submitted.fresh else 200
        run.notice = submitted.notice  # type: ignore[attr-defined]  # of this answer alone
        return Response(SubmittedRunSerializer(run).data, status=status, headers=headers)


class RunView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(operation_id="runs_get", tags=["runs"], responses=RunDetailSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        """One run, with a summary of its verdict."""
        return Response(RunDetailSerializer(_run(run_id)).data)


class RunVerdictView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(
        operation_id="runs_verdict", tags=["runs"], responses={(200, "application/json"): dict}
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """The verifier's own document, fit for `python -m verifier replay`."""
        run = get_object_or_404(Run, pk=run_id)
        verdict = Verdict.objects.filter(run=run).first()
        if verdict is None:
            raise NotFound(f"This run has no verdict: it is {run.status}.")
        return Response(verdict.document)


class RunCancelView(ApiView):
    scopes: ClassVar = {"POST": Scope.RUNS_WRITE}

    @extend_schema(
        operation_id="runs_cancel", tags=["runs"], request=None, responses=RunDetailSerializer
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Cancel a run of yours that has not ended; curators may cancel any."""
        run = _run(run_id)
        _check_owner(request, run)
        if not run_cancel(run=run, by=request_user(request).get_username()):
            raise ProblemError(Kind.CONFLICT, f"This run has ended: it is {_run(run_id).status}.")
        return Response(RunDetailSerializer(_run(run_id)).data)


class RunEventsView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(
        operation_id="runs_events",
        tags=["runs"],
        parameters=[EventsQuery],
        responses=EventPageSerializer,
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """The run's events after a number, in order and without gaps.

        With `wait`, an answer without events is held back until there is one or the time is over.
        """
        query = read_query(EventsQuery, request)
        return Response(event_page(run_id, query), headers={"Cache-Control": "no-store"})


def event_page(run_id: UUID, query: dict[str, Any]) -> dict[str, Any]:
    """A page of events. The run is read first: what it counts is stored, so none is missed."""
    run = get_object_or_404(Run, pk=run_id)
    events = events_after(run_id, query["after"], query["limit"])
    shown = events[-1].seq if events else query["after"]
    return {
        "status": run.status,
        "last_seq": run.last_seq,
        "done": run.is_ended and shown >= run.last_seq,
        "events": EventSerializer(events, many=True).data,
    }


def _run(run_id: UUID) -> Run:
    try:
        return run_detail(run_id)
    except Run.DoesNotExist as error:
        raise NotFound("There is no such run.") from error


def _page(query: dict[str, Any]) -> RunPage:
    names = {field.name for field in fields(RunFilters)}
    filters = RunFilters(**{name: value for name, value in query.items() if name in names})
    try:
        return run_list(filters, cursor=query["cursor"], limit=query["limit"])
    except CursorError as error:
        raise bad_cursor() from error


def _check_owner(request: Request, run: Run) -> None:
    user = request_user(request)
    role = user_role(user)
    if run.created_by_id != user.pk and not (role and role.covers(Role.CURATOR)):
        raise PermissionDenied("This run is somebody else's; a curator may cancel it.")
