"""`python -m verifier`: judge kernels from a shell, with no web framework in sight."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from typing import Final

MODULES: Final = {"import": "importing", "export": "exporting"}
"""Commands whose name no module can have, or should."""

COMMANDS: Final = {
    "verify": "judge one kernel",
    "gates": "list the twelve gates",
    "replay": "re-create a failure from a verdict",
    "fuzz": "draw cases for one kernel from a seed, and replay what failed",
    "calibrate": "sweep tolerances over a corpus: recall and false positives",
    "selfcheck": "the control sweep: eager and torch.compile, submitted as kernels",
    "defend": "the four defences of the verifier's own judgement",
    "health": "examine the device: known answers, memory, what the driver says",
    "retime": "time kernels twice: by how much does the clock differ from itself?",
    "audit": "judge many kernels of a corpus and count what is wrong with them",
    "schema": "print the JSON Schema of task.json",
    "import": "make task folders of other benchmarks' tasks",
    "export": "write a verdict in another benchmark's form",
    "serve": "stay warm and judge jobs from stdin (for the node agent)",
}


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser; only the chosen command's module is imported, because torch takes its time."""
    parser = argparse.ArgumentParser(prog="python -m verifier", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        sub = commands.add_parser(name, help=text, description=text)
        if name == command:
            module = importlib.import_module(f"verifier.commands.{MODULES.get(name, name)}")
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    return parser


def _complain(kind: str, error: BaseException) -> None:
    sys.stderr.write(f"verifier: {kind}: {error}\n")


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; argparse itself exits with 2 on bad usage."""
    words = sys.argv[1:] if argv is None else argv
    # The interpreter must be chosen before anybody imports triton.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # Threads of torch's that have nothing to do sleep; else they keep cores from other verifiers.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    parser = build_parser(next((word for word in words if word in COMMANDS), None))
    args = parser.parse_args(words)

    from verifier.commands.exit_codes import ExitCode
    from verifier.contract import TaskError
    from verifier.session import UsageError
    from verifier.subject import InfrastructureError

    try:
        return int(args.run(args))
    except (TaskError, UsageError) as error:
        _complain("cannot judge", error)
        return ExitCode.USAGE
    except InfrastructureError as error:
        _complain("infrastructure", error)
        return ExitCode.INFRASTRUCTURE
    except (Exception, SystemExit) as error:  # noqa: BLE001 - ours or not, it is no verdict
        traceback.print_exc()
        _complain("broke", error)
        return ExitCode.INFRASTRUCTURE
    except KeyboardInterrupt:
        _complain("stopped", KeyboardInterrupt("interrupted"))
        return ExitCode.INFRASTRUCTURE


if __name__ == "__main__":
    sys.exit(main())
