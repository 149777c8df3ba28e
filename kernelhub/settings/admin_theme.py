"""The admin in the name and the colours of the site: static/css/app.css holds the same values.

The theme calls its shades by number, light ones first. Of the accent, buttons take 600 and dark
pages take 400 and 500, so those are the site's accent in its light and its dark value.
"""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from django.templatetags.static import static

ACCENT_LIGHT: Final = "#2456c8"
ACCENT_DARK: Final = "#8fb0ff"

ACCENT: Final = {
    "50": "#f4f7fe",
    "100": "#e8eefb",
    "200": "#cfdcf7",
    "300": "#b3c9fb",
    "400": ACCENT_DARK,
    "500": "#4f7be2",
    "600": ACCENT_LIGHT,
    "700": "#1d46a4",
    "800": "#1b3b85",
    "900": "#1c2740",
    "950": "#131b2e",
}
GREYS: Final = {
    "50": "#fbfbfa",
    "100": "#f3f3f0",
    "200": "#e3e2dd",
    "300": "#cfcdc6",
    "400": "#9f9d95",
    "500": "#66655f",
    "600": "#55544f",
    "700": "#33322f",
    "800": "#232321",
    "900": "#1b1b1a",
    "950": "#141413",
}


def _favicon(_request: HttpRequest) -> str:
    return static("img/favicon.svg")


UNFOLD: Final[dict[str, Any]] = {
    "SITE_TITLE": "kernelhub admin",
    "SITE_HEADER": "kernelhub",
    "SITE_SUBHEADER": "administration",
    "SITE_URL": "/",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _favicon}],
    "COLORS": {"base": GREYS, "primary": ACCENT},
}
