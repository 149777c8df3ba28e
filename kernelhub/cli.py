"""The command line of a hub: submit a kernel, watch it being judged, read its verdict.

Exit codes: 0 accepted (every gate passed or does not apply); 1 rejected or undecided; 2 the
request was wrong; 3 the hub cannot be reached, or its machinery broke; 4 cancelled; 130
interrupted, in which case the run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO
from urllib.parse import urlsplit

import httpx

from kernelhub import audit
from kernelhub.programs import BIN
from verifier.records import GateId, GateStatus, Outcome
from verifier.wording import Faults, in_one_line

POLL_S: Final = 25
"""How long the hub may hold an answer back while nothing happens."""

ANSWER_S: Final = 30
SUBMIT_PATIENCE_S: Final = 5.0
WAIT_PATIENCE_S: Final = 300.0
"""How long a hub that we already talked to may be away, for instance to restart."""

LABEL_LENGTH: Final = 120
"""What the hub takes."""

REASON_LENGTH: Final = 200
"""Characters of a reason in a line; the run's page and the verdict hold the whole."""

RETRY_STATUS: Final = frozenset({429, 500, 502, 503, 504})
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})

GLYPHS: Final[Mapping[str, str]] = {
    GateStatus.PASS: "✓",
    GateStatus.FAIL: "✗",
    GateStatus.NOT_APPLICABLE: "·",
    GateStatus.INCONCLUSIVE: "?",
    GateStatus.ERROR: "!",
}
ASCII: Final = str.maketrans({"✓": "+", "✗": "x", "·": "-", "…": "."})


class Exit(IntEnum):
    ACCEPTED = 0
    NOT_ACCEPTED = 1
    BAD_REQUEST = 2
    BROKEN = 3
    CANCELLED = 4
    INTERRUPTED = 130


class CommandError(Exception):
    """Ends the command with a message for people and an exit code for programs."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.code = code


class Unreachable(Exception):
    """The hub did not answer this time; ``wait_s`` is its own wish when to try again."""

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Hub:
    """A hub's API v1. Every method gives JSON or raises Unreachable or CommandError."""

    client: httpx.Client
    url: str

    def get(self, path: str, **query: Any) -> Any:
        return self._send("GET", path, params=query)

    def post(self, path: str, body: Mapping[str, Any] | None = None, key: str = "") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        return self._send("POST", path, json=body, headers=headers)

    def _send(self, method: str, path: str, **options: Any) -> Any:
        try:
            response = self.client.request(method, f"/api/v1/{path}", **options)
        except httpx.TransportError as error:
            raise Unreachable(str(error) or type(error).__name__) from error
        except httpx.InvalidURL as error:
            raise CommandError(
                f"{self.url} is no address of a hub: {error}", Exit.BAD_REQUEST
            ) from error
        if response.status_code in RETRY_STATUS:
            raise Unreachable(f"status {response.status_code}", _retry_after(response))
        if response.is_error:
            raise CommandError(problem_text(response), Exit.BAD_REQUEST)
        return _json_of(response, self.url)


def patiently(hub: Hub, ask: Callable[[], Any], patience_s: float) -> Any:
    """What ``ask`` gives, asked again while the hub is away, for at most ``patience_s``."""
    deadline, pause_s, told = time.monotonic() + patience_s, 0.25, False
    while True:
        try:
            return ask()
        except Unreachable as error:
            sleep_s = max(pause_s, error.wait_s)
            if time.monotonic() + sleep_s > deadline:
                raise CommandError(
                    f"{hub.url} does not answer: {error}{_hint(hub, error)}", Exit.BROKEN
                ) from error
            if not told and patience_s > SUBMIT_PATIENCE_S:
                note(f"{hub.url} does not answer ({error}); waiting for it …")
            told = True
            time.sleep(sleep_s)
            pause_s = min(pause_s * 2, 5.0)


def _hint(hub: Hub, error: Unreachable) -> str:
    """What to look at where nobody listens at all."""
    if not isinstance(error.__cause__, httpx.ConnectError):
        return ""
    if urlsplit(hub.url).hostname not in LOOPBACK:
        return "\n  Is that its address? --hub or KERNELHUB_HUB_URL names another one."
    return "\n  Is `make run` up? On another port, say KERNELHUB_PORT=PORT or --hub URL."


def problem_text(response: httpx.Response) -> str:
    """A problem document as lines for people; whatever else came, its status."""
    problem = None
    with suppress(ValueError):
        problem = response.json()
    if not isinstance(problem, dict) or "title" not in problem:
        return f"{response.url} answered {response.status_code}; is a kernelhub there?"
    lines = [f"{problem['title']}: {problem.get('detail', '')}"]
    for fault in problem.get("errors", []):
        place = fault.get("pointer") or fault.get("parameter") or fault.get("header") or ""
        lines.append(f"  {place}: {fault.get('detail', '')}")
    return "\n".join(plain(line) for line in lines)


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("Retry-After", "")
    return min(float(text), 60.0) if text.isdecimal() else 0.0


