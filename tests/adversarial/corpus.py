"""The corpus of hostile kernels: each class of attack, who must catch it, and where.

A class is a folder of this name next to this file. Its ``hostile_*.py`` attack, its ``twin_*.py``
are as honest as they look alike. ``elsewhere`` names kernels of the gates' own folders that belong
to the class, too. The table below is the claim; test_corpus.py measures it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from tests.gates.caged import ROOT
from verifier.records import GateId

HERE: Final = Path(__file__).parent


class Where(StrEnum):
    """Which device can judge a kernel."""

    ANYWHERE = "anywhere"
    INTERPRETER = "interpreter"
    """It is about Triton's interpreter; elsewhere it is a wrong kernel like any other."""
    DEVICE = "device"
    """It needs a GPU: streams, events, graphs, a tuner that measures."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One hostile kernel. ``gates`` are those of which one at least must fail it; ``loose`` says
    whether the loose test accepts it (None: it may or may not); ``escapes`` is why no such gate
    fails it as of today, '' when one does; ``timed`` that it is honest until the clock runs."""

    name: str
    gates: tuple[GateId, ...]
    where: Where = Where.ANYWHERE
    loose: bool | None = True
    escapes: str = ""
    seen_in: tuple[GateId, ...] = ()
    """Further gates that are asked, in whose calls it shows."""
    timed: bool = False


@dataclass(frozen=True, slots=True)
class ThreatClass:
    """What an attacker may try, in words, and the kernels that do."""

    slug: str
    title: str
    attacks: tuple[Attack, ...]
    elsewhere: tuple[str, ...] = ()
    """Paths below tests/gates, without suffix."""
    twins_where: Where = Where.ANYWHERE

    @property
    def folder(self) -> Path:
        return HERE / self.slug

    def path(self, attack: Attack) -> Path:
        return self.folder / f"{attack.name}.py"

    @property
    def twins(self) -> list[Path]:
        return sorted(self.folder.glob("twin_*.py"))


def attack(
    name: str,
    *numbers: int,
    where: Where = Where.ANYWHERE,
    loose: bool | None = True,
    escapes: str = "",
    seen_in: tuple[int, ...] = (),
    timed: bool = False,
) -> Attack:
    """An attack that one of the gates of these numbers must fail."""
    gates, others = (tuple(GateId(f"G{n}") for n in those) for those in (numbers, seen_in))
    return Attack(f"hostile_{name}", gates, where, loose, escapes, others, timed)


