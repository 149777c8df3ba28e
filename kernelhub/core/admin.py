"""The curators' admin. Facts (contracts, sources, runs, verdicts) are shown and never edited."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Model, QuerySet, URLField
from django.http import HttpRequest

from kernelhub.core.models import (
    Campaign,
    GateResult,
    Kernel,
    Node,
    Run,
    Suite,
    Task,
    Verdict,
    Workload,
)
from kernelhub.core.services import node_retest
from kernelhub.core.theme import ModelAdmin, TabularInline


class _NoChanges:
    """Rows that services alone write: no one adds, changes or deletes them by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class _NoNewRows:
    """Rows that come and go with services, but whose labels a curator may mend."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class WorkloadInline(_NoNewRows, TabularInline):
    model = Workload
    fields = ("name", "dims", "dtypes", "weight", "phase")
    readonly_fields = ("name", "dims", "dtypes")


class GateResultInline(_NoChanges, TabularInline):
    model = GateResult
    fields = ("gate", "status", "hard", "summary", "reason", "passed", "failed")


@admin.register(Suite)
class SuiteAdmin(_NoNewRows, ModelAdmin):
    list_display = ("slug", "title", "order")
    readonly_fields = ("slug",)
    formfield_overrides: ClassVar = {URLField: {"assume_scheme": "https"}}


@admin.register(Task)
class TaskAdmin(_NoNewRows, ModelAdmin):
    list_display = ("slug", "suite", "revision", "status", "category", "is_current")
    list_filter = ("suite", "status", "is_current", "category")
    list_select_related = ("suite",)
    search_fields = ("slug", "title")
    readonly_fields = (
        "suite",
        "slug",
        "revision",
        "is_current",
        "digest",
        "contract",
        "reference",
        "created_at",
    )
    inlines: ClassVar = [WorkloadInline]


@admin.register(Kernel)
class KernelAdmin(_NoNewRows, ModelAdmin):
    list_display = ("__str__", "task", "language", "author_name", "author_kind", "created_at")
    list_filter = ("language", "author_kind", "expectation", "task__suite")
    list_select_related = ("task__suite",)
    search_fields = ("label", "sha256", "author_name")
    fields = (
        "task",
        "label",
        "author_name",
        "author_kind",
        "notes",
        "entry",
        "language",
        "sha256",
        "source",
        "user",
        "created_at",
    )
    readonly_fields = ("task", "entry", "language", "sha256", "source", "user", "created_at")


@admin.register(Run)
class RunAdmin(_NoChanges, ModelAdmin):
    list_display = ("id", "task", "kernel", "status", "node", "attempt", "created_at")
    list_filter = ("status", "requested_queue", "task__suite")
    list_select_related = ("task__suite", "kernel", "node")
    search_fields = ("id", "kernel__label", "task__slug")
    show_full_result_count = False


@admin.register(Verdict)
class VerdictAdmin(_NoChanges, ModelAdmin):
    list_display = ("run", "outcome", "illusion", "hard", "source", "created_at")
    list_filter = ("outcome", "illusion", "hard", "source")
    list_select_related = ("run",)
    exclude = ("document",)
    inlines: ClassVar = [GateResultInline]
    show_full_result_count = False


@admin.register(Node)
class NodeAdmin(ModelAdmin):
    list_display = ("name", "status", "queue", "mode", "device_name", "last_seen_at")
    list_filter = ("status", "queue", "mode")
    fields = (
        "name",
        "status",
        "queue",
        "mode",
        "device_name",
        "device_uuid",
        "environment",
        "health_reason",
        "health",
        "health_changed_at",
        "outages",
        "last_seen_at",
    )
    actions = ("retest",)
    readonly_fields = (
        "queue",
        "mode",
        "device_name",
        "device_uuid",
        "environment",
        "health_reason",
        "health",
        "health_changed_at",
        "outages",
        "last_seen_at",
    )

    @admin.action(description="Examine the device now, return to service if it is healthy")
    def retest(self, request: HttpRequest, queryset: QuerySet[Node]) -> None:
        asked = sum(node_retest(node=node) for node in queryset)
        self.message_user(request, f"{asked} nodes out of service are asked")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False  # its runs name it


@admin.register(Campaign)
class CampaignAdmin(_NoNewRows, ModelAdmin):
    list_display = ("slug", "title", "created_by", "created_at")
    list_select_related = ("created_by",)
    search_fields = ("slug", "title")
    readonly_fields = ("slug", "created_by", "created_at")
