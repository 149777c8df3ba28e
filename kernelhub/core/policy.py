"""The content security policy of every page that we render: nothing foreign, no inline script."""

from __future__ import annotations

from typing import Final

# Plotly and Swagger set style attributes and style elements as they draw; scripts stay ours alone.
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
