"""An audit's counts as Markdown, as lines for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from verifier.audit.summary import Group, Slice, Summary, TwoByTwo
from verifier.statistics import Share

NAMES: Final = {
    "G1": "baseline agreement",
    "G2": "non-finite values",
    "G3": "determinism",
    "G4": "shapes",
    "G5": "dtypes",
    "G6": "accumulation",
    "G7": "layout",
    "G8": "side effects",
    "G9": "memory",
    "G10": "extreme range",
    "G11": "metamorphic",
    "G12": "honest execution",
}

Table = tuple[str, Sequence[str], list[Sequence[str]]]
"""A title, the heads of its columns, and its rows; the first column holds words."""


def tables(summary: Summary) -> Iterator[Table]:
    """Every table of an audit."""
    yield _scope(summary)
    for title, group in (("Kernels", summary.kernels), ("Without any kernel", summary.library)):
        if group.n:
            yield from _group_tables(title, group)


def _group_tables(title: str, group: Group) -> Iterator[Table]:
    yield _headline(title, group)
    yield _two_by_two(title, group.table)
    yield _gates(title, group)
    yield _slices(f"{title} by category", group.categories)
    yield _slices(f"{title} by author", group.authors)
    if len(group.contents) > 1:
        yield _slices(f"{title} by content", group.contents)
    if group.inconclusive_reasons:
        yield _counted(f"{title}: what stayed open", group.inconclusive_reasons)


def _scope(summary: Summary) -> Table:
    judged = summary.kernels.n + summary.library.n
    rows: list[Sequence[str]] = [
        ("in the corpus", str(summary.in_corpus)),
        ("judged", str(judged)),
        ("  kernels", str(summary.kernels.n)),
        ("  without any CUDA or Triton in them", str(summary.library.n)),
        ("not chosen, or not judged yet", str(summary.left)),
        *((f"not judged: {reason}", str(count)) for reason, count in summary.not_judged),
        *((f"task error: {reason}", str(count)) for reason, count in summary.task_errors),
        *((f"ERROR (ours): {reason}", str(count)) for reason, count in summary.errors),
        ("tried twice", str(summary.retried)),
    ]
    return (f"Scope: {', '.join(summary.corpora)}", ("what", "n"), rows)


def _headline(title: str, group: Group) -> Table:
    rows: list[Sequence[str]] = [
        ("broken: a tolerance-free finding failed", *_cells(group.broken)),
        ("any violation", *_cells(group.violation)),
        ("broken, of those that run", *_cells(group.broken_of_ran)),
        ("any violation, of those that run", *_cells(group.violation_of_ran)),
        ("broken, of those that the loose test accepts", *_cells(group.broken_of_loose)),
        ("any violation, of those that the loose test accepts", *_cells(group.violation_of_loose)),
        ("some gate INCONCLUSIVE", *_cells(group.inconclusive)),
    ]
    outcomes = f"{group.accepted} accepted, {group.rejected} rejected, {group.undecided} undecided"
    return (f"{title}: {outcomes}", ("share", "n", "of", "%", "95% interval"), rows)


def _cells(share: Share) -> tuple[str, str, str, str]:
    if share.share is None or share.low is None or share.high is None:
        return (str(share.hits), str(share.n), "-", "-")
    interval = f"{share.low:.1%} to {share.high:.1%}"
    return (str(share.hits), str(share.n), f"{share.share:.1%}", interval)


def _two_by_two(title: str, table: TwoByTwo) -> Table:
    test = table.test
    chi = "-" if test.chi_squared is None else f"{test.chi_squared:.1f}"
    rows: list[Sequence[str]] = [
        ("loose test accepts", str(table.both_accept), str(table.only_loose)),
        ("loose test rejects", str(table.only_verifier), str(table.neither)),
    ]
    about = f"McNemar p = {test.p_value:.3g}, chi squared {chi}; {table.left_out} left out"
    heads = ("", "verifier does not reject", "verifier rejects")
    return (f"{title}, loose test and verifier ({about})", heads, rows)


def _gates(title: str, group: Group) -> Table:
    heads = (
        "gate",
        "PASS",
        "FAIL",
        "hard",
        "alone",
        "n/a",
        "open",
        "ERROR",
        "% FAIL",
        "95% interval",
    )
    rows: list[Sequence[str]] = []
    for one in group.gates:
        _, _, percent, interval = _cells(one.share)
        counts = (one.passed, one.failed, one.hard, one.alone, one.not_applicable)
        words = [str(count) for count in (*counts, one.inconclusive, one.error)]
        rows.append((f"{one.gate.value} {NAMES[one.gate.value]}", *words, percent, interval))
    return (f"{title} by gate", heads, rows)


def _slices(title: str, slices: Iterable[Slice]) -> Table:
    heads = ("", "n", "broken", "any violation", "illusions, of loosely accepted", "undecided")
    rows: list[Sequence[str]] = [
        (one.name, str(one.n), one.broken.text, one.violation.text, one.illusions.text,
         str(one.undecided))
        for one in slices
    ]  # fmt: skip
    return (title, heads, rows)


def _counted(title: str, counts: Iterable[tuple[str, int]]) -> Table:
    return (title, ("reason", "n"), [(reason, str(count)) for reason, count in counts])


# --- two ways to write a table


def markdown(summary: Summary) -> str:
    """The audit as a Markdown document without a heading of its own."""
    parts = [_about(summary)]
    for title, heads, rows in tables(summary):
        lines = ["| " + " | ".join(map(_escaped, line)) + " |" for line in (heads, *rows)]
        rule = "|" + "|".join(["---", *["---:"] * (len(heads) - 1)]) + "|"
        parts.append("\n".join([f"**{_escaped(title)}**", "", lines[0], rule, *lines[1:]]))
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text).replace("|", "\\|")


def _about(summary: Summary) -> str:
    memory = "{} MiB in the first tenth of the rows, {} MiB in the last".format(
        *summary.worker_rss_mib
    )
    return "\n".join(
        f"- {line}"
        for line in (
            *summary.verifier,
            *summary.environments,
            f"{summary.seconds:.0f} s in verifiers; a judging process held {memory}",
        )
    )


def terminal(summary: Summary) -> Iterator[str]:
    """The audit as lines of text, columns aligned."""
    yield from _about(summary).splitlines()
    for title, heads, rows in tables(summary):
        cells = [[_printable(cell) for cell in line] for line in (heads, *rows)]
        widths = [max(len(line[column]) for line in cells) for column in range(len(heads))]
        yield ""
        yield _printable(title)
        for line in cells:
            first, rest = line[0].ljust(widths[0]), zip(line[1:], widths[1:], strict=True)
            yield "  " + "  ".join([first, *(cell.rjust(width) for cell, width in rest)]).rstrip()


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
