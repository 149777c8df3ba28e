"""Accounts: roles and API tokens."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _sync_roles(**_: Any) -> None:
    from kernelhub.accounts.services import roles_sync

    roles_sync()


class AccountsConfig(AppConfig):
    name = "kernelhub.accounts"
    label = "accounts"
    verbose_name = "Accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Django creates a model's permissions after all migrations, so groups get theirs here.
        post_migrate.connect(_sync_roles, sender=self)