def _json_of(response: httpx.Response, url: str) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise CommandError(f"{url} did not answer with JSON; is it a hub?", Exit.BROKEN) from error


# What the commands do


def submit(hub: Hub, options: argparse.Namespace) -> Exit:
    body = {"task": options.task, "source": read_source(options.kernel), "entry": options.entry}
    optional = {name: getattr(options, name) for name in ("seed", "queue")}
    optional["label"] = label_of(options.kernel) if options.label is None else options.label
    body |= {name: value for name, value in optional.items() if value is not None}
    key = options.key or uuid.uuid4().hex
    run = patiently(hub, lambda: hub.post("runs", body, key=key), SUBMIT_PATIENCE_S)
    if run.get("notice"):
        note(run["notice"])
    if options.wait:
        note(f"run {run['id']} is {run['status']}: {hub.url}{run['page']}")
        return wait(hub, run["id"], options)
    if options.json:
        show_json(run)
    else:
        show(f"run {run['id']} is {run['status']}: {hub.url}{run['page']}")
    return Exit.ACCEPTED


def watch(hub: Hub, options: argparse.Namespace) -> Exit:
    return wait(hub, options.run, options)


def verdict(hub: Hub, options: argparse.Namespace) -> Exit:
    run = patiently(hub, lambda: hub.get(f"runs/{options.run}"), SUBMIT_PATIENCE_S)
    if run["status"] in ("queued", "running"):
        raise CommandError(
            f"No verdict yet: run {run['id']} is {run['status']}. "
            f"`{again(options, 'watch', run['id'])}` waits for it.",
            Exit.BAD_REQUEST,
        )
    return report(hub, run, options)


def cancel(hub: Hub, options: argparse.Namespace) -> Exit:
    run = patiently(hub, lambda: hub.post(f"runs/{options.run}/cancel"), SUBMIT_PATIENCE_S)
    if options.json:
        show_json(run)
    else:
        show(f"run {run['id']} is {run['status']}")
    return Exit.ACCEPTED


def tasks(hub: Hub, options: argparse.Namespace) -> Exit:
    found = list(_all_tasks(hub, options.suite))
    if options.json:
        show_json(found)
        return Exit.ACCEPTED
    width = max((len(task["path"]) for task in found), default=0)
    for task in found:
        show(f"{task['path']:{width}}  {task['title']}")
    if not found:
        note("This hub has no such tasks.")
    return Exit.ACCEPTED


def _all_tasks(hub: Hub, suite: str | None) -> Iterator[dict[str, Any]]:
    query = {"limit": "200"} | ({"suite": suite} if suite else {})
    while True:
        page = patiently(hub, lambda: hub.get("tasks", **query), SUBMIT_PATIENCE_S)
        yield from page["results"]
        if page["next"] is None:
            return
        query["cursor"] = httpx.URL(page["next"]).params["cursor"]


def label_of(name: str) -> str | None:
    """What a kernel of this file is called unless somebody names it; nothing for standard input."""
    if name == "-":
        return None
    return "".join(c for c in Path(name).stem if c.isprintable())[:LABEL_LENGTH].strip() or None


def read_source(name: str) -> str:
    """The kernel file's text; '-' is standard input."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return content.decode("utf-8")
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}", Exit.BAD_REQUEST) from error
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{name} is no text: byte {error.start} is not UTF-8.", Exit.BAD_REQUEST
        ) from error


def wait(hub: Hub, run_id: str, options: argparse.Namespace) -> Exit:
    """Follow the run to its end, through restarts of the hub, and report it."""
    after, done = 0, False
    teller = Teller(gates=somebody_watches())
    try:
        while not done:
            page = patiently(hub, partial(_events, hub, run_id, after), WAIT_PATIENCE_S)
            for event in page["events"]:
                after = event["seq"]
                teller.tell(event)
            done = page["done"]
        run = patiently(hub, lambda: hub.get(f"runs/{run_id}"), WAIT_PATIENCE_S)
        return report(hub, run, options, teller.told if same_place() else ())
    except KeyboardInterrupt:
        note(f"\nThe run goes on. `{again(options, 'watch', run_id)}` takes up the wait again.")
        return Exit.INTERRUPTED


def _events(hub: Hub, run_id: str, after: int) -> Any:
    return hub.get(f"runs/{run_id}/events", after=after, wait=POLL_S)


# What people and programs see


def report(
    hub: Hub,
    run: Mapping[str, Any],
    options: argparse.Namespace,
    told: Container[str] = (),
) -> Exit:
    """Show how an ended run ended; its exit code. Lines already told are not told again."""
    if run["status"] == "finished":
        path = f"runs/{run['id']}/verdict"
        document = patiently(hub, lambda: hub.get(path), WAIT_PATIENCE_S)
        if options.json:
            show_json(document)
        else:
            show_table(hub, run, document, options, told)
        accepted = run["outcome"] == Outcome.ACCEPTED
        return Exit.ACCEPTED if accepted else Exit.NOT_ACCEPTED
    if options.json:
        show_json(run)
    if run["status"] == "cancelled":
        note(f"run {run['id']} was cancelled")
        return Exit.CANCELLED
    error = run["error"] or {"kind": run["status"], "message": ""}
    note(f"run {run['id']} errored, which says nothing about the kernel")
    note(f"  {error['kind']}: {error['message']}")
    return Exit.BROKEN


def again(options: argparse.Namespace, *words: str) -> str:
    """A call of this command for a shell at the repository's root, to the same hub. What the
    environment says it says there too; a token never stands in it."""
    place = ("--hub", options.hub) if options.hub else ()
    return shlex.join((f"{BIN}/kernelhub", *words, *place))


def same_place() -> bool:
    """Whether results and what is said beside them come out at one place: one terminal, or one
    pipe or file that both were led into."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):
        return False


