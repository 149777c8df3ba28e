"""Creates .venv and installs the pinned dependencies, when something changed since last time.

Runs as a plain file, before anything is installed, under whatever ``python3`` is there: standard
library only, and no syntax newer than Python 3.7, so that an old one can say that it is too old.
pyproject.toml says what is needed, constraints.txt says in which version.

    python3 kernelhub/launch/install.py [--with "runner services dev"] [--lock]
"""

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any  # noqa: F401 - read by type checkers, in the comments

OLDEST, NEWEST = (3, 11), (3, 13)
GROUPS = ("runner", "services", "dev")
REPO = Path(__file__).resolve().parents[2]
VENV = REPO / ".venv"
CONSTRAINTS = REPO / "constraints.txt"
STAMP = VENV / "kernelhub-setup.json"
LOCK_HEADER = """\
# Every package that kernelhub installs, in its one version. Made by `make lock`; do not edit.
# A torch built for CUDA brings NVIDIA's libraries along, in the versions that it names itself.
"""


def main(argv=None):
    # type: (list[str] | None) -> int
    use_supported_python()
    options = parse(argv)
    try:
        if options.lock:
            lock()
        else:
            setup(options.groups)
    except Stop as problem:
        print("setup: " + str(problem), file=sys.stderr)  # noqa: T201
        return 1
    return 0


class Stop(Exception):
    """The set-up cannot go on."""


def parse(argv):
    # type: (list[str] | None) -> argparse.Namespace
    parser = argparse.ArgumentParser(description="Create .venv and install what is missing.")
    parser.add_argument("--with", dest="groups", default=" ".join(GROUPS), metavar="GROUPS")
    parser.add_argument("--lock", action="store_true", help="write constraints.txt anew")
    options = parser.parse_args(argv)
    options.groups = options.groups.split()
    unknown = sorted(set(options.groups) - set(GROUPS))
    if unknown:
        parser.error("unknown group {}; there are: {}".format(unknown[0], " ".join(GROUPS)))
    return options


