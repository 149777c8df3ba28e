"""Every page: it answers, says its finding first, stays inside, and costs a constant number of
queries."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from kernelhub.core import events, services
from kernelhub.core.choices import ErrorKind
from kernelhub.core.models import Campaign, Kernel, Run, Task
from kernelhub.web.views.suites import VariableRow, variables
from tests.web import samples
from verifier.records import GateId, GateStatus

PATHS = (
    "/",
    "/runs/",
    "/suites/",
    "/suites/fuzzoracle/",
    "/tasks/fuzzoracle/softmax/",
    "/verifier/",
    "/fleet/",
    "/login/",
)


def text_of(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, path
    return response.content.decode()


def h1_of(html: str) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", html, re.DOTALL)
    assert found is not None
    return re.sub(r"<[^>]+>", "", found[1]).strip()


def every_path(run: Run) -> list[str]:
    return [*PATHS, f"/runs/{run.pk}/", f"/kernels/{run.kernel_id}/"]


def test_every_page_answers_and_opens_with_a_sentence(client: Client, illusion: Run) -> None:
    for path in every_path(illusion):
        assert len(h1_of(text_of(client, path)).split()) >= 3, path


@pytest.mark.django_db
def test_every_list_page_answers_on_an_empty_hub_and_teaches_the_next_step(client: Client) -> None:
    assert ".venv/bin/kernelhub submit kernel.py" in text_of(client, "/")
    assert ".venv/bin/kernelhub submit kernel.py" in text_of(client, "/runs/")
    assert "load_suites" in text_of(client, "/suites/")
    assert "No node has reported in" in text_of(client, "/fleet/")
    assert h1_of(text_of(client, "/verifier/")).startswith("Twelve gates")


def test_no_page_has_inline_script_or_style_and_each_has_a_policy(
    client: Client, illusion: Run
) -> None:
    for path in every_path(illusion):
        response = client.get(path)
        html = response.content.decode()
        assert "script-src 'self';" in response["Content-Security-Policy"], path
        assert not re.search(r"<script(?![^>]*(src=|application/json))", html), path
        assert not re.search(r"\son\w+\s*=", html), path
        assert " style=" not in html, path


def test_no_page_points_to_another_host(client: Client, illusion: Run) -> None:
    for path in every_path(illusion):
        assert not re.findall(r'(?:src|href|action)="(?:https?:)?//[^"]*', text_of(client, path))


STATIC = Path(__file__).parents[2] / "static/js"


@pytest.mark.django_db
def test_the_help_names_the_keys_that_do_something_and_no_other(client: Client) -> None:
    """A key is promised once there is a page that it works on."""
    rows = re.findall(r"<tr>.*?</tr>", text_of(client, "/").partition('<dialog id="help"')[2])
    named = {key for row in rows for key in re.findall(r"<kbd>(.*?)</kbd>", row)}
    script = (STATIC / "keys.js").read_text(encoding="utf-8")
    actions, pages = (
        set(re.findall(r'(?:^|[\s{])"?([^\s":]+)"?: ', found[1]))
        for found in (re.search(rf"{name} = {{(.*)}}", script) for name in ("ACTIONS", "PAGES"))
        if found
    )
    assert actions == {"/", "?", "j", "k"}
    assert named == actions | pages | {"g", "Enter", "Ctrl", "⌘", "K"}


def test_every_table_scrolls_within_itself(client: Client, illusion: Run) -> None:
    """The table of keys aside, which is a dialog's; source has a box of its own."""
    for path in every_path(illusion):
        html = text_of(client, path).partition('<dialog id="help"')[0]
        for table in re.finditer(r"<table (?!class=\"sourcetable)|<table>", html):
            assert html[: table.start()].rstrip().endswith('<div class="wide-table">'), path


def test_ids_are_unique_and_labels_meet_their_fields(client: Client, illusion: Run) -> None:
    for path in every_path(illusion):
        html = text_of(client, path)
        ids = re.findall(r'\sid="([^"]+)"', html)
        assert len(ids) == len(set(ids)), path
        assert set(re.findall(r'<label[^>]* for="([^"]+)"', html)) <= set(ids), path
        anchors = re.findall(r'href="#([^"]+)"', html)
        assert set(anchors) <= set(ids), path


