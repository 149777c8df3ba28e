from __future__ import annotations

import json
from typing import Any

import pytest

from kernelhub.api.parsers import MAX_BODY_NBYTES
from kernelhub.core.choices import TaskStatus
from kernelhub.core.models import Kernel, Run, Task
from kernelhub.core.services.kernel import SOURCE_NBYTES
from tests import factories as make
from tests.api.caller import Caller, faults, problem

pytestmark = pytest.mark.django_db
Body = dict[str, Any]


def test_a_submission_queues_a_run_and_says_where_it_is(api: Caller, body: Body) -> None:
    response = api.submit(body)
    run = response.json()
    assert response.status_code == 201
    assert response.headers["Location"] == f"/api/v1/runs/{run['id']}"
    assert (run["task"], run["status"], run["outcome"]) == ("fuzzoracle/softmax", "queued", None)
    assert run["submitted_by"] == "alice"


def test_the_source_is_kept_to_the_byte(api: Caller, body: Body) -> None:
    source = "  # ünï, 漢字 🎉\r\n\tdef run(x): return x  \n\n"
    run = api.submit(body | {"source": source}).json()
    assert api.get(f"kernels/{run['kernel']['id']}").json()["source"] == source


def test_a_syntax_error_is_accepted_because_the_verifier_judges_it(api: Caller, body: Body) -> None:
    assert api.submit(body | {"source": "def run(x:\n"}).status_code == 201


def test_seed_entry_label_and_author_are_kept(api: Caller, body: Body) -> None:
    extra = {"seed": 7, "entry": "my_kernel", "label": "v1", "author_kind": "agent"}
    run = api.submit(body | extra | {"author_name": "gpt"}).json()
    assert (run["seed"], run["kernel"]["entry"], run["kernel"]["label"]) == (7, "my_kernel", "v1")
    assert (run["kernel"]["author_kind"], run["kernel"]["author_name"]) == ("agent", "gpt")


def test_a_seed_of_the_hub_differs_from_run_to_run(api: Caller, body: Body) -> None:
    assert api.submit(body).json()["seed"] != api.submit(body).json()["seed"]


def test_the_same_source_is_one_kernel(api: Caller, body: Body) -> None:
    api.submit(body)
    api.submit(body)
    assert (Kernel.objects.count(), Run.objects.count()) == (1, 2)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("source", "", "blank"),
        ("source", " \n\t", "empty"),
        ("source", "x = 1\nprint('\0')", "line 2 holds a NUL byte"),
        ("source", "\ud800", "line 1 holds bytes that are not UTF-8"),
        ("source", None, "null"),
        ("source", 5, "string"),
        ("source", ["import torch"], "string"),
        ("task", "softmax", "suite/task"),
        ("task", "fuzzoracle/softmax/", "suite/task"),
        ("task", "fuzzoracle/soft max", "suite/task"),
        ("task", "fuzzoracle/sofmax", "Did you mean fuzzoracle/softmax?"),
        ("task", "a/b\0", "Null"),
        ("entry", "", "blank"),
        ("entry", "my-kernel", "no Python name"),
        ("entry", "run()", "no Python name"),
        ("entry", "lambda", "no Python name"),
        ("entry", "a.b", "no Python name"),
        ("entry", "e" * 121, "120"),
        ("seed", -1, "0"),
        ("seed", 2**53, str(2**53 - 1)),
        ("seed", "7", "integer"),
        ("seed", 7.0, "integer"),
        ("seed", True, "integer"),
        ("queue", "sm99", "No node serves 'sm99'"),
        ("label", "l" * 121, "120"),
        ("author_kind", "control", "not a valid choice"),
    ],
)
def test_a_wrong_field_is_pointed_at(
    api: Caller, body: Body, field: str, value: Any, words: str
) -> None:
    document = problem(api.submit(body | {field: value}), 400, "invalid-request")
    assert words in faults(document)[f"#/{field}"]
    assert Run.objects.count() == 0


