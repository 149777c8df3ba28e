"""Behaves like compute-sanitizer as far as starting a program and writing reports goes.

It checks nothing: what it is to report lies beside it, in ``says.xml`` and ``says.log``. Without
them it reports that all is clean.
"""

import subprocess
import sys
from pathlib import Path

ALONE = {"--xml"}
CLEAN = '<?xml version="1.0" encoding="utf-8"?>\n<ComputeSanitizerOutput/>\n'
SUMMARY = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


def main(words: list[str]) -> int:
    if words == ["--version"]:
        print("NVIDIA (R) Compute Sanitizer\nVersion 2000.1.0.0 (build 1)")  # noqa: T201
        return 0
    options: dict[str, str] = {}
    while words and words[0].startswith("--"):
        name = words.pop(0)
        options[name] = "" if name in ALONE else words.pop(0)
    status = subprocess.run(words, check=False, close_fds=False).returncode
    for option, name, otherwise in (
        ("--save", "says.xml", CLEAN),
        ("--log-file", "says.log", SUMMARY),
    ):
        said = Path(__file__).parent / name
        Path(options[option]).write_text(said.read_text() if said.exists() else otherwise)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
