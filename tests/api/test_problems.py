"""Every kind of error is a problem document, also where no view of ours is reached."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client
from rest_framework.exceptions import ErrorDetail

from kernelhub.api import conf
from kernelhub.api.problems import Fault, Kind, body_faults
from kernelhub.api.throttles import AnonymousThrottle, WriteThrottle
from tests.api.caller import Caller, problem

pytestmark = pytest.mark.django_db
Body = dict[str, Any]


@pytest.mark.parametrize("path", ["nothing", "runs/5", "runs/x/y", "", "tokens/5/rotate", "\u202e"])
def test_an_unknown_address_is_not_found(nobody: Caller, path: str) -> None:
    problem(nobody.get(path), 404, "not-found")
    problem(nobody.post(path, {}), 404, "not-found")


def test_an_address_with_a_slash_too_many_works(api: Caller, body: Body) -> None:
    response = api.post("runs/", body)
    assert response.status_code == 201
    assert api.get(f"runs/{response.json()['id']}/events/").status_code == 200


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "runs"), ("DELETE", "suites"), ("POST", "me"), ("PATCH", "tokens")]
)
def test_a_wrong_method_is_not_allowed_to_anybody(nobody: Caller, method: str, path: str) -> None:
    response = nobody.send(method, path)
    problem(response, 405, "method-not-allowed")
    assert "GET" in response.headers["Allow"]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_a_body_that_is_not_json_is_unsupported(api: Caller, kind: str) -> None:
    problem(api.send("POST", "runs", data=b"x", content_type=kind), 415, "unsupported-media-type")


def test_an_answer_that_is_not_json_is_not_acceptable(nobody: Caller) -> None:
    response = nobody.client.get("/api/v1/suites", headers={"Accept": "text/csv"})
    problem(response, 406, "not-acceptable")


def test_writing_without_credentials_is_unauthenticated(nobody: Caller, body: Body) -> None:
    response = nobody.submit(body)
    problem(response, 401, "unauthenticated")
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("token", ["nonsense", f"kh_{'0' * 12}_{'x' * 43}"])
def test_a_bad_token_is_refused_even_where_reading_is_public(token: str) -> None:
    problem(Caller(Client(), token).get("suites"), 401, "unauthenticated")


def test_a_session_needs_a_csrf_token_to_write(alice: Any, body: Body) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    document = problem(Caller(client).submit(body), 403, "forbidden")
    assert "CSRF" in document["detail"]


def test_a_session_can_write(alice: Any, body: Body) -> None:
    client = Client()
    client.force_login(alice)
    assert Caller(client).submit(body).status_code == 201


def test_a_bug_of_ours_is_an_internal_error_without_details(
    nobody: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("kernelhub.api.views.catalogue._suites", broken)
    nobody.client.raise_request_exception = False
    document = problem(nobody.get("suites"), 500, "internal-error")
    assert "secret" not in json.dumps(document)


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_database_that_does_not_answer_is_no_bug_and_worth_another_try(
    nobody: Caller, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def away(*_: Any) -> None:
        raise error("connection refused at a secret address")

    monkeypatch.setattr("kernelhub.api.views.catalogue._suites", away)
    response = nobody.get("suites")
    document = problem(response, 503, "unavailable")
    assert int(response.headers["Retry-After"]) > 0
    assert "secret" not in json.dumps(document)


def test_a_bug_of_ours_still_reaches_whoever_watches_for_exceptions(
    nobody: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("seen")

    monkeypatch.setattr("kernelhub.api.views.catalogue._suites", broken)
    with pytest.raises(RuntimeError, match="seen"):
        nobody.get("suites")


def test_too_many_reads_are_throttled(nobody: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AnonymousThrottle, "THROTTLE_RATES", {"anonymous": "2/min"})
    assert [nobody.get("suites").status_code for _ in range(2)] == [200, 200]
    response = nobody.get("suites")
    problem(response, 429, "throttled")
    assert 0 < int(response.headers["Retry-After"]) <= 60


def test_too_many_writes_are_throttled_over_all_tokens(
    api: Caller, body: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WriteThrottle, "THROTTLE_RATES", {"write": "2/min"})
    other = api.post("tokens", {"label": "x"}).json()["token"]
    assert api.submit(body).status_code == 201
    problem(Caller(Client(), other).submit(body), 429, "throttled")
    assert api.get("runs").status_code == 200


def test_a_forged_address_gets_no_fresh_throttle(
    nobody: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnonymousThrottle, "THROTTLE_RATES", {"anonymous": "1/min"})
    codes = [
        nobody.client.get("/api/v1/suites", headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code
        for n in range(2)
    ]
    assert codes == [200, 429]


def test_every_throttle_has_a_rate() -> None:
    assert set(conf.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]) == {"anonymous", "person", "write"}


def test_every_kind_of_problem_has_its_own_slug() -> None:
    assert len({kind.slug for kind in Kind}) == len(Kind)


def test_nested_errors_become_json_pointers() -> None:
    detail = {
        "a/b~c": [ErrorDetail("one")],
        "list": {0: [ErrorDetail("two")]},
        "rows": [{}, {"x": [ErrorDetail("three")]}],
        "non_field_errors": [ErrorDetail("four")],
    }
    assert list(body_faults(detail)) == [
        Fault("one", pointer="#/a~1b~0c"),
        Fault("two", pointer="#/list/0"),
        Fault("three", pointer="#/rows/1/x"),
        Fault("four", pointer="#"),
    ]
