"""What the OpenAPI document says beyond the serializers: bearer tokens, problems, v1 only."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension

from kernelhub.api.problems import MEDIA_TYPE

FAULT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "One thing wrong, and where: in the body, the query or a header.",
    "properties": {
        "pointer": {"type": "string", "description": "JSON pointer into the body, as a fragment"},
        "parameter": {"type": "string", "description": "name of a query parameter"},
        "header": {"type": "string", "description": "name of a header"},
        "detail": {"type": "string"},
    },
    "required": ["detail"],
}
PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "description": "RFC 9457 problem document.",
    "properties": {
        "type": {"type": "string", "format": "uri", "example": "urn:kernelhub:problem:not-found"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": {"$ref": "#/components/schemas/Fault"}},
    },
    "required": ["type", "title", "status", "detail"],
}
PROBLEM_RESPONSE: Final[dict[str, Any]] = {
    "description": "Any error.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}

Endpoint = tuple[str, str, str, Any]


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # its registry
    target_class = "kernelhub.accounts.authentication.TokenAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "kh_<prefix>_<secret>"}


def only_v1(endpoints: list[Endpoint], **_: Any) -> list[Endpoint]:
    """Leave out the node API, a private matter of the hub and its nodes."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith("/api/v1/")]


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Every operation may answer with a problem document."""
    result["components"]["schemas"] |= {"Fault": FAULT, "Problem": PROBLEM}
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = PROBLEM_RESPONSE
    return result


def add_summaries(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """The first sentence of what an operation says of itself stands beside its path."""
    for operations in result["paths"].values():
        for operation in operations.values():
            text = operation.get("description", "").split("\n\n")[0].replace("\n", " ")
            operation.setdefault("summary", text.rstrip("."))
    return result