def somebody_watches() -> bool:
    """Whether gates are told as they come: to a person, or where the result lacks them then. A
    log beside the result would but hold them twice."""
    return sys.stderr.isatty() or same_place()


def show_table(
    hub: Hub,
    run: Mapping[str, Any],
    document: Mapping[str, Any],
    options: argparse.Namespace,
    told: Container[str],
) -> None:
    """The gates not told yet, one a line, what nobody judged, how to replay the first failure."""
    kernel = run["kernel"]["label"] or run["kernel"]["sha256"][:12]
    show(f"{run['outcome']}: {kernel} on {run['task']}, seed {run['seed']}, {run['node']}")
    if run["illusion"]:
        show("an illusion: the loose test accepts this kernel")
    faults = Faults()
    for line in (gate_line(gate, faults) for gate in document["gates"]):
        if line not in told:
            show("  " + line)
    for line in unjudged_lines(document["gates"]):
        show(line)
    failed = [gate["gate"] for gate in document["gates"] if gate["status"] == GateStatus.FAIL]
    if failed:
        show("replay:")
        show(f"{again(options, 'verdict', run['id'], '--json')} > verdict.json")
        show(f"{BIN}/python -m verifier replay verdict.json --gate {failed[0]}")
    show(f"{hub.url}{run['page']}")


def gate_line(gate: Mapping[str, Any], faults: Faults) -> str:
    """A gate, its finding and why; a reason that an earlier gate gave is not told again."""
    name = GateId(gate["gate"]).name.lower().replace("_", " ")
    first = faults.earlier(gate["gate"], gate["status"], gate["reason"])
    words = gate["summary"] if gate["status"] == GateStatus.PASS else gate["reason"]
    said = f"same as {first}" if first else f"{in_one_line(words, REASON_LENGTH)}{_hard(gate)}"
    return f"{GLYPHS[gate['status']]} {gate['gate']:3} {name:12} {said}"


def _hard(gate: Mapping[str, Any]) -> str:
    """Worth saying of values that are compared; nobody asks it of a syntax error."""
    values = (gate.get("counterexample") or {}).get("output")
    return " (no tolerance involved)" if gate["hard"] and values else ""


