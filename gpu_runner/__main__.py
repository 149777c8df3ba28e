"""``python -m gpu_runner agent [--device auto|cpu|cuda:0] [--workers N]``: one device's node agent.

Reads KERNELHUB_HUB_URL, KERNELHUB_NODE_TOKEN, BROKER_URL (optional: without it the agent polls)
and KERNELHUB_VAR. Needs no database and no Django settings.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys

from gpu_runner.agent import Agent
from gpu_runner.capacity import workers_wanted
from gpu_runner.config import AgentConfig, ConfigError
from gpu_runner.devices import DeviceError, queue_of
from gpu_runner.node import agent_run
from gpu_runner.protocol import CPU_QUEUE


def main(argv: list[str]) -> int:
    """0 after a stop that was asked for, 2 when it is configured wrongly."""
    parser = argparse.ArgumentParser(prog="python -m gpu_runner")
    agent = parser.add_subparsers(required=True).add_parser("agent", help="serve one device")
    agent.add_argument("--device", default="auto")
    agent.add_argument(
        "--workers",
        type=int,
        default=int(os.environ.get("KERNELHUB_WORKERS", "") or 0),
        help="verifiers side by side (default: by cores and memory on a GPU, 1 on a processor)",
    )
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        queue = queue_of(options.device)
        # What was found decides for the verifier too, which might see a GPU that the driver hides.
        device = "cpu" if queue == CPU_QUEUE else options.device
        workers = workers_wanted(options.workers, queue)
        agent_run(Agent(AgentConfig.from_environment(device, workers=workers), queue))
    except (ConfigError, DeviceError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
