"""The URL map: each app owns the addresses below its prefix."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("kernelhub.api.urls")),
    path("api/node/v1/", include("kernelhub.api.node.urls")),
    path("", include("kernelhub.web.urls")),
]
