"""The URL map: each app owns the addresses below its prefix."""

from __future__ import annotations

from importlib.util import find_spec

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

PREFIXES = {
    "api/v1/": "kernelhub.api.urls",
    "api/node/v1/": "kernelhub.api.node.urls",
    "": "kernelhub.web.urls",
}


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    *[path(prefix, include(module)) for prefix, module in PREFIXES.items() if _exists(module)],
]
