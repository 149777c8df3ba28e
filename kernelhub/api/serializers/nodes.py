"""Nodes: who judges, and who is out of service why."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from kernelhub.core.models import Node


class NodeSerializer(serializers.ModelSerializer[Node]):
    running = serializers.IntegerField(help_text="runs that it holds right now")
    out_of_service = serializers.SerializerMethodField(help_text="why; '' while it is in service")
    health = serializers.DictField(help_text="the last examination of its device")

    class Meta:
        model = Node
        fields: ClassVar = [
            "name",
            "status",
            "queue",
            "mode",
            "device_name",
            "running",
            "out_of_service",
            "health",
            "health_changed_at",
            "outages",
            "last_seen_at",
        ]

    def get_out_of_service(self, node: Node) -> str:
        return node.health_reason if node.status == "sick" else ""


class NodeListSerializer(serializers.Serializer[Any]):
    results = NodeSerializer(many=True)