def unjudged_lines(gates: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Cases of passed gates that were not judged: one line for each reason."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for gate in gates:
        for one in gate["notes"] if gate["status"] == GateStatus.PASS else ():
            at = counts.setdefault((one["status"], one["reason"]), Counter())
            at[gate["gate"]] += one["count"]
    for (status, reason), at in counts.items():
        word = "left open" if status == GateStatus.INCONCLUSIVE else "not judged here"
        cases = "1 case" if at.total() == 1 else f"{at.total()} cases"
        yield f"{word}: {cases} of {', '.join(at)}: {in_one_line(reason, REASON_LENGTH)}"


class Teller:
    """Says each thing worth knowing while waiting in one line, ``gates`` only when asked to; what
    kernels print is not shown. ``told`` holds the lines of the gates of the latest attempt."""

    def __init__(self, *, gates: bool) -> None:
        self.told: set[str] = set()
        self._gates = gates
        self._faults = Faults()

    def tell(self, event: Mapping[str, Any]) -> None:
        payload = event["payload"]
        match event["kind"]:
            case "leased":
                self.told, self._faults = set(), Faults()
                note(f"{payload['node']} judges it")
            case "gate" if self._gates:
                line = gate_line(payload, self._faults)
                self.told.add(line)
                note("  " + line)
            case "attempt_lost" | "requeued":
                note(f"{event['kind'].replace('_', ' ')}: {payload['reason']}")


def plain(text: str) -> str:
    """Text from elsewhere without what a terminal would obey."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


def show(line: str) -> None:
    _write(sys.stdout, line)


def note(line: str) -> None:
    """Say it beside the result, so that a pipe gets the result alone."""
    _write(sys.stderr, line)


def show_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def _write(stream: TextIO, line: str) -> None:
    text = plain(line) + "\n"
    encoding = stream.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(ASCII).encode(encoding, "replace").decode(encoding)
    stream.write(text)
    stream.flush()


# How the command is called


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kernelhub", description="Submit GPU kernels to a hub and read their verdicts."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    common = _common_options()
    _add_submit(commands, common)
    for name, action, words in (
        ("watch", watch, "wait for a run to end and show its verdict"),
        ("verdict", verdict, "show the verdict of an ended run"),
        ("cancel", cancel, "cancel a run"),
    ):
        command = commands.add_parser(name, parents=[common], help=words, description=words)
        command.add_argument("run", type=run_id_of, metavar="RUN", help="id of the run")
        command.set_defaults(action=action)
    commands.add_parser("audit", add_help=False, help="judge a corpus on this machine and count")
    listing = commands.add_parser("tasks", parents=[common], help="list what can be submitted to")
    listing.add_argument("--suite", help="only tasks of this suite")
    listing.set_defaults(action=tasks)
    return parser


def _common_options() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--hub", metavar="URL", help="default: KERNELHUB_HUB_URL, or this machine")
    common.add_argument("--token", help="default: KERNELHUB_TOKEN, or what `make run` left here")
    common.add_argument("--json", action="store_true", help="JSON on standard output")
    return common


def _add_submit(commands: Any, common: argparse.ArgumentParser) -> None:
    command = commands.add_parser("submit", parents=[common], help="submit a kernel to be judged")
    command.add_argument("kernel", metavar="KERNEL", help="Python file, or - for standard input")
    command.add_argument("--task", required=True, help="such as fuzzoracle/softmax")
    command.add_argument("--entry", default="run", help="the function to call (default: run)")
    command.add_argument("--seed", type=int, help="default: drawn by the hub")
    command.add_argument("--queue", help="device queue (default: any node)")
    command.add_argument("--label", help="a name for the kernel (default: the file's)")
    command.add_argument("--key", help="Idempotency-Key: one key is one run, however often sent")
    command.add_argument("--wait", action="store_true", help="wait for the verdict")
    command.set_defaults(action=submit)


def run_id_of(text: str) -> str:
    """A run's id, also out of the address of its page."""
    try:
        return str(uuid.UUID(text.rstrip("/").rpartition("/")[2]))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not the id of a run") from error


def hub_url(options: argparse.Namespace) -> str:
    """Where the hub is; CommandError for anything but an http or https address."""
    here = f"http://127.0.0.1:{os.environ.get('KERNELHUB_PORT') or 8000}"
    url = str(options.hub or os.environ.get("KERNELHUB_HUB_URL") or here).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandError(f"{url!r} is no address such as {here}", Exit.BAD_REQUEST)
    return url


def find_token(options: argparse.Namespace, url: str) -> str:
    """The token to present. The one that `make run` left here goes to this machine's hub only."""
    given = options.token or os.environ.get("KERNELHUB_TOKEN") or ""
    if given or urlsplit(url).hostname not in LOOPBACK:
        return str(given).strip()
    var = os.environ.get("KERNELHUB_VAR") or Path(__file__).resolve().parents[1] / "var"
    with suppress(OSError):
        return (Path(var) / "cli-token").read_text(encoding="utf-8").strip()
    return ""


def make_client(url: str, token: str) -> httpx.Client:
    if not token.isascii() or not token.isprintable():
        raise CommandError("The token holds characters that no token has.", Exit.BAD_REQUEST)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # No redirects: a token goes to the hub that was named and to nobody else.
    return httpx.Client(base_url=url, headers=headers, timeout=httpx.Timeout(ANSWER_S + POLL_S))


def main(arguments: Sequence[str] | None = None) -> int:
    """The console command: prints, and gives the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["audit"]:
        return audit.run(words[1:])  # on this machine: it needs no hub
    options = make_parser().parse_args(arguments)
    try:
        url = hub_url(options)
        with make_client(url, find_token(options, url)) as client:
            return int(options.action(Hub(client, url), options))
    except CommandError as error:
        note(f"kernelhub: {error}")
        return int(error.code)
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has enough; nothing is left to say to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.ACCEPTED)


if __name__ == "__main__":
    sys.exit(main())