def use_supported_python():
    # type: () -> None
    """Goes on under a supported interpreter: this one, else the newest on PATH, else says so."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and subprocess.call([found, "-c", ""]) == 0:
            os.execv(found, [found, *sys.argv])  # noqa: S606
    sys.exit(
        "setup: kernelhub needs Python {}.{} to {}.{}, and this is {}.{}: install one of them, "
        "or name it: make PYTHON=/path/to/python3.11 ...".format(
            *OLDEST, *NEWEST, *sys.version_info[:2]
        )
    )


def setup(groups):
    # type: (list[str]) -> None
    """Brings .venv to what pyproject.toml and constraints.txt say. Does nothing when it is."""
    with CONSTRAINTS.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # two `make` at once: the second waits and finds it done
        stamp = read_stamp()
        fingerprint = wanted_fingerprint()
        known = stamp.get("groups", []) if stamp.get("fingerprint") == fingerprint else []
        if set(groups) <= set(known) and (VENV / "bin" / "python").exists():
            return
        together = [one for one in GROUPS if one in {*groups, *stamp.get("groups", [])}]
        say("installing into .venv (a few minutes the first time): base " + " ".join(together))
        STAMP.unlink() if STAMP.exists() else None
        create_venv(VENV)
        install(VENV, together, constrained=True)
        write_stamp({"fingerprint": fingerprint, "groups": together})


def read_stamp():
    # type: () -> dict[str, Any]
    try:
        return dict(json.loads(STAMP.read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def write_stamp(stamp):
    # type: (dict[str, Any]) -> None
    draft = STAMP.with_suffix(".draft")
    draft.write_text(json.dumps(stamp) + "\n")
    draft.replace(STAMP)


def wanted_fingerprint():
    # type: () -> str
    """Changes when a dependency, a pin, this file, the interpreter or the place changes."""
    digest = hashlib.sha256()
    for part in (
        dependency_tables(),
        CONSTRAINTS.read_text(),
        Path(__file__).read_text(),
        sys.version,
        os.path.realpath(sys.executable),
        str(REPO),
    ):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def dependency_tables():
    # type: () -> str
    """What pyproject.toml says about installing; a lint rule changes nothing here."""
    import tomllib

    tables = tomllib.loads((REPO / "pyproject.toml").read_text())
    wanted = [tables.get(name, {}) for name in ("build-system", "project", "dependency-groups")]
    return json.dumps([*wanted, tables.get("tool", {}).get("setuptools", {})], sort_keys=True)


def create_venv(folder):
    # type: (Path) -> None
    """A virtual environment of this interpreter; one of another version is replaced."""
    if runs_our_version(folder):
        return
    command = [base_python(), "-m", "venv", "--clear", str(folder)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode == 0:
        return
    text = (done.stdout + done.stderr).strip()
    if "ensurepip" in text or "No module named venv" in text:
        raise Stop(
            "this Python has no venv module. On Debian or Ubuntu: "
            "apt-get install python3-venv; or name another: make PYTHON=/path/to/python3.11 ..."
        )
    raise Stop("cannot create {}: {}".format(folder, (text.splitlines() or ["?"])[-1]))


def base_python():
    # type: () -> str
    """This interpreter outside of any virtual environment that we were started from."""
    return getattr(sys, "_base_executable", None) or sys.executable


def runs_our_version(folder):
    # type: (Path) -> bool
    python = folder / "bin" / "python"
    if not python.exists():
        return False
    command = [str(python), "-c", "import sys, pip; print(sys.version)"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == sys.version


def install(folder, groups, constrained):
    # type: (Path, list[str], bool) -> None
    """The project (editable), its dependencies and the groups.

    pip reads groups since 25.1, hence pip first; setuptools second, so that building our own
    package needs no second, unpinned environment.
    """
    pins = ["--constraint", str(CONSTRAINTS)] if constrained else []
    pip(folder, ["install", "--upgrade", *pins, "pip", "setuptools"])
    chosen = [word for group in groups for word in ("--group", group)]
    pip(folder, ["install", *pins, *chosen, "--no-build-isolation", "--editable", "."])


def pip(folder, arguments):
    # type: (Path, list[str]) -> None
    command = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--no-input"]
    environment = {
        **os.environ,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }
    done = subprocess.run(
        [*command, *arguments],
        cwd=str(REPO),
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.stderr.write(done.stderr[-4000:])
        raise Stop(advice(done.stderr))


def advice(stderr):
    # type: (str) -> str
    if "No space left on device" in stderr:
        return "the disk is full: free some space (about 2 GB are needed), then try again."
    if "Temporary failure in name resolution" in stderr or "Connection" in stderr:
        return "pip cannot reach its package index: check the network or pip's settings."
    return "pip failed; its own words are above. Then try again: nothing is lost."


def lock():
    # type: () -> None
    """Installs the newest that pyproject.toml allows in a throw-away place, and writes it down."""
    with tempfile.TemporaryDirectory(prefix="kernelhub-lock-") as name:
        folder = Path(name)
        create_venv(folder)
        install(folder, list(GROUPS), constrained=False)
        command = [str(folder / "bin" / "python"), "-m", "pip", "freeze", "--all"]
        frozen = subprocess.run(
            [*command, "--exclude", "kernelhub"], capture_output=True, text=True, check=True
        ).stdout
    # "+cpu" is how a build is named, not a version that every index has.
    found = {line.split("+")[0] for line in frozen.splitlines()}
    pins = sorted(found | exact_pins(), key=str.lower)
    CONSTRAINTS.write_text(LOCK_HEADER + "\n".join(pins) + "\n")
    say(f"wrote {len(pins)} pins to constraints.txt")


def exact_pins():
    # type: () -> set[str]
    """Pins of pyproject.toml for interpreters other than this one, which `pip freeze` misses."""
    import tomllib

    groups = tomllib.loads((REPO / "pyproject.toml").read_text())["dependency-groups"].values()
    lines = [line.split(";")[0].strip() for group in groups for line in group]
    return {line for line in lines if "==" in line and "*" not in line}


def say(text):
    # type: (str) -> None
    print("setup: " + text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
