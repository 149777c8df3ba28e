"""Campaigns: many runs launched together."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from rest_framework import serializers

from kernelhub.api.serializers.base import PageQuery, StrictSerializer, TextField, WholeField
from kernelhub.api.serializers.runs import SEED_MAX
from kernelhub.core.models import Campaign

KERNELS_MAX: Final = 5000


class CampaignSerializer(serializers.ModelSerializer[Campaign]):
    created_by = serializers.CharField(allow_null=True, source="created_by.username", default=None)

    class Meta:
        model = Campaign
        fields: ClassVar = ["id", "slug", "title", "note", "created_by", "created_at"]


class RunCountsSerializer(serializers.Serializer[Any]):
    queued = serializers.IntegerField()
    running = serializers.IntegerField()
    finished = serializers.IntegerField()
    errored = serializers.IntegerField()
    cancelled = serializers.IntegerField()
    total = serializers.IntegerField()


class VerdictCountsSerializer(serializers.Serializer[Any]):
    accepted = serializers.IntegerField()
    rejected = serializers.IntegerField()
    undecided = serializers.IntegerField()
    illusions = serializers.IntegerField()
    loose_accepted = serializers.IntegerField()


class CampaignDetailSerializer(CampaignSerializer):
    runs = RunCountsSerializer(source="runs_counted")
    verdicts = VerdictCountsSerializer(source="verdicts_counted")
    done = serializers.BooleanField(help_text="no run is queued or running")

    class Meta(CampaignSerializer.Meta):
        fields: ClassVar = [*CampaignSerializer.Meta.fields, "runs", "verdicts", "done"]


class CampaignListSerializer(serializers.Serializer[Any]):
    results = CampaignSerializer(many=True)
    next = serializers.URLField(allow_null=True)


class CampaignQuery(PageQuery):
    pass


class CampaignRequest(StrictSerializer):
    slug = serializers.SlugField(max_length=120)
    title = TextField(max_length=200)
    note = TextField(default="", allow_blank=True, max_length=10_000)
    kernels = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=KERNELS_MAX
    )
    queues = serializers.ListField(
        child=TextField(max_length=60, allow_blank=True),
        default=[""],
        min_length=1,
        max_length=20,
        help_text="device queues; '' is any node",
    )
    seed = WholeField(required=False, min_value=0, max_value=SEED_MAX)
