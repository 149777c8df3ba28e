"""One machine, started by ``make run``: services under var/, plain HTTP on the loopback address."""

from __future__ import annotations

from kernelhub.settings.base import *  # noqa: F403
from kernelhub.settings.base import VAR
from kernelhub.settings.env import (
    BROKER_SCHEMES,
    CHANNEL_SCHEMES,
    env_database,
    env_flag,
    env_list,
    env_text,
    env_update_from_file,
    env_url,
)
from kernelhub.settings.redis_layer import channel_layers

# A shell beside a running `make run` meets the same database, broker and secret key.
env_update_from_file(VAR / "services.env")

DEBUG = env_flag("KERNELHUB_DEBUG", default=False)
SECRET_KEY = env_text("KERNELHUB_SECRET_KEY")
ALLOWED_HOSTS = env_list("KERNELHUB_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])

DATABASES = {"default": env_database("DATABASE_URL")}
CELERY_BROKER_URL = env_url("BROKER_URL", schemes=BROKER_SCHEMES)
CHANNEL_LAYERS = channel_layers(
    env_url("CHANNEL_URL", schemes=CHANNEL_SCHEMES, default=CELERY_BROKER_URL)
)

# Straight from the packages and static/: nothing to collect, nothing that can be stale.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
