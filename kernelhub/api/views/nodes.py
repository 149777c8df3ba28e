"""Reading the fleet."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kernelhub.accounts.roles import Scope
from kernelhub.api.serializers.nodes import NodeListSerializer, NodeSerializer
from kernelhub.api.views.base import ApiView
from kernelhub.core.selectors import fleet


class NodesView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(operation_id="nodes_list", tags=["fleet"], responses=NodeListSerializer)
    def get(self, request: Request) -> Response:
        """Every node, by name."""
        return Response({"results": NodeSerializer(fleet(), many=True).data})
