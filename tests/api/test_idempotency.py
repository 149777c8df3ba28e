from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from kernelhub.core.models import Event, Run
from tests import factories as make
from tests.api.caller import Caller, faults, problem

Body = dict[str, Any]


@pytest.mark.django_db
def test_the_same_key_and_body_give_the_same_run(api: Caller, body: Body) -> None:
    first, again = api.submit(body, "k1"), api.submit(body, "k1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_the_order_of_the_fields_makes_no_other_body(api: Caller, body: Body) -> None:
    first = api.submit(body, "k1").json()
    assert api.submit(dict(reversed(body.items())), "k1").json()["id"] == first["id"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change", [{"source": "def run(x): return x"}, {"seed": 7}, {"entry": "go"}, {"label": "b"}]
)
def test_the_same_key_with_any_other_body_is_refused(api: Caller, body: Body, change: Body) -> None:
    api.submit(body, "k1")
    document = problem(api.submit(body | change, "k1"), 422, "idempotency-key-reused")
    assert "another body" in faults(document)["Idempotency-Key"]
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_a_key_belongs_to_one_user(api: Caller, bob: Caller, body: Body) -> None:
    assert api.submit(body, "k1").json()["id"] != bob.submit(body, "k1").json()["id"]


@pytest.mark.django_db
def test_a_wrong_body_does_not_use_up_its_key(api: Caller, body: Body) -> None:
    assert api.submit(body | {"entry": "1"}, "k1").status_code == 400
    assert api.submit(body, "k1").status_code == 201


@pytest.mark.django_db
def test_a_repeated_request_shows_how_far_the_run_is(api: Caller, body: Body) -> None:
    run_id = api.submit(body, "k1").json()["id"]
    make.make_finished(Run.objects.get(pk=run_id))
    assert api.submit(body, "k1").json()["outcome"] == "accepted"


@pytest.mark.django_db
@pytest.mark.parametrize("key", [" ", "a b", "é", "k" * 201])
def test_a_key_that_is_no_key_is_pointed_at(api: Caller, body: Body, key: str) -> None:
    document = problem(api.submit(body, key), 400, "invalid-request")
    assert "Idempotency-Key" in faults(document)


@pytest.mark.django_db(transaction=True)
def test_requests_that_race_with_one_key_make_one_run(api: Caller, body: Body) -> None:
    answers = race(api, [body] * 4)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert Run.objects.count() == Event.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_different_bodies_that_race_with_one_key_one_wins(api: Caller, body: Body) -> None:
    answers = race(api, [body | {"seed": seed} for seed in range(4)])
    assert sorted(answer.status_code for answer in answers) == [201, 422, 422, 422]
    assert Run.objects.count() == 1


def race(api: Caller, bodies: list[Body]) -> list[Any]:
    """The bodies, all with one key, submitted at the same moment."""
    barrier = threading.Barrier(len(bodies))

    def submit(body: Body) -> Any:
        barrier.wait(timeout=10)
        try:
            return api.submit(body, "race")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(submit, bodies))
