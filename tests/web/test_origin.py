"""Corpus and submitted kernels never mix in one rate; each figure says which of them it counts."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from kernelhub.core import services
from kernelhub.core.models import Campaign, Run
from tests.web import samples
from verifier.records import GateId


def submit(label: str, *fails: GateId) -> Run:
    """A kernel that no corpus knows, sent by hand and judged."""
    task = samples.suite_load()[-1]
    run = services.run_enqueue(task=task, kernel=samples.kernel_of(task, label))
    return samples.run_judge(run, samples.node_online(), samples.gate_results(fails))


def html_of(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def headline_of(client: Client, path: str) -> str:
    text: str
    [text] = re.findall(r"<h1[^>]*>(.*?)</h1>", html_of(client, path), re.DOTALL)
    return text


def two_by_two_of(client: Client, path: str) -> list[str]:
    [table] = re.findall(r'<table class="two">.*?</table>', html_of(client, path), re.DOTALL)
    return re.findall(r"<td[^>]+>(\d+)<small>", table)


@pytest.mark.parametrize("path", ["/", "/suites/fuzzoracle/"])
def test_a_submitted_kernel_changes_no_figure_of_the_corpus(
    client: Client, world: Campaign, path: str
) -> None:
    before = headline_of(client, path), two_by_two_of(client, path)
    assert "corpus kernels that the loose test accepts" in before[0]
    assert "counted apart" not in html_of(client, path)
    submit("mine", GateId.RANGE)
    assert (headline_of(client, path), two_by_two_of(client, path)) == before
    html = html_of(client, path)
    assert "Submitted kernels are counted apart: 1 judged; 1 rejected, 1 of them" in html


def test_the_chart_of_gates_leaves_submitted_kernels_out(client: Client, world: Campaign) -> None:
    def figures() -> list[str]:
        table = html_of(client, "/").partition('id="gates-table"')[2].partition("</table>")[0]
        return re.findall(r'<td class="n">(\d+)</td>', table)

    before = figures()
    submit("mine", GateId.LAYOUT)
    assert figures() == before
    assert "Which gates reject corpus kernels" in html_of(client, "/")


@pytest.mark.django_db
def test_a_hub_of_submitted_kernels_alone_says_so(client: Client) -> None:
    submit("mine", GateId.RANGE)
    for path in ("/", "/suites/fuzzoracle/"):
        assert headline_of(client, path).startswith("1 of the 1 submitted kernel that"), path
        assert "counted apart" not in html_of(client, path)


def test_the_suites_table_names_kernels_of_which_nothing_is_declared(
    client: Client, world: Campaign
) -> None:
    submit("mine")
    html = html_of(client, "/suites/fuzzoracle/")
    assert "<td>submitted, no expectation declared</td>" in html
    assert "<td>nothing</td>" not in html
    assert "of the corpus, no expectation declared" not in html
    task = samples.suite_load()[0]
    samples.kernel_of(task, "silent", group="imported")
    assert "of the corpus, no expectation declared" in html_of(client, "/suites/fuzzoracle/")
