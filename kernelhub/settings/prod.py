"""A server behind a TLS proxy. Every address and secret comes from the environment."""

from __future__ import annotations

from kernelhub.settings.base import *  # noqa: F403
from kernelhub.settings.base import REPO
from kernelhub.settings.env import (
    BROKER_SCHEMES,
    CHANNEL_SCHEMES,
    env_database,
    env_int,
    env_list,
    env_text,
    env_url,
)
from kernelhub.settings.redis_layer import channel_layers

SECRET_KEY = env_text("KERNELHUB_SECRET_KEY")
ALLOWED_HOSTS = env_list("KERNELHUB_HOSTS", default=[env_text("KERNELHUB_HOSTS")])
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS]

DATABASES = {"default": env_database("DATABASE_URL")}
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
CELERY_BROKER_URL = env_url("BROKER_URL", schemes=BROKER_SCHEMES)
CHANNEL_LAYERS = channel_layers(
    env_url("CHANNEL_URL", schemes=CHANNEL_SCHEMES, default=CELERY_BROKER_URL)
)

STATIC_ROOT = REPO / "staticfiles"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    # Names carry a hash of the content, so browsers may keep them for ever.
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# The proxy ends TLS and says so in this header; it must drop the header from outside.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = True
SECURE_HSTS_SECONDS = env_int("KERNELHUB_HSTS_S", default=3600, low=0, high=2 * 365 * 86400)
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
