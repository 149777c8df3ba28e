"""Suites, tasks and kernels: what there is to run."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from kernelhub.api.serializers.base import PageQuery
from kernelhub.core.models import Kernel, Suite, Task, Workload


class SuiteSerializer(serializers.ModelSerializer[Suite]):
    tasks = serializers.IntegerField(source="task_count", help_text="published tasks")

    class Meta:
        model = Suite
        fields: ClassVar = ["slug", "title", "description", "homepage", "tasks"]


class SuiteListSerializer(serializers.Serializer[Any]):
    results = SuiteSerializer(many=True)


class TaskSerializer(serializers.ModelSerializer[Task]):
    path = serializers.CharField(help_text="suite/task, as `POST runs` takes it")
    suite = serializers.CharField(source="suite.slug")
    tags = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Task
        fields: ClassVar = [
            "path",
            "suite",
            "slug",
            "revision",
            "title",
            "category",
            "tags",
            "difficulty",
            "digest",
        ]


class WorkloadSerializer(serializers.ModelSerializer[Workload]):
    dims = serializers.DictField(child=serializers.IntegerField())
    dtypes = serializers.DictField(child=serializers.CharField())

    class Meta:
        model = Workload
        fields: ClassVar = ["name", "dims", "dtypes", "weight", "phase"]


class TaskDetailSerializer(TaskSerializer):
    contract = serializers.DictField(help_text="task.json: what a kernel must compute")
    reference = serializers.CharField(help_text="reference.py: plain torch")
    workloads = WorkloadSerializer(many=True)

    class Meta(TaskSerializer.Meta):
        fields: ClassVar = [*TaskSerializer.Meta.fields, "contract", "reference", "workloads"]


class TaskListSerializer(serializers.Serializer[Any]):
    results = TaskSerializer(many=True)
    next = serializers.URLField(allow_null=True)


class TaskQuery(PageQuery):
    suite = serializers.SlugField(required=False)
    category = serializers.CharField(required=False, max_length=60)
    tag = serializers.CharField(required=False, max_length=60)


class KernelSerializer(serializers.ModelSerializer[Kernel]):
    class Meta:
        model = Kernel
        fields: ClassVar = [
            "id",
            "label",
            "entry",
            "language",
            "sha256",
            "author_name",
            "author_kind",
            "created_at",
        ]


class KernelDetailSerializer(KernelSerializer):
    task = serializers.CharField(source="task.path")
    task_revision = serializers.IntegerField(source="task.revision")
    source = serializers.CharField()  # type: ignore[assignment]  # a field, not an option
    runs = serializers.SerializerMethodField(help_text="its runs, the newest first, at most 20")

    class Meta(KernelSerializer.Meta):
        fields: ClassVar = [
            *KernelSerializer.Meta.fields,
            "task",
            "task_revision",
            "notes",
            "source",
            "runs",
        ]

    def get_runs(self, kernel: Kernel) -> list[str]:
        return [str(pk) for pk in kernel.runs.values_list("pk", flat=True)[:20]]
