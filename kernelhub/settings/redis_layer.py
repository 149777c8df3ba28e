"""The channel layer over Redis, in one place for the environments that use it."""

from __future__ import annotations

from typing import Any


def channel_layers(url: str) -> dict[str, Any]:
    """Pub/sub rather than the queueing layer, which drops messages for slow readers silently."""
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    return {"default": {"BACKEND": backend, "CONFIG": {"hosts": [url]}}}
