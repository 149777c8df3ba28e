"""Every answer carries a content security policy, whoever gives it."""

from __future__ import annotations

import re

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from kernelhub.core.policy import ADMIN_POLICY, POLICY
from tests import factories as make

pytestmark = pytest.mark.django_db
HEADER = "Content-Security-Policy"
OURS = ("/", "/runs/", "/login/", "/nothing-here/", "/api/v1/docs/", "/api/v1/runs", "/runs/x.csv")
ADMINS = ("/admin/login/", "/admin/", "/admin/core/run/", "/admin/accounts/apitoken/add/")


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.mark.parametrize("path", OURS)
def test_every_answer_of_ours_lets_in_scripts_of_our_own_alone(client: Client, path: str) -> None:
    response = client.get(path)
    assert response[HEADER] == POLICY
    assert "script-src 'self';" in POLICY
    assert response["Referrer-Policy"] == "same-origin"


def test_an_answer_of_the_asynchronous_server_carries_it_too(async_client: AsyncClient) -> None:
    assert async_to_sync(async_client.get)("/api/v1/nothing")[HEADER] == POLICY


@pytest.mark.parametrize("path", ADMINS)
def test_the_admin_may_compile_its_attributes_but_loads_nothing_foreign(
    root: Client, path: str
) -> None:
    policy = root.get(path)[HEADER]
    assert policy == ADMIN_POLICY
    assert "script-src 'self' 'unsafe-eval';" in policy
    assert policy.replace(" 'unsafe-eval'", "") == POLICY


@pytest.mark.parametrize("path", ADMINS)
def test_the_admin_has_no_inline_script(root: Client, path: str) -> None:
    html = root.get(path).content.decode()
    assert not re.search(r"<script(?![^>]*(src=|application/json))[^>]*>\s*\S", html)
    assert not re.search(r"<[^>]*\son(click|change|submit|load|input)=", html)


def test_the_admin_shows_a_row_without_inline_script(root: Client) -> None:
    run = make.make_finished(make.make_run())
    html = root.get(f"/admin/core/verdict/{run.verdict.pk}/change/").content.decode()
    assert "G12" in html
    assert not re.search(r"<script(?![^>]*(src=|application/json))[^>]*>\s*\S", html)
