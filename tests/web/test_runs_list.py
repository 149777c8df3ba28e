"""The list of runs: filters in the URL, keyset pages, exports of the same filter."""

from __future__ import annotations

import csv
import re
from typing import Any

import pytest
from django.test import Client

from kernelhub.core import services
from kernelhub.core.models import Campaign, Run
from kernelhub.core.selectors import runs as core_runs
from tests.web import samples
from tests.web.test_pages import h1_of


def labels(html: str) -> list[str]:
    return re.findall(r'<a data-row href="/runs/[^"]+">([^<]+)</a>', html)


def listed(client: Client, query: str = "") -> list[str]:
    response = client.get(f"/runs/{query}")
    assert response.status_code == 200
    return labels(response.content.decode())


def test_all_runs_are_listed_with_a_sentence_about_them(client: Client, world: Campaign) -> None:
    html = client.get("/runs/").content.decode()
    assert len(labels(html)) == 20
    assert h1_of(html) == "20 runs: 4 accepted, 12 rejected, of them 7 illusions, 1 undecided."


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("?outcome=rejected", 12),
        ("?illusion=yes", 7),
        ("?gate=G10", 3),
        ("?status=errored", 1),
        ("?q=softmax", 4),
        ("?q=softmax+tail", 1),
        ("?suite=fuzzoracle&outcome=accepted", 4),
        ("?suite=other", 0),
        ("?node=node-a&gate=G9&illusion=yes", 4),
        ("?author=control", 20),
        ("?task=fuzzoracle/gelu", 4),
    ],
)
def test_each_filter_narrows_the_list(
    client: Client, world: Campaign, query: str, number: int
) -> None:
    assert len(listed(client, query)) == number


def test_a_campaign_is_a_filter(client: Client, world: Campaign) -> None:
    assert len(listed(client, f"?campaign={world.pk}")) == 20


@pytest.mark.parametrize(
    "query",
    ["?outcome=nice", "?order=best", "?gate=G13", "?campaign=x", "?illusion=maybe", "?status=%00"],
)
def test_a_filter_that_means_nothing_is_said(client: Client, world: Campaign, query: str) -> None:
    response = client.get(f"/runs/{query}")
    assert response.status_code == 200
    if query != "?status=%00":
        assert "mean nothing here" in response.content.decode()
        assert labels(response.content.decode()) == []


def test_a_filter_without_a_match_offers_a_way_back(client: Client, world: Campaign) -> None:
    html = client.get("/runs/?q=nothing-like-it").content.decode()
    assert "No run matches this filter." in html
    assert 'href="/runs/"' in html


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_runs.run_list, "__defaults__", (None, "", 6))


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("order", ["", "newest", "oldest"])
def test_pages_follow_one_another_and_miss_nothing(
    client: Client, world: Campaign, order: str
) -> None:
    seen: list[str] = []
    query: str | None = f"?order={order}"
    while query:
        html = client.get(f"/runs/{query}").content.decode()
        seen += labels(html)
        found = re.search(r'rel="next" href="(\?[^"]+)"', html)
        query = found[1].replace("&amp;", "&") if found else None
    assert seen == wanted_labels(order)


def wanted_labels(order: str) -> list[str]:
    """The order that the URL asks for, sorted here and not by the database."""
    runs = list(Run.objects.select_related("kernel").order_by("created_at", "id"))
    if order != "oldest":
        runs.reverse()
    if not order:
        runs.sort(key=lambda run: run.finished_at or run.created_at, reverse=True)
        runs.sort(key=lambda run: ("running", "finished", "queued").index(standing(run)))
    return [run.kernel.label for run in runs]


def standing(run: Run) -> str:
    return "finished" if run.finished_at else run.status


def test_what_runs_comes_first_then_what_just_ended_then_what_waits(
    client: Client, world: Campaign
) -> None:
    node, task = samples.node_online("node-b"), samples.suite_load()[-1]
    running, ended = (
        services.run_enqueue(task=task, kernel=samples.kernel_of(task, label))
        for label in ("runs_now", "just_ended")
    )
    samples.run_judge(ended, node, samples.gate_results())
    samples.run_lease(running, node)
    shown = listed(client)
    waiting = Run.objects.get(status="queued").kernel.label
    assert (shown[0], shown[1], shown[-1]) == ("runs_now", "just_ended", waiting)


def test_the_head_of_the_times_turns_to_age_and_the_filter_turns_back(
    client: Client, world: Campaign
) -> None:
    html = client.get("/runs/?gate=G10").content.decode()
    assert '<a href="?gate=G10&amp;order=newest"' in html
    by_age = client.get("/runs/?gate=G10&order=newest").content.decode()
    assert '<a href="?gate=G10&amp;order=oldest"' in by_age
    assert '<option value="">latest activity</option>' in by_age
    assert '<option value="newest" selected>' in by_age


def test_the_first_page_of_activity_alone_may_change_its_rows(
    client: Client, world: Campaign
) -> None:
    """Later pages and lists by age keep their rows, which are followed one by one."""
    assert '<div id="runs-list" data-swap data-steady>' in client.get("/runs/").content.decode()
    by_age = client.get("/runs/?order=newest").content.decode()
    assert '<div id="runs-list">' in by_age
    assert by_age.count('" data-swap><td') == 20


@pytest.mark.usefixtures("small_pages")
def test_the_next_page_keeps_the_filter(client: Client, world: Campaign) -> None:
    html = client.get("/runs/?outcome=rejected").content.decode()
    found = re.search(r'rel="next" href="(\?[^"]+)"', html)
    assert found is not None
    assert "outcome=rejected" in found[1]


def test_a_made_up_cursor_shows_the_first_page_and_says_so(client: Client, world: Campaign) -> None:
    html = client.get("/runs/?cursor=AAAA").content.decode()
    assert "That page does not exist" in html
    assert len(labels(html)) == 20


def exported(client: Client, query: str) -> list[dict[str, Any]]:
    text = client.get(f"/runs/export.csv{query}").content.decode()
    return list(csv.DictReader(text.splitlines()))


def test_the_csv_holds_the_same_runs_as_the_filter(client: Client, world: Campaign) -> None:
    rows = exported(client, "?gate=G10")
    assert sorted(row["kernel"] for row in rows) == sorted(listed(client, "?gate=G10"))
    assert {row["G10"] for row in rows} == {"FAIL"}
    assert {row["loose_accepted"] for row in rows} == {"True"}


def test_the_json_says_the_same_with_types(client: Client, world: Campaign) -> None:
    document = client.get("/runs/export.json?status=errored").json()
    assert document["complete"] is True
    (row,) = document["runs"]
    assert (row["status"], row["outcome"], row["illusion"]) == ("errored", None, None)


def test_an_export_of_a_meaningless_filter_is_empty_and_not_everything(
    client: Client, world: Campaign
) -> None:
    assert exported(client, "?outcome=nice") == []


def test_a_label_that_looks_like_a_formula_is_quoted(client: Client, world: Campaign) -> None:
    task = samples.suite_load()[0]
    kernel = samples.kernel_of(task, "=HYPERLINK(1)")
    services.run_enqueue(task=task, kernel=kernel)
    assert exported(client, "?q=HYPERLINK")[0]["kernel"] == "'=HYPERLINK(1)"
