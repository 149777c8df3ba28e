"""A node tells the hub how its device is, and everybody can read it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from kernelhub.accounts.services import node_token_create
from kernelhub.core import services
from kernelhub.core.models import Node
from tests import factories as make
from tests.api.caller import Caller, problem
from tests.web.test_pages import text_of
from verifier.records import HealthCheck, HealthReport, HealthState, to_json

pytestmark = pytest.mark.django_db

WHY = "the device is sick: XID 79: fell off the bus"
SICK = to_json(HealthReport("start", (HealthCheck("xid", HealthState.SICK, "XID 79"),)))


@pytest.fixture
def node() -> Node:
    return make.make_node("alpha")


@pytest.fixture
def alpha(node: Node) -> Caller:
    return Caller(Client(), node_token_create(node=node).text)


def notice(who: Caller, **message: Any) -> Any:
    return who.post("/api/node/v1/health/", message)


def test_a_node_leaves_service_and_is_leased_nothing(alpha: Caller) -> None:
    make.make_run()
    answer = notice(alpha, well=False, reason=WHY, report=SICK).json()
    assert answer == {"in_service": False, "retest": False, "held": False}
    assert alpha.post("/api/node/v1/lease/", {"run": None}).status_code == 204


def test_a_healthy_node_returns_and_is_leased_the_run(alpha: Caller) -> None:
    make.make_run()
    notice(alpha, well=False, reason=WHY)
    assert notice(alpha, well=True).json()["in_service"]
    assert alpha.post("/api/node/v1/lease/", {"run": None}).status_code == 200


def test_a_node_hears_that_an_operator_wants_it_examined(alpha: Caller, node: Node) -> None:
    notice(alpha, well=False, reason=WHY)
    services.node_retest(node=node)
    assert notice(alpha, well=False, reason=WHY).json()["retest"]


def test_a_node_hears_that_it_is_held(alpha: Caller) -> None:
    for _ in range(3):
        notice(alpha, well=False, reason=WHY)
        answer = notice(alpha, well=True).json()
    assert answer == {"in_service": False, "retest": False, "held": True}


@pytest.mark.parametrize(
    "message",
    [
        {"well": False},
        {"well": True, "reason": "but why"},
        {"well": False, "reason": "x", "report": {"cause": "start"}},
        {"well": False, "reason": "x", "report": {"cause": "start", "checks": [{"name": "a"}]}},
    ],
)
def test_a_notice_that_says_nothing_is_refused(alpha: Caller, message: dict[str, Any]) -> None:
    problem(notice(alpha, **message), 400, "invalid-request")


def test_a_person_cannot_speak_for_a_node(alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    response = browser.post("/api/node/v1/health/", {"well": True}, content_type="application/json")
    assert response.status_code in (401, 403)


def test_the_api_says_which_node_is_out_of_service_and_why(alpha: Caller, nobody: Caller) -> None:
    notice(alpha, well=False, reason=WHY, report=SICK)
    make.make_node("beta")
    shown = {node["name"]: node for node in nobody.get("nodes").json()["results"]}
    assert (shown["alpha"]["status"], shown["alpha"]["out_of_service"]) == ("sick", WHY)
    assert shown["alpha"]["health"]["checks"][0]["detail"] == "XID 79"
    assert (shown["beta"]["status"], shown["beta"]["out_of_service"]) == ("online", "")


def test_the_fleet_page_says_which_node_is_out_of_service_and_why(
    alpha: Caller, client: Client
) -> None:
    notice(alpha, well=False, reason=WHY, report=SICK)
    page = text_of(client, "/fleet/")
    assert "out of service" in page
    assert WHY in page
    assert "It returns when an examination finds its device healthy" in page


def test_the_fleet_page_says_when_an_operator_is_waited_for(alpha: Caller, client: Client) -> None:
    for _ in range(3):
        notice(alpha, well=False, reason=WHY)
        notice(alpha, well=True)
    assert "3 times within an hour and waits for an operator" in text_of(client, "/fleet/")
