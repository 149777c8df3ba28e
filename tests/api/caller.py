"""Calls API v1 as somebody, and looks at problem documents."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.test import Client

from kernelhub.api.problems import MEDIA_TYPE


@dataclass(frozen=True, slots=True)
class Caller:
    client: Client
    token: str = ""

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(self._url(path), query, headers=self._headers({}))

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        """The body as JSON; bytes go out as they are."""
        raw = body if isinstance(body, bytes) else json.dumps({} if body is None else body)
        return self.client.post(
            self._url(path), raw, content_type="application/json", headers=self._headers(headers)
        )

    def submit(self, body: Any, key: str = "") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        return self.post("runs", body, **headers)

    def send(self, method: str, path: str, **options: Any) -> Any:
        return self.client.generic(method, self._url(path), headers=self._headers({}), **options)

    def _url(self, path: str) -> str:
        return path if path.startswith(("/", "http")) else f"/api/v1/{path}"

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        own = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return own | headers


def problem(response: Any, status: int, slug: str) -> dict[str, Any]:
    """The problem document of the response, after a check of all that every one has."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == MEDIA_TYPE
    document: dict[str, Any] = json.loads(response.content)
    assert document["type"] == f"urn:kernelhub:problem:{slug}"
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    return document


def faults(document: dict[str, Any]) -> dict[str, str]:
    """Where -> what."""
    places = ("pointer", "parameter", "header")
    return {
        next(fault[place] for place in places if place in fault): fault["detail"]
        for fault in document["errors"]
    }