CLASSES: Final[tuple[ThreatClass, ...]] = (
    ThreatClass(
        "stale_output",
        "The answer to an earlier call",
        (attack("one_behind", 1, 12, loose=False),),
        ("g12/violator_sampled_cache",),
    ),
    ThreatClass(
        "cache_by_pointer",
        "Remembers answers by address",
        (attack("with_launch", 1, 12, loose=False),),
        ("g12/violator_pointer_cache",),
    ),
    ThreatClass(
        "cache_by_id",
        "Remembers answers by the identity of an object",
        (attack("identity", 1, 4, 12, loose=None),),
    ),
    ThreatClass(
        "cache_by_content",
        "Remembers answers by content, or by some of it",
        (
            attack("copied", 12),
            attack("all_but_last", 12),
        ),
        ("g12/violator_content_cache", "g12/violator_sampled_cache"),
    ),
    ThreatClass(
        "cached_weight",
        "Keeps what it made of an input that seldom changes",
        (attack("squares", 12),),
    ),
    ThreatClass(
        "constant_output",
        "The same answer whatever comes",
        (attack("zeros", 1, loose=False), attack("nan", 1, loose=False)),
        ("g01/violator",),
    ),
    ThreatClass(
        "input_passthrough",
        "The input for an answer",
        (attack("identity", 1, loose=False),),
    ),
    ThreatClass(
        "wrong_structure",
        "Another shape, dtype or number of outputs",
        (
            attack("broadcast", 1, loose=False),
            attack("half", 1, loose=None),
            attack("extra", 1, loose=False),
        ),
        ("g05/violator_output",),
    ),
    ThreatClass(
        "torch_fallback",
        "Torch works where its own kernel was made to fail",
        (attack("suppressed", 12),),
        ("g12/violator_fallback", "g12/violator_odd_fallback"),
    ),
    ThreatClass(
        "dead_kernel",
        "A kernel for show beside the work of a library",
        (attack("overwritten", 12),),
        ("g12/violator", "g12/violator_numpy_beside"),
    ),
    ThreatClass(
        "hidden_dispatch",
        "A library works where no one looks for it",
        (
            attack("thread", 12),
            attack("gradient", 12),
            attack("override", 12),
            attack("blinds_the_profiler", 12),
        ),
        ("g12/violator_unseen_torch", "g12/violator_torch_inside"),
    ),
    ThreatClass(
        "host_compute",
        "The host computes, and a kernel, if any, passes the answer on",
        (
            attack("numpy_on_a_device", 12, where=Where.DEVICE),
            attack("python", 12),
        ),
        ("g12/violator_numpy_passed_on", "g12/hostile_late_grid", "g12/hostile_words"),
    ),
    ThreatClass(
        "smuggled_bits",
        "The answer of a library passes in pieces that a launch has left before",
        (attack("bits", 12), attack("picked", 12)),
        ("g12/hostile_byte_table", "g12/hostile_grid", "g12/hostile_great_ints"),
    ),
    ThreatClass(
        "smuggled_address",
        "A launch is led to an answer that lies where nobody looks",
        (
            attack("frozen", 12),
            attack("three_parts", 12),
        ),
        ("g12/hostile_address", "g12/hostile_halved_address", "g12/hostile_neighbour"),
    ),
    ThreatClass(
        "plumbing_is_the_work",
        "What wrappers may do with torch is all there is to do",
        (
            attack("transposes", 12),
            attack("sorts", 12),
            attack("moves_afterwards", 12),
        ),
        ("g12/violator_real_sums", "g12/hostile_integer_task"),
    ),
    ThreatClass(
        "patched_comparator",
        "Comparisons of torch's say yes",
        (attack("allclose", 1, 12, loose=False), attack("operators", 8, 12)),
        ("g12/violator_patches",),
    ),
    ThreatClass(
        "patched_timer",
        "Clocks stand still",
        (
            attack("clock", 8, 12),
            attack("events", 8, 12),
            attack("judges_clock", 8, 12),
        ),
    ),
    ThreatClass(
        "patched_random",
        "Random states and sources are changed",
        (attack("seed", 8), attack("randn", 8, 12)),
        ("g08/violator_seeds",),
    ),
    ThreatClass(
        "patched_judge",
        "What gathers evidence in its process gathers none",
        (
            attack("witness", 8, 12),
            attack("forged_state", 8, 12),
        ),
    ),
    ThreatClass(
        "knows_when_watched",
        "Honest in the calls that are looked into, and in no other",
        (
            attack("mode_stack", 12),
            attack("frames", 12),
            attack("closure", 12),
            attack("slow_launch", 12),
            attack("probe_launch", 12),
        ),
        ("g12/unseen_silence", "g12/hostile_alike"),
    ),
    ThreatClass(
        "input_mutation",
        "The caller's data are not what they were",
        (
            attack("late", 8),
            attack("odd_sizes", 8, seen_in=(4,)),
        ),
        ("g08/violator", "g08/violator_scaled_back"),
    ),
    ThreatClass(
        "output_reuse",
        "A later call writes over an earlier answer",
        (attack("ring", 8),),
        ("g08/violator_reused_output",),
    ),
    ThreatClass(
        "aliasing",
        "An output lies in memory of the caller's",
        (
            attack("row_of_one", 8, seen_in=(4,)),
            attack("view", 8),
        ),
    ),
    ThreatClass(
        "shape_specialised",
        "Made for the size that is looked at",
        (
            attack("refuses_the_rest", 2, 5, 12),
            attack("hard_coded", 4),
        ),
        ("g04/violator", "g12/hostile_small_only"),
    ),
    ThreatClass(
        "seed_specialised",
        "Made for the seed that checkers like",
        (attack("known_seed", 1, loose=False),),
    ),
    ThreatClass(
        "second_path",
        "Careless at sizes that only some gates try",
        (
            attack("drops_nan", 2),
            attack("long_rows", 2),
            attack("overflows", 10),
            attack("half_carry", 6),
            attack("ignores_strides", 7),
            attack("unsteady", 3),
            attack("reduced_precision", 5),
        ),
    ),
    ThreatClass(
        "data_dependent",
        "Honest for some data, or for some time",
        (
            attack("knows_the_probe", 4, 6),
            attack("round_inputs", 1, loose=False),
            attack("first_calls", 12),
            attack("unlisted_sizes", 12),
        ),
        ("g12/hostile_alike", "g12/hostile_small_only"),
    ),
    ThreatClass(
        "precision_downgrade",
        "Fewer bits than promised",
        (),
        ("g05/violator", "g06/violator", "g06/violator_tree"),
    ),
    ThreatClass(
        "reads_referee",
        "Looks for the answer where the referee keeps it",
        (attack("files", 1, loose=False), attack("memory", 1, loose=False)),
    ),
    ThreatClass(
        "forged_result",
        "Says that it has an answer, in place of having one",
        (
            attack("channel", 1, loose=False),
            attack("exit", 1, loose=False),
            attack("lazy_sign", 1, loose=False),
            attack("subclass", 1, 12, loose=False),
        ),
        ("g12/hostile_subclass",),
    ),
    ThreatClass(
        "static_evasion",
        "Reads well to whoever only reads",
        (
            attack("exec", 12),
            attack("getattr", 12),
            attack("import_hook", 12),
            attack("decorator", 12),
        ),
    ),
    ThreatClass(
        "disguised_language",
        "Written in another language than its words suggest",
        (
            attack("says_cuda", 12, where=Where.DEVICE),
            attack("calls_cuda", 12),
            attack("says_numpy", 12),
            attack("says_cuda_torch", 12),
        ),
    ),
    ThreatClass(
        "engine_specific",
        "One program for the interpreter and another for the compiler",
        (
            attack("raises_in_compiler", 12, where=Where.INTERPRETER),
            attack("two_bodies", 12, where=Where.INTERPRETER),
            attack("other_text", 12, where=Where.INTERPRETER),
        ),
        ("g12/violator_python_inside", "g12/violator_global_number"),
    ),
    ThreatClass(
        "around_a_launch",
        "Changes what runs a launch, for as long as it runs",
        (
            attack("builder", 8, 12, where=Where.INTERPRETER),
            attack("profile", 8, 12, where=Where.INTERPRETER),
            attack("formatter", 8, 12, where=Where.INTERPRETER),
        ),
    ),
    ThreatClass(
        "deferred_work",
        "Returns first and works later",
        (attack("thread", 1, 12, loose=False), attack("raw_thread", 1, 12, loose=False)),
    ),
    ThreatClass(
        "skips_when_timed",
        "Stops working after warm-up",
        (attack("new_addresses", 12, timed=True),),
        ("g12/violator_tires",),
    ),
    ThreatClass(
        "tuner_cheats",
        "A configuration that is fast, for it leaves work out",
        (attack("fast_configuration", 1, 3),),
    ),
    ThreatClass(
        "freed_memory",
        "Memory that still holds an answer",
        (attack("leftovers", 1, 9, loose=False), attack("old_pool", 1, 9, loose=False)),
        ("g09/violator_unwritten_tail",),
    ),
    ThreatClass(
        "refuses_the_probe",
        "Refuses whatever would show what is wrong with it",
        (
            attack("refuses_nan", 2),
            attack("refuses_and_sulks", 2),
            attack("refuses_unlisted", 2),
            attack("refuses_few_rows", 12),
        ),
        ("g12/unjudged_picky",),
    ),
    ThreatClass(
        "far_access",
        "Reads or writes beyond where anybody looks",
        (
            attack("far_write", 9),
            attack("resized", 9),
        ),
        ("g09/violator", "g09/violator_reads_past_end"),
    ),
    ThreatClass(
        "edits_harness",
        "Changes the files of whoever judges",
        (attack("files", 1, loose=False),),
    ),
    ThreatClass(
        "side_stream",
        "Works on a stream that nobody waits for",
        (
            attack("private_stream", 12, where=Where.DEVICE),
            attack("default_stream", 12, where=Where.DEVICE),
        ),
    ),
    ThreatClass(
        "stale_graph",
        "Replays a graph over memory that is no longer the input's",
        (attack("stale_pointers", 1, 12, where=Where.DEVICE, loose=None),),
        twins_where=Where.DEVICE,
    ),
)


def attacks() -> Iterator[tuple[ThreatClass, Attack]]:
    """All of them, with their classes."""
    for each in CLASSES:
        for one in each.attacks:
            yield each, one


def twins() -> Iterator[tuple[ThreatClass, Path]]:
    """All honest ones, with their classes."""
    for each in CLASSES:
        for one in each.twins:
            yield each, one


def referred(each: ThreatClass) -> list[Path]:
    """The kernels of the gates' own folders that stand for this class."""
    return [ROOT / "tests/gates" / f"{name}.py" for name in each.elsewhere]
