"""Reading suites, tasks and kernels."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from kernelhub.accounts.roles import Scope
from kernelhub.api.pagination import Keyset, next_url
from kernelhub.api.serializers.base import read_query
from kernelhub.api.serializers.catalogue import (
    KernelDetailSerializer,
    SuiteListSerializer,
    SuiteSerializer,
    TaskDetailSerializer,
    TaskListSerializer,
    TaskQuery,
    TaskSerializer,
)
from kernelhub.api.views.base import ApiView
from kernelhub.core.choices import TaskStatus
from kernelhub.core.models import Kernel, Suite, Task

TASK_ORDER: Final = Keyset(fields=("suite__slug", "slug"))
_LIVE: Final = Q(tasks__is_current=True, tasks__status=TaskStatus.PUBLISHED)


def published_tasks() -> QuerySet[Task]:
    """The revision of each task that is open for runs."""
    return Task.objects.filter(is_current=True, status=TaskStatus.PUBLISHED).select_related("suite")


class SuitesView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(operation_id="suites_list", tags=["catalogue"], responses=SuiteListSerializer)
    def get(self, request: Request) -> Response:
        """Every suite."""
        return Response({"results": SuiteSerializer(_suites(), many=True).data})


class SuiteView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(operation_id="suites_get", tags=["catalogue"], responses=SuiteSerializer)
    def get(self, request: Request, suite: str) -> Response:
        """One suite."""
        return Response(SuiteSerializer(get_object_or_404(_suites(), slug=suite)).data)


class TasksView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(
        operation_id="tasks_list",
        tags=["catalogue"],
        parameters=[TaskQuery],
        responses=TaskListSerializer,
    )
    def get(self, request: Request) -> Response:
        """Tasks that can be run, by suite and name."""
        query = read_query(TaskQuery, request)
        page = TASK_ORDER.page(_matching(query), cursor=query["cursor"], limit=query["limit"])
        results = TaskSerializer(page.rows, many=True).data
        return Response({"results": results, "next": next_url(request, page.next_cursor)})


class TaskView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(operation_id="tasks_get", tags=["catalogue"], responses=TaskDetailSerializer)
    def get(self, request: Request, suite: str, task: str) -> Response:
        """One task with its contract and its reference."""
        rows = published_tasks().prefetch_related("workloads")
        found = get_object_or_404(rows, suite__slug=suite, slug=task)
        return Response(TaskDetailSerializer(found).data)


class KernelView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(operation_id="kernels_get", tags=["catalogue"], responses=KernelDetailSerializer)
    def get(self, request: Request, kernel_id: UUID) -> Response:
        """One kernel with its source."""
        rows = Kernel.objects.select_related("task__suite")
        return Response(KernelDetailSerializer(get_object_or_404(rows, pk=kernel_id)).data)


def _suites() -> QuerySet[Suite]:
    return Suite.objects.annotate(task_count=Count("tasks", filter=_LIVE))


def _matching(query: dict[str, Any]) -> QuerySet[Task]:
    tasks = published_tasks()
    if suite := query.get("suite"):
        tasks = tasks.filter(suite__slug=suite)
    if category := query.get("category"):
        tasks = tasks.filter(category=category)
    if tag := query.get("tag"):
        tasks = tasks.filter(tags__contains=[tag])
    return tasks
