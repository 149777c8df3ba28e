"""Walks every address of the project without credentials. What is public is listed here; an
address that is not listed and answers anyway fails the test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RegexPattern

from kernelhub.accounts.roles import Role, Scope
from kernelhub.accounts.services import node_token_create, token_create, user_role_set
from kernelhub.core.models import Run, Task
from tests import factories as make
from tests.api.caller import Caller
from tests.api.conftest import caller

pytestmark = pytest.mark.django_db

ALWAYS_PUBLIC: Final = frozenset({"api:openapi", "api:docs", "web:login", "admin:login"})
"""Signing in, and what describes code that everybody may read."""

PUBLIC_READING: Final = frozenset(
    {
        "api:me",
        "api:suites",
        "api:suite",
        "api:tasks",
        "api:task",
        "api:kernel",
        "api:campaigns",
        "api:nodes",
        "api:campaign",
        "api:runs",
        "api:run",
        "api:run-events",
        "api:run-verdict",
        "web:overview",
        "web:runs",
        "web:runs-csv",
        "web:runs-json",
        "web:run",
        "web:verdict",
        "web:measurements-csv",
        "web:measurements-json",
        "web:kernel",
        "web:kernel-source",
        "web:suites",
        "web:suite",
        "web:task",
        "web:verifier",
        "web:fleet",
    }
)
"""Results, which are public unless KERNELHUB_PUBLIC_READ is off."""

SIGNING: Final = frozenset({"web:login", "admin:login", "web:logout", "admin:logout"})
"""What a stranger may send to: signing in, and out of nothing."""

UNSAFE: Final = ("POST", "PUT", "PATCH", "DELETE")
REFUSED: Final = frozenset({401, 403, 404, 405})

Address = tuple[str, str]


@pytest.fixture
def addresses(task: Task, alice: User) -> list[Address]:
    """Every address as (name, path), with the ids of rows that are there."""
    run = make.make_finished(make.make_run(make.make_kernel(task), campaign=make.make_campaign()))
    samples = {"suite": "fuzzoracle", "slug": "softmax", "task": "softmax", "attempt": "1"}
    samples |= {"run_id": str(run.pk), "kernel_id": str(run.kernel_id)}
    token = token_create(user=alice, label="sample", scopes=[Scope.RUNS_READ]).token
    samples |= {"campaign_id": str(run.campaign_id), "token_id": str(token.pk)}
    return list(walk(get_resolver(), "/", "", samples | {"kernels/": str(run.kernel_id)}))


def walk(
    resolver: URLResolver, prefix: str, space: str, samples: Mapping[str, str]
) -> Iterator[Address]:
    for pattern in resolver.url_patterns:
        path = prefix + fill(pattern, prefix, samples)
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else space
            yield from walk(pattern, path, inner, samples)
        else:
            yield f"{space}{pattern.name}", path


def fill(pattern: URLPattern | URLResolver, prefix: str, samples: Mapping[str, str]) -> str:
    """The pattern's own part of the path, with a sample for each parameter."""
    route = str(pattern.pattern)
    if isinstance(pattern.pattern, RegexPattern):
        route = re.sub(r"\(\?P<\w+>([\w-]+)[^)]*\)", r"\1", route.strip("^$"))
        return re.sub(r"\(\?P<\w+>\.\*\)|\.\*", "nothing-here", route)
    if prefix + route == "/suites/<slug:slug>/":
        return route.replace("<slug:slug>", samples["suite"])
    named = {"pk": samples["kernels/" if "kernels/" in route else "run_id"], **samples}
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: named.get(found[1], "1"), route)


def answers(client: Client, addresses: list[Address], method: str) -> dict[str, int]:
    return {
        name: client.generic(method, path, b"{}", content_type="application/json").status_code
        for name, path in addresses
        if not name.startswith("admin:") or method == "GET" or "core" in name
    }


def open_names(found: Mapping[str, int]) -> set[str]:
    return {name for name, status in found.items() if 200 <= status < 300}


def test_the_walk_reaches_pages_admin_and_both_apis(addresses: list[Address]) -> None:
    spaces = {name.partition(":")[0] for name, _ in addresses}
    assert spaces >= {"admin", "api", "node", "web"}
    assert not [path for _, path in addresses if "<" in path or "(" in path]


def test_strangers_read_what_is_listed_and_nothing_else(addresses: list[Address]) -> None:
    found = open_names(answers(Client(), addresses, "GET"))
    assert found == ALWAYS_PUBLIC | PUBLIC_READING


def test_strangers_read_nothing_where_reading_is_not_public(
    addresses: list[Address], settings: Any
) -> None:
    settings.KERNELHUB_PUBLIC_READ = False
    assert open_names(answers(Client(), addresses, "GET")) == ALWAYS_PUBLIC


@pytest.mark.parametrize("method", UNSAFE)
def test_strangers_write_nowhere(addresses: list[Address], method: str) -> None:
    before = Run.objects.values().get()
    found = answers(Client(), addresses, method)
    leaks = {
        name: status
        for name, status in found.items()
        if status not in REFUSED and name not in SIGNING and not name.startswith("admin:")
    }
    # Pages send a stranger to the sign-in page instead of refusing.
    assert {name: status for name, status in leaks.items() if status != 302} == {}
    assert open_names(found) <= SIGNING
    assert Run.objects.values().get() == before


@pytest.mark.parametrize("path", ["/admin/", "/admin/core/run/", "/admin/accounts/apitoken/"])
def test_the_admin_sends_strangers_to_its_sign_in(path: str) -> None:
    response = Client().get(path)
    assert response.status_code == 302
    assert "/admin/login/" in response.headers["Location"]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SUBMITTER])
def test_the_admin_is_closed_to_people_without_a_part_in_it(alice: Any, role: Role) -> None:
    user_role_set(user=alice, role=role)
    client = Client()
    client.force_login(alice)
    assert client.get("/admin/").status_code == 302


def test_a_person_reaches_nothing_of_the_node_api(
    api: Caller, curator: Caller, addresses: list[Address]
) -> None:
    for person in (api, curator):
        for name, path in addresses:
            if name.startswith("node:"):
                assert person.post(path).status_code in REFUSED, name


def test_a_node_writes_nothing_of_the_api_of_people(addresses: list[Address]) -> None:
    node = Caller(Client(), node_token_create(node=make.make_node()).text)
    before = Run.objects.values().get()
    for name, path in addresses:
        if name.startswith("api:"):
            assert node.post(path).status_code in REFUSED, name
    assert Run.objects.values().get() == before


def test_a_view_that_names_no_scope_is_closed(rf: Any) -> None:
    from rest_framework.response import Response
    from rest_framework.views import APIView

    class Forgotten(APIView):
        def get(self, request: Any) -> Response:
            return Response({})

    assert Forgotten.as_view()(rf.get("/")).status_code == 401


def test_a_token_reads_private_results_only_with_the_scope_for_it(
    alice: User, settings: Any
) -> None:
    settings.KERNELHUB_PUBLIC_READ = False
    assert caller(alice, frozenset({Scope.RUNS_WRITE})).get("runs").status_code == 403
    assert caller(alice, frozenset({Scope.RUNS_READ})).get("runs").status_code == 200


def test_a_token_that_only_reads_does_not_write(alice: User, body: dict[str, Any]) -> None:
    reader = caller(alice, frozenset({Scope.RUNS_READ}))
    assert reader.submit(body).status_code == 403
    assert reader.get("tokens").status_code == 403
