"""What every environment shares. Each environment adds its database, broker and secrets."""

from __future__ import annotations

from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from kernelhub.api import conf
from kernelhub.settings.admin_theme import UNFOLD as ADMIN_THEME
from kernelhub.settings.env import env_flag, env_path, env_text

REPO = Path(__file__).resolve().parents[2]
VAR = env_path("KERNELHUB_VAR", default=REPO / "var")
HUB_URL = env_text("KERNELHUB_HUB_URL", "http://127.0.0.1:8000")

DEBUG = False
ALLOWED_HOSTS: list[str] = []


INSTALLED_APPS = [
    "unfold",  # before the admin, whose templates it replaces
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    "channels",
    "django_htmx",
    "kernelhub.core",
    "kernelhub.accounts",
    "kernelhub.api",
    "kernelhub.web",
    "kernelhub.live",
    "gpu_runner",
    # One line for each suite; nothing else names them.
    "benchmarks.fuzzoracle",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "kernelhub.core.policy.policy_middleware",  # above all that answers by itself
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "kernelhub.urls"
ASGI_APPLICATION = "kernelhub.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [REPO / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"

# Times are stored, logged and sent as UTC; only the browser turns them into local time.
TIME_ZONE = "UTC"
USE_TZ = True
LANGUAGE_CODE = "en"
USE_I18N = False

STATIC_URL = "/static/"
# Where `collectstatic` puts what prod serves; the others serve from the packages themselves.
STATIC_ROOT: Path | None = None


def _plotly_javascript() -> Path:
    """The folder of the wheel that holds plotly.min.js, found without importing plotly."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ImproperlyConfigured("plotly is not installed: run `make setup`.")
    return Path(spec.origin).parent / "package_data"


# {% static "vendor/plotly/plotly.min.js" %} is the browser half of the plotly that draws.
STATICFILES_DIRS: list[Any] = [
    *([REPO / "static"] if (REPO / "static").is_dir() else []),
    ("vendor/plotly", _plotly_javascript()),
]

UNFOLD: dict[str, Any] = ADMIN_THEME

REST_FRAMEWORK: dict[str, Any] = conf.REST_FRAMEWORK
SPECTACULAR_SETTINGS: dict[str, Any] = conf.SPECTACULAR_SETTINGS

# Tasks, kernels, runs and verdicts can be read without signing in; writing never can.
KERNELHUB_PUBLIC_READ = env_flag("KERNELHUB_PUBLIC_READ", default=True)

# The database is the truth about a job and Celery is transport, hence no result backend.
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "hub"
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Redis delivers an unacknowledged message again after this long; a job is far shorter.
    "visibility_timeout": int(timedelta(hours=2).total_seconds()),
}

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"format": "{asctime} {levelname} {name} {message}", "style": "{"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {"httpx": {"level": "WARNING"}},
}
