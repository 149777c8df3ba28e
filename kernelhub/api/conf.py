"""Settings of the REST framework and its schema; kernelhub.settings.base takes them over as is."""

from __future__ import annotations

from typing import Any

SCHEMA_VERSION = "1"

REST_FRAMEWORK: dict[str, Any] = {
    # Deny by default: a view names the scope that it needs, and one that names none is closed.
    "DEFAULT_PERMISSION_CLASSES": ["kernelhub.accounts.permissions.ScopePermission"],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "kernelhub.accounts.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PARSER_CLASSES": ["kernelhub.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_THROTTLE_CLASSES": [
        "kernelhub.api.throttles.AnonymousThrottle",
        "kernelhub.api.throttles.PersonThrottle",
        "kernelhub.api.throttles.WriteThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {
        "anonymous": "300/min",
        "person": "1200/min",
        "write": "300/min",
    },
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "kernelhub.api.errors.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    # The address of the connection, never a header that the caller can write.
    "NUM_PROXIES": 0,
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "kernelhub",
    "DESCRIPTION": (
        "GPU kernels judged honestly: suites, tasks, kernels, runs and their twelve-gate verdicts."
        "\n\nReading is public unless the hub turns it off; writing needs a bearer token. "
        "Every error is an RFC 9457 problem document (application/problem+json)."
    ),
    "VERSION": SCHEMA_VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    # The node API is a private matter of hub and nodes: the schema shows v1 alone.
    "PREPROCESSING_HOOKS": ["kernelhub.api.schema.only_v1"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "kernelhub.api.schema.add_problems",
        "kernelhub.api.schema.add_summaries",
    ],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "RunStatusEnum": "kernelhub.core.choices.RunStatus",
        "GateStatusEnum": "kernelhub.core.choices.GATE_STATUS_CHOICES",
        "AuthorKindEnum": "kernelhub.core.choices.AuthorKind",
        "SubmitterKindEnum": "kernelhub.api.serializers.runs.SUBMITTER_KINDS",
    },
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    # The sidecar package serves Swagger from our own static files: no CDN.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}
