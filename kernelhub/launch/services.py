"""The commands of the hub and of its node agents."""

from __future__ import annotations

import http.client
import sys
from typing import Final

from kernelhub.launch.addresses import Addresses
from kernelhub.launch.devices import LocalDevice
from kernelhub.launch.process import Service
from kernelhub.launch.var import REPO

PYTHON: Final = sys.executable


def web_service(addresses: Addresses) -> Service:
    return Service(
        name="web",
        argv=(
            *(PYTHON, "-m", "uvicorn", "kernelhub.asgi:application"),
            *("--host", "127.0.0.1", "--port", str(addresses.port)),
            *("--log-level", "warning", "--no-access-log", "--lifespan", "off"),
            *("--timeout-graceful-shutdown", "2"),
        ),
        log=addresses.var.log("web"),
        env=addresses.hub_env(),
        cwd=REPO,
    )


def web_ready(addresses: Addresses) -> bool:
    """Whether the hub answers; an answer of any kind means that it serves."""
    connection = http.client.HTTPConnection("127.0.0.1", addresses.port, timeout=10)
    try:
        connection.request("HEAD", "/login/")
        return connection.getresponse().status < 500
    except OSError:
        return False
    finally:
        connection.close()


def worker_service(addresses: Addresses) -> Service:
    """Celery's worker of the queue `hub`; the hub's clock is a thread of it."""
    return Service(
        name="hub-worker",
        argv=(
            *(PYTHON, "-m", "celery", "--app", "kernelhub.celery", "--quiet", "worker"),
            *("--queues", "hub", "--concurrency", "1", "--hostname", "hub@%h"),
            *("--loglevel", "WARNING", "--without-gossip", "--without-mingle"),
        ),
        log=addresses.var.log("hub-worker"),
        env=addresses.hub_env(),
        cwd=REPO,
    )


def agent_service(addresses: Addresses, device: LocalDevice, token: str) -> Service:
    """The node agent of one device. It reaches the hub by HTTP and holds no database address."""
    gpu = {"CUDA_VISIBLE_DEVICES": device.uuid} if device.uuid else {}
    return Service(
        name=f"node-{device.node}",
        argv=(PYTHON, "-m", "gpu_runner", "agent", "--device", device.device),
        log=addresses.var.log(f"node-{device.node}"),
        env={**addresses.node_env(token), **gpu},
        cwd=REPO,
        stage=0,
    )
