"""Addresses and secrets of one launch, and who is given which of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kernelhub.launch.files import write_private
from kernelhub.launch.var import Var

HUB_ONLY: Final = frozenset(
    {"DATABASE_URL", "KERNELHUB_SECRET_KEY", "KERNELHUB_TOKEN", "KERNELHUB_NODE_TOKEN"}
)
"""What no node agent may inherit."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the parts of this launch find each other."""

    var: Var
    port: int
    database_url: str
    broker_url: str
    channel_url: str
    secret_key: str

    @property
    def hub_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def hub_env(self) -> dict[str, str]:
        """For the processes that are the hub: web, worker, commands."""
        return {**_ours(self), **self._secrets()}

    def node_env(self, token: str) -> dict[str, str]:
        """For a node agent: the hub's address and its own token, and no database."""
        inherited = {name: value for name, value in _ours(self).items() if name not in HUB_ONLY}
        return {**inherited, "BROKER_URL": self.broker_url, "KERNELHUB_NODE_TOKEN": token}

    def write(self) -> None:
        """Leaves the addresses for ``manage.py`` in another shell, readable by the owner."""
        lines = [f"{name}={value}\n" for name, value in self._secrets().items()]
        write_private(self.var.services, "".join(lines))

    def _secrets(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.database_url,
            "BROKER_URL": self.broker_url,
            "CHANNEL_URL": self.channel_url,
            "KERNELHUB_SECRET_KEY": self.secret_key,
        }


def _ours(addresses: Addresses) -> Mapping[str, str]:
    settings = os.environ.get("DJANGO_SETTINGS_MODULE", "kernelhub.settings.local")
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": settings,
        "KERNELHUB_VAR": str(addresses.var.root),
        "KERNELHUB_HUB_URL": addresses.hub_url,
        "PYTHONUNBUFFERED": "1",
    }
