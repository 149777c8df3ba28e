"""``python -m kernelhub.launch``: what ``make run`` starts once everything is installed."""

from __future__ import annotations

import argparse
import sys

from django.core.exceptions import ImproperlyConfigured

from kernelhub.launch.devices import local_devices
from kernelhub.launch.keeper import keep
from kernelhub.launch.supervisor import Options, supervise
from kernelhub.launch.terminal import complain
from kernelhub.launch.var import REPO
from kernelhub.settings.env import env_int, env_path


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument("--no-demo", action="store_true", help="do not launch the demo campaign")
    parser.add_argument("--hub-only", action="store_true", help="start no node agent here")
    parser.add_argument(
        "--stop-with-parent", action="store_true", help="stop when the parent process (make) does"
    )
    arguments = parser.parse_args(argv)
    try:
        port = env_int("KERNELHUB_PORT", default=8000, low=1, high=65535)
        var = env_path("KERNELHUB_VAR", default=REPO / "var")
    except ImproperlyConfigured as problem:
        complain(str(problem))
        return 1
    options = Options(
        port=port,
        demo=not arguments.no_demo,
        devices=() if arguments.hub_only else local_devices(),
    )
    return keep(lambda: supervise(options, var), stop_with_parent=arguments.stop_with_parent)


if __name__ == "__main__":
    sys.exit(main())