def test_every_wrong_field_is_named_at_once(api: Caller, body: Body) -> None:
    document = problem(api.submit({"entry": "1", "seed": -1}), 400, "invalid-request")
    assert set(faults(document)) == {"#/task", "#/source", "#/entry", "#/seed"}


def test_an_unknown_field_is_refused_and_the_known_ones_are_listed(api: Caller, body: Body) -> None:
    document = problem(api.submit(body | {"sede": 7, "a/b": 1}), 400, "invalid-request")
    assert "seed" in faults(document)["#/sede"]
    assert "#/a~1b" in faults(document)


@pytest.mark.parametrize("value", [[], "text", 5, None, True])
def test_a_body_that_is_no_object_is_refused(api: Caller, task: Task, value: Any) -> None:
    document = problem(api.submit(json.dumps(value).encode()), 400, "invalid-request")
    assert "#" in faults(document)


def test_a_source_of_exactly_the_limit_is_taken(api: Caller, body: Body) -> None:
    assert api.submit(body | {"source": "#" * SOURCE_NBYTES}).status_code == 201


def test_a_source_over_the_limit_is_413_and_names_the_limit(api: Caller, body: Body) -> None:
    document = problem(api.submit(body | {"source": "#" * (SOURCE_NBYTES + 1)}), 413, "too-large")
    assert "1,048,576 bytes" in document["detail"]
    assert "#/source" in faults(document)


def test_the_limit_counts_bytes_and_not_characters(api: Caller, body: Body) -> None:
    problem(api.submit(body | {"source": "漢" * (SOURCE_NBYTES // 3 + 1)}), 413, "too-large")


def test_a_body_of_ten_megabytes_is_413_and_names_both_limits(api: Caller, body: Body) -> None:
    document = problem(api.submit(body | {"source": "#" * 10_000_000}), 413, "too-large")
    assert f"{MAX_BODY_NBYTES:,} bytes" in document["detail"]
    assert "1 MiB" in document["detail"]


def test_bytes_that_are_no_utf_8_are_refused_under_the_name_of_their_field(
    api: Caller, body: Body
) -> None:
    raw = json.dumps(body | {"source": "a\nX"}).encode().replace(b"X", b"\xff\xfe")
    document = problem(api.submit(raw), 400, "invalid-request")
    assert "line 2" in faults(document)["#/source"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b'{"a": NaN}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"seed": ' + b"9" * 5000,
    ],
)
def test_a_body_that_is_no_json_is_malformed(api: Caller, raw: bytes) -> None:
    problem(api.submit(raw), 400, "malformed-body" if raw else "invalid-request")


def test_a_retired_task_takes_no_runs(api: Caller, body: Body) -> None:
    Task.objects.update(status=TaskStatus.RETIRED)
    document = problem(api.submit(body), 400, "invalid-request")
    assert "retired" in faults(document)["#/task"]


def test_a_draft_task_is_not_there_yet(api: Caller, body: Body) -> None:
    Task.objects.update(status=TaskStatus.DRAFT)
    document = problem(api.submit(body), 400, "invalid-request")
    assert "no task" in faults(document)["#/task"]


def test_a_queue_that_a_node_serves_is_taken(api: Caller, body: Body) -> None:
    make.make_node(queue="sm90")
    assert api.submit(body | {"queue": "sm90"}).json()["queue"] == "sm90"


def test_a_source_that_the_task_knows_says_under_which_label(api: Caller, body: Body) -> None:
    first = api.submit(body | {"label": "mine"}).json()
    second = api.submit(body | {"label": "other"}).json()
    assert first["notice"] == ""
    assert second["kernel"]["label"] == "mine"
    assert second["notice"] == (
        "This task knows this source already, as 'mine'; the label 'other' was not kept."
    )
    assert api.submit(body | {"label": "mine"}).json()["notice"] == ""
    assert api.submit({k: v for k, v in body.items() if k != "label"}).json()["notice"] == ""


def test_a_source_known_without_a_label_is_named_by_its_hash(api: Caller, body: Body) -> None:
    first = api.submit(body | {"label": ""}).json()
    notice = api.submit(body | {"label": "late"}).json()["notice"]
    assert first["kernel"]["sha256"][:12] in notice
