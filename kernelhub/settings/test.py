"""The test suite. tests/conftest.py fills in the database that it starts itself."""

from __future__ import annotations

from kernelhub.settings.base import *  # noqa: F403

SECRET_KEY = "for-tests-only"  # noqa: S105 - guards nothing
ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]

# No address here: a test that touches the database without the fixture must fail, not reach
# whatever server the machine happens to run.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "kernelhub",
        "HOST": "/nonexistent",
    }
}

# In this process only. Tests of reconnects and of delivery take the `redis_url` fixture.
CELERY_BROKER_URL = "memory://"
CELERY_BROKER_TRANSPORT_OPTIONS = {}
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

# Slow hashing protects real passwords; there are none here.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True  # scanning every static file at each start costs more than it saves
