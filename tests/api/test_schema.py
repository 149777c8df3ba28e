from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from kernelhub.api.urls import urlpatterns
from tests.api.caller import Caller

UNDOCUMENTED = {"openapi", "docs", "fallback"}


@pytest.fixture(scope="module")
def schema() -> Any:
    GENERATOR_STATS.reset()
    generator: Any = SchemaGenerator
    return generator().get_schema(request=None, public=True)


def test_the_schema_is_made_without_warnings_and_is_valid(schema: Any) -> None:
    validate: Any = validate_schema
    validate(json.loads(json.dumps(schema)))
    assert not GENERATOR_STATS


def test_every_address_of_the_api_is_documented_and_no_other(schema: Any) -> None:
    names = {pattern.name for pattern in urlpatterns} - UNDOCUMENTED
    assert len(schema["paths"]) == len(names)
    assert all(path.startswith("/api/v1/") for path in schema["paths"])


def test_every_operation_has_a_name_words_and_a_problem(schema: Any) -> None:
    operations = [one for methods in schema["paths"].values() for one in methods.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    for one in operations:
        assert one["description"], one["operationId"]
        assert "application/problem+json" in one["responses"]["default"]["content"]


def test_every_operation_has_its_summary_in_one_line_beside_its_path(schema: Any) -> None:
    words = [one["summary"] for path in schema["paths"].values() for one in path.values()]
    assert all(0 < len(one) <= 120 and "\n" not in one for one in words)
    assert schema["paths"]["/api/v1/runs"]["get"]["summary"] == "Runs, the newest first"


def test_writing_needs_a_bearer_token(schema: Any) -> None:
    assert {"bearer": []} in schema["paths"]["/api/v1/runs"]["post"]["security"]


@pytest.mark.django_db
def test_the_document_is_served_as_json(nobody: Caller) -> None:
    response = nobody.get("openapi.json")
    assert response.status_code == 200
    assert json.loads(response.content)["openapi"].startswith("3.")


@pytest.mark.django_db
def test_the_swagger_page_loads_nothing_from_elsewhere(nobody: Caller) -> None:
    page = nobody.get("docs/").content.decode()
    assert "/static/drf_spectacular_sidecar/" in page
    assert "https://" not in page
    assert finders.find("drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js")


@pytest.mark.django_db
def test_the_swagger_page_has_our_policy_and_no_inline_script(nobody: Caller) -> None:
    page = nobody.get("docs/")
    assert "script-src 'self';" in page["Content-Security-Policy"]
    assert not re.search(r"<script(?![^>]*src=)", page.content.decode())


@pytest.mark.django_db
def test_the_swagger_script_brings_the_whole_document(nobody: Caller) -> None:
    script = nobody.get("docs/?script=")
    assert script["Content-Type"] == "application/javascript"
    [line] = [one for one in script.content.decode().splitlines() if one.startswith("  spec: ")]
    document = json.loads(line.removeprefix("  spec: ").removesuffix(","))
    assert document == json.loads(nobody.get("openapi.json").content)
