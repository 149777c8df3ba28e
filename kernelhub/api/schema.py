"""What the OpenAPI document says beyond the serializers: bearer tokens, problems, v1 only."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

from kernelhub.api.problems import MEDIA_TYPE


class FaultSerializer(serializers.Serializer[Any]):
    """One thing wrong and where: in the body, the query or a header."""

    pointer = serializers.CharField(required=False, help_text="JSON pointer into the body")
    parameter = serializers.CharField(required=False, help_text="name of a query parameter")
    header = serializers.CharField(required=False, help_text="name of a header")
    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """RFC 9457."""

    type = serializers.CharField(help_text="urn:kernelhub:problem:<slug>")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = FaultSerializer(many=True, required=False)


class ProblemSchema(AutoSchema):  # type: ignore[misc]  # drf-spectacular ships no types
    """Every operation may answer with a problem document."""

    def _get_response_bodies(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        responses: dict[str, Any] = super()._get_response_bodies(*args, **kwargs)
        responses["default"] = self._get_response_for_code(
            ProblemSerializer, "default", media_types=[MEDIA_TYPE]
        )
        return responses


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]  # as above
    target_class = "kernelhub.accounts.authentication.TokenAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "kh_<prefix>_<secret>"}


Endpoint = tuple[str, str, str, Any]


def only_v1(endpoints: list[Endpoint], **_: Any) -> list[Endpoint]:
    """Leave out the node API, a private matter of the hub and its nodes."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith("/api/v1/")]
