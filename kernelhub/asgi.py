"""ASGI entry point: HTTP to Django, websockets to the live consumers."""

from __future__ import annotations

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelhub.settings.local")

# Loads the apps; what is imported below needs them.
http = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from kernelhub import celery  # noqa: E402, F401 - the application that sends messages
from kernelhub.bodies import BodyLimit  # noqa: E402
from kernelhub.live.routing import websocket_urlpatterns  # noqa: E402

# Django's patterns, as Channels wants them; the stubs know only its own subclass.
sockets: Any = websocket_urlpatterns

application = ProtocolTypeRouter(
    {
        "http": BodyLimit(http),
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(sockets))),
    }
)
