"""Addresses of the sockets, one for each live page."""

from __future__ import annotations

from typing import Any

from django.urls import path

from kernelhub.live.consumers import CampaignConsumer, OverviewConsumer, RunConsumer

websocket_urlpatterns: list[Any] = [
    path("ws/runs/<uuid:pk>/", RunConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/campaigns/<uuid:pk>/", CampaignConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/overview/", OverviewConsumer.as_asgi()),  # type: ignore[arg-type]
]
