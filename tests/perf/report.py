"""``make perf``: starts a private hub, measures, prints. Reports figures and fails on none."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelhub.launch.keeper import descendants
from kernelhub.launch.redis_server import free_port
from kernelhub.launch.terminal import table
from tests.conftest import short_folder
from tests.perf.judging import replica_s, softmax_s, warm_verifier

REPO: Final = Path(__file__).resolve().parents[2]
SETTLE_S: Final = 15.0
LIMIT_MB: Final = 1500
SERVING: Final = "Ctrl-C stops"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and what the project asks of it."""

    what: str
    value: str
    wanted: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make perf", description=__doc__)
    parser.add_argument("--demo", action="store_true", help="also time the demo campaign (minutes)")
    options = parser.parse_args()
    figures = [Figure("make setup, nothing changed", seconds(time_setup()), "< 0.3 s")]
    with short_folder("perf") as folder:
        figures += hub_figures(folder / "var", demo=options.demo)
    figures += judging_figures()
    lines = [(one.what, one.value, one.wanted) for one in figures]
    print(table(("what", "measured", "wanted"), lines))  # noqa: T201
    return 0


def time_setup() -> float:
    """The second of two calls: the first may have something to do."""
    command = [getattr(sys, "_base_executable", sys.executable), "kernelhub/launch/install.py"]
    for _ in range(2):
        start_s = time.monotonic()
        subprocess.run(command, cwd=REPO, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start_s


def hub_figures(var: Path, *, demo: bool) -> Iterator[Figure]:
    with hub(var, ["--no-demo"]) as started_s:
        yield Figure("start, empty var/", seconds(started_s))
    with hub(var, ["--no-demo"]) as started_s:
        yield Figure("start, second time", seconds(started_s), "fast")
        time.sleep(SETTLE_S)  # the verifier loads torch after the hub serves
        yield from memory_figures()
    if demo:
        with hub(var, []) as started_s:
            yield Figure("start and judge the demo corpus", seconds(started_s))


def judging_figures() -> Iterator[Figure]:
    """The verifier alone; a failure of it is shown in the place of its figure."""
    try:
        with warm_verifier() as verifier:
            yield Figure("row softmax, twelve gates, warm", seconds(softmax_s(verifier)), "< 3 s")
            yield Figure("P1 replica, 26 entries", seconds(replica_s(verifier)), "< 120 s")
    except RuntimeError as problem:
        yield Figure("verifier", f"not measured: {problem}")


@contextmanager
def hub(var: Path, arguments: Sequence[str]) -> Iterator[float]:
    """A hub with node agents; yields how long it took until it said that it serves."""
    env = {**os.environ, "KERNELHUB_VAR": str(var), "KERNELHUB_PORT": str(free_port())}
    for name in ("DATABASE_URL", "BROKER_URL", "CHANNEL_URL", "DJANGO_SETTINGS_MODULE"):
        env.pop(name, None)
    start_s = time.monotonic()
    command = [sys.executable, "-m", "kernelhub.launch", *arguments]
    with subprocess.Popen(command, cwd=REPO, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            await_line(process)
            yield time.monotonic() - start_s
        finally:
            process.terminate()
            process.communicate()


def await_line(process: subprocess.Popen[str]) -> None:
    """Echoes the hub's output until it serves."""
    assert process.stdout is not None
    for line in process.stdout:
        sys.stderr.write(line)
        if SERVING in line:
            return
    raise SystemExit("the hub did not start")


def memory_figures() -> Iterator[Figure]:
    """Proportional set sizes: a page shared by n processes counts 1/n for each."""
    rows = [(name_of(pid), pss_mb(pid)) for pid in descendants(os.getpid())]
    total_mb = sum(mb for _, mb in rows)
    for name, mb in sorted(rows, key=lambda row: -row[1]):
        if mb >= 1:
            yield Figure(f"  idle memory of {name}", f"{mb:.0f} MB")
    yield Figure("idle memory of all processes", f"{total_mb:.0f} MB", f"< {LIMIT_MB} MB")


def pss_mb(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    sizes = [line.split()[1] for line in text.splitlines() if line.startswith("Pss:")]
    return int(sizes[0]) / 1024 if sizes else 0.0


def name_of(pid: int) -> str:
    try:
        words = (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return str(pid)
    return words.replace(sys.executable, "python").strip()[:60] or str(pid)


def seconds(value_s: float) -> str:
    return f"{value_s:.2f} s"


if __name__ == "__main__":
    sys.exit(main())