@pytest.mark.parametrize(
    "path", ["/", "/runs/", "/suites/fuzzoracle/", "/tasks/fuzzoracle/softmax/"]
)
def test_queries_do_not_grow_with_rows(client: Client, world: Campaign, path: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            text_of(client, path)
        return len(caught)

    before = queries()
    _more_runs()
    assert queries() == before
    assert before <= 20


def _more_runs() -> None:
    node, task = samples.node_online("node-b"), samples.suite_load()[-1]
    for number in range(6):
        run = services.run_enqueue(task=task, kernel=samples.kernel_of(task, f"more_{number}"))
        samples.run_judge(run, node, samples.gate_results((GateId.RANGE,)))


def test_queries_of_a_run_page_do_not_grow_with_its_events(client: Client, world: Campaign) -> None:
    node, task = samples.node_online("node-b"), samples.suite_load()[-1]
    run = services.run_enqueue(task=task, kernel=samples.kernel_of(task, "long"))
    leased = samples.run_lease(run, node)
    with CaptureQueriesContext(connection) as few:
        text_of(client, f"/runs/{run.pk}/")
    samples.run_post(leased, *[events.Log("kernel", f"line {n}") for n in range(300)])
    with CaptureQueriesContext(connection) as many:
        html = text_of(client, f"/runs/{run.pk}/")
    assert len(many) == len(few) <= 12
    assert "line 299" in html
    assert "line 0\n" not in html


HOSTILE = "<script>alert(1)</script>\x1b[31m{{ 7|add:7 }}'\"><img src=x onerror=alert(1)>\u202e"


def test_hostile_text_is_escaped_on_every_page(client: Client, world: Campaign) -> None:
    node, task = samples.node_online("node-b"), samples.suite_load()[-1]
    kernel = services.kernel_register(
        task=task,
        source=f'"""{HOSTILE}"""\n',
        label=HOSTILE[:100],
        author_name=HOSTILE[:100],
        notes=HOSTILE,
        claimed={"speedup": HOSTILE},
    )
    run = services.run_enqueue(task=task, kernel=kernel)
    leased = samples.run_lease(run, node)
    failed = samples.gate_result(GateId.RANGE, GateStatus.FAIL)
    hostile = replace(
        failed,
        reason=HOSTILE,
        summary=HOSTILE,
        counterexample=replace(
            samples.counterexample(GateId.RANGE, 7), detail=HOSTILE, expected=HOSTILE, got=HOSTILE
        ),
    )
    gates = tuple(hostile if gate.gate is GateId.RANGE else gate for gate in samples.gate_results())
    samples.run_post(leased, events.Log("kernel", HOSTILE), events.Gate(hostile))
    verdict = samples.verdict_of(leased, gates)
    for path in (
        f"/runs/{run.pk}/",
        f"/kernels/{kernel.pk}/",
        "/runs/",
        "/",
        "/suites/fuzzoracle/",
    ):
        _assert_tame(text_of(client, path), path)
    services.run_finish(run_id=run.pk, attempt=leased.attempt, verdict=verdict)
    for path in (
        f"/runs/{run.pk}/",
        f"/kernels/{kernel.pk}/",
        "/runs/",
        "/",
        "/suites/fuzzoracle/",
    ):
        _assert_tame(text_of(client, path), path)
    _assert_tame(text_of(client, f"/runs/?q={HOSTILE[:60]}&node={HOSTILE[:60]}"), "/runs/?q=")


def _assert_tame(html: str, path: str) -> None:
    assert "<script>alert" not in html, path
    assert "<img src=x" not in html, path
    assert "\x1b" not in html, path
    assert "\u202e" not in html, path
    assert "14'" not in html, path


def test_an_error_message_of_a_node_is_escaped(client: Client, world: Campaign) -> None:
    node, task = samples.node_online("node-b"), samples.suite_load()[-1]
    run = services.run_enqueue(task=task, kernel=samples.kernel_of(task, "broken"), max_attempts=1)
    leased = samples.run_lease(run, node)
    services.run_error(run_id=run.pk, attempt=leased.attempt, kind=ErrorKind.TASK, message=HOSTILE)
    html = text_of(client, f"/runs/{run.pk}/")
    _assert_tame(html, "errored run")
    assert "our machinery broke" in html.lower()


def test_a_kernel_that_claims_to_be_a_page_is_downloaded_as_text(
    client: Client, illusion: Run
) -> None:
    response = client.get(f"/kernels/{illusion.kernel_id}/source/")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["Content-Disposition"].startswith("attachment;")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response.content.decode() == Kernel.objects.get(pk=illusion.kernel_id).source


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "/runs/00000000-0000-0000-0000-000000000000/",
        "/kernels/00000000-0000-0000-0000-000000000000/",
        "/suites/none/",
        "/tasks/none/none/",
        "/runs/00000000-0000-0000-0000-000000000000/verdict.json",
    ],
)
@pytest.mark.django_db
def test_what_is_not_there_is_said_with_a_way_on(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 404
    assert "There is nothing at this address" in response.content.decode()


@pytest.mark.django_db
def test_a_broken_page_says_whose_fault_it_is(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("the database is gone")

    monkeypatch.setattr("kernelhub.web.views.fleet.fleet", broken)
    client.raise_request_exception = False
    response = client.get("/fleet/")
    assert response.status_code == 500
    html = response.content.decode()
    assert "that is our fault" in html
    assert "database is gone" not in html


def test_where_reading_is_not_public_strangers_are_sent_to_sign_in(
    client: Client, illusion: Run, settings: Settings, curator: User
) -> None:
    settings.KERNELHUB_PUBLIC_READ = False
    paths = [path for path in every_path(illusion) if path != "/login/"]
    paths += ["/runs/export.csv", "/runs/export.json", f"/runs/{illusion.pk}/verdict.json"]
    for path in paths:
        response = client.get(path)
        assert response.status_code == 302, path
        assert response["Location"].startswith("/login/?next="), path
    client.force_login(curator)
    assert client.get("/").status_code == 200


def test_where_reading_is_not_public_an_account_without_a_role_is_told_so(
    client: Client, world: Campaign, settings: Settings
) -> None:
    settings.KERNELHUB_PUBLIC_READ = False
    client.force_login(User.objects.create_user("nobody"))
    response = client.get("/")
    assert response.status_code == 403
    assert "You have no role yet." in response.content.decode()


@pytest.mark.django_db
def test_signing_in_leads_back_to_where_one_was(client: Client, curator: User) -> None:
    data = {"username": "curator", "password": "secret", "next": "/fleet/"}
    response = client.post("/login/", data)
    assert (response.status_code, response["Location"]) == (302, "/fleet/")


@pytest.mark.django_db
def test_signing_in_never_leads_to_another_host(client: Client, curator: User) -> None:
    data = {"username": "curator", "password": "secret", "next": "https://evil.example/"}
    assert client.post("/login/", data)["Location"] == "/"


@pytest.mark.django_db
def test_a_wrong_password_is_said_without_saying_which_half(client: Client, curator: User) -> None:
    html = client.post("/login/", {"username": "curator", "password": "x"}).content.decode()
    assert 'role="alert"' in html


@pytest.mark.parametrize(("cookie", "attribute"), [("dark", ' data-theme="dark"'), ("'><b>", "")])
@pytest.mark.django_db
def test_the_theme_comes_from_a_cookie_and_from_nothing_else(
    client: Client, cookie: str, attribute: str
) -> None:
    client.cookies["theme"] = cookie
    assert f'<html lang="en"{attribute}>' in text_of(client, "/login/")


def test_a_task_says_what_its_names_stand_for_and_how_to_submit(
    client: Client, illusion: Run
) -> None:
    html = text_of(client, illusion.task.get_absolute_url())
    assert (
        '<td class="mono">T</td><td class="mono"></td><td class="mono">float32, float16</td>'
        in html
    )
    assert f".venv/bin/kernelhub submit kernel.py --task {illusion.task.path} --wait" in html


def test_the_usual_size_and_dtype_of_a_task_stand_beside_the_others() -> None:
    contract = {
        "dims": {"H": {"candidates": [1, 256], "usual": 256}, "K": 3},
        "dtypes": {"T": {"candidates": ["float32", "float16"], "usual": "float32"}},
    }
    assert variables(contract) == [
        VariableRow("H", "256", "1, 256"),
        VariableRow("K", "", ""),
        VariableRow("T", "float32", "float32, float16"),
    ]
    assert variables({"dims": "?", "dtypes": None}) == []


def test_a_kernel_that_is_an_illusion_twice_is_listed_once(client: Client, illusion: Run) -> None:
    again = services.run_enqueue(task=illusion.task, kernel=illusion.kernel)
    gates = samples.gate_results(samples.FAULTS["no_max"])
    samples.run_judge(again, samples.node_online("node-b"), gates, loose=True)
    (cases,) = re.findall(r'<ul class="cases">(.*?)</ul>', text_of(client, "/"), re.DOTALL)
    assert cases.count(f">{illusion.kernel}</a>") == 1
    assert again.get_absolute_url() in cases


def test_a_kernel_that_is_no_illusion_any_more_is_not_listed_as_one(
    client: Client, illusion: Run
) -> None:
    again = services.run_enqueue(task=illusion.task, kernel=illusion.kernel)
    samples.run_judge(again, samples.node_online("node-b"), samples.gate_results(()), loose=True)
    (cases,) = re.findall(r'<ul class="cases">(.*?)</ul>', text_of(client, "/"), re.DOTALL)
    assert f">{illusion.kernel}</a>" not in cases


def test_the_sign_in_page_does_not_promise_a_form_for_kernels(client: Client, db: None) -> None:
    html = text_of(client, "/login/")
    assert "Sign in to cancel runs" in html
    assert "from the command line" in html


def test_tasks_of_one_title_are_told_apart_by_their_names(client: Client, world: Campaign) -> None:
    Task.objects.filter(slug__in=("softmax", "gelu")).update(title="ELU")
    html = client.get("/suites/fuzzoracle/").content.decode()
    assert html.count(">ELU</a>") == 2
    for slug in ("softmax", "gelu"):
        assert f'>ELU</a> <span class="hint"><span class="mono">{slug}</span>' in html


def test_the_verifier_page_replays_a_kernel_that_fails(client: Client, db: None) -> None:
    html = client.get("/verifier/").content.decode()
    kernel = re.search(r"--kernel (\S+\.py) --json verdict\.json", html)
    assert kernel is not None
    assert (Path(__file__).parents[2] / kernel[1]).is_file()
    assert "-m verifier replay verdict.json" in html
