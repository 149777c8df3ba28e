"""The admin bears the name and the colours of the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from kernelhub.settings.admin_theme import ACCENT, ACCENT_DARK, ACCENT_LIGHT, GREYS

REPO = Path(__file__).parents[2]


def token_of(name: str) -> tuple[str, ...]:
    """A token's light and its dark value in the site's stylesheet."""
    css = (REPO / "static/css/app.css").read_text(encoding="utf-8")
    found = re.search(rf"--{name}: light-dark\((#\w+), (#\w+)\)", css)
    assert found is not None
    return found.groups()


def test_its_accent_and_its_backgrounds_are_the_sites() -> None:
    assert token_of("accent") == (ACCENT_LIGHT, ACCENT_DARK)
    assert (ACCENT["600"], ACCENT["400"]) == (ACCENT_LIGHT, ACCENT_DARK)
    assert token_of("bg") == (GREYS["50"], GREYS["950"])
    assert token_of("line") == (GREYS["200"], GREYS["700"])


@pytest.mark.django_db
def test_no_page_of_it_is_called_django(client: Client) -> None:
    pages = [client.get("/admin/login/").content.decode()]
    client.force_login(User.objects.create_superuser("admin", password="secret"))
    pages += [client.get(path).content.decode() for path in ("/admin/", "/admin/core/run/")]
    for html in pages:
        title = re.search(r"<title>(.*?)</title>", html, re.DOTALL)
        assert title is not None
        assert "kernelhub" in title[1]
        assert not re.search(r"django (site )?admin", html, re.IGNORECASE)
        assert "rgb(36, 86, 200)" in html
        assert "/static/img/favicon.svg" in html
