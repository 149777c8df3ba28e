"""`python -m verifier health`: examine the device, as a node does at its start."""

from __future__ import annotations

import argparse
import json
import sys

from verifier.commands.exit_codes import ExitCode
from verifier.device_lock import device_lock
from verifier.environment import choose_device, read_environment
from verifier.health.watch import watch_begin
from verifier.records import HealthReport, to_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `health`."""
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda:N (default: auto)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _lines(report: HealthReport) -> list[str]:
    rows = [f"{check.state:8} {check.name:12} {check.detail}".rstrip() for check in report.checks]
    return [*rows, f"{'sick' if report.sick else 'healthy'}: {report.device}"]


def run(args: argparse.Namespace) -> ExitCode:
    """Examine, print; the exit code of broken machinery for a sick device."""
    mode, device = choose_device(args.device)
    environment = read_environment(mode, device, sandbox="")
    report = watch_begin(environment, device, device_lock(environment)).start()
    text = json.dumps(to_json(report), indent=1) if args.json else "\n".join(_lines(report))
    sys.stdout.write(text + "\n")
    return ExitCode.INFRASTRUCTURE if report.sick else ExitCode.CLEAN
