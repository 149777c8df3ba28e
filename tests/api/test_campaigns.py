from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from kernelhub.core.models import Campaign, Run
from tests import factories as make
from tests.api.caller import Caller, faults, problem

pytestmark = pytest.mark.django_db
Body = dict[str, Any]


def launch_body(kernels: int = 2, **fields: Any) -> Body:
    keys = [str(make.make_kernel().pk) for _ in range(kernels)]
    return {"slug": "spring", "title": "Spring", "kernels": keys, **fields}


def test_a_curator_launches_one_run_for_each_kernel_and_queue(curator: Caller) -> None:
    make.make_node(queue="sm90")
    response = curator.post("campaigns", launch_body(queues=["", "sm90"], seed=7))
    campaign = response.json()
    assert response.status_code == 201
    assert (campaign["runs"]["queued"], campaign["done"]) == (4, False)
    assert set(Run.objects.values_list("seed", flat=True)) == {7}


def test_a_submitter_launches_none(api: Caller) -> None:
    problem(api.post("campaigns", launch_body()), 403, "forbidden")
    assert Run.objects.count() == 0


def test_a_campaign_shows_how_far_it_is(curator: Caller, nobody: Caller) -> None:
    campaign = curator.post("campaigns", launch_body()).json()
    make.make_finished(Run.objects.first(), failed=("G1",))
    shown = nobody.get(f"campaigns/{campaign['id']}").json()
    assert (shown["runs"]["finished"], shown["runs"]["queued"]) == (1, 1)
    assert (shown["verdicts"]["rejected"], shown["verdicts"]["illusions"]) == (1, 1)


def test_a_slug_that_is_taken_is_a_conflict(curator: Caller) -> None:
    curator.post("campaigns", launch_body())
    problem(curator.post("campaigns", launch_body()), 409, "conflict")
    assert Campaign.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"kernels": []}, "#/kernels"),
        ({"kernels": ["x"]}, "#/kernels/0"),
        ({"kernels": [str(uuid4())]}, "#/kernels/0"),
        ({"queues": ["", "sm99"]}, "#/queues/1"),
        ({"slug": "a b"}, "#/slug"),
        ({"seed": -1}, "#/seed"),
        ({"kernel": []}, "#/kernel"),
    ],
)
def test_a_wrong_field_is_pointed_at(curator: Caller, fields: Body, pointer: str) -> None:
    document = problem(curator.post("campaigns", launch_body() | fields), 400, "invalid-request")
    assert pointer in faults(document)


def test_campaigns_come_newest_first_page_by_page(nobody: Caller) -> None:
    slugs = [make.make_campaign().slug for _ in range(3)]
    response = nobody.get("campaigns", limit=2)
    found = response.json()["results"] + nobody.get(response.json()["next"]).json()["results"]
    assert [campaign["slug"] for campaign in found] == slugs[::-1]
