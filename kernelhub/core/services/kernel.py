"""Registering candidate kernels: one row for one content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kernelhub.core.choices import AuthorKind
from kernelhub.core.models import Kernel, Task
from kernelhub.core.services.errors import InvalidKernelError
from verifier.records import Language

if TYPE_CHECKING:
    from django.contrib.auth.models import User

SOURCE_NBYTES: Final = 1024 * 1024
"""Largest source. The largest kernel that we know of has a tenth of it."""

_MARKS: Final = (
    (Language.CUDA, re.compile(r"__global__|\bload_inline\b")),
    (Language.TRITON, re.compile(r"^\s*(?:import|from)\s+triton\b", re.MULTILINE)),
    (Language.TORCH, re.compile(r"^\s*(?:import|from)\s+torch\b", re.MULTILINE)),
    (Language.NUMPY, re.compile(r"^\s*(?:import|from)\s+numpy\b", re.MULTILINE)),
)


def language_of(source: str) -> Language:
    """What the source is written in, by what it uses and not by what it says of itself."""
    return next((kind for kind, mark in _MARKS if mark.search(source)), Language.TORCH)


def source_check(source: str, entry: str) -> bytes:
    """The source's bytes; InvalidKernelError says why it cannot be stored."""
    if not entry.isidentifier() or len(entry) > 120:
        raise InvalidKernelError(f"The entry point {entry[:120]!r} is no Python name.")
    if "\0" in source:
        raise InvalidKernelError("The source holds a NUL character; Python cannot read it.")
    try:
        content = source.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidKernelError("The source is not valid UTF-8.") from error
    if len(content) > SOURCE_NBYTES:
        raise InvalidKernelError(
            f"The source has {len(content):,} bytes; at most {SOURCE_NBYTES:,} are taken."
        )
    if not content.strip():
        raise InvalidKernelError("The source is empty.")
    return content


def kernel_register(
    *,
    task: Task,
    source: str,
    entry: str = "run",
    author_name: str = "",
    author_kind: str = AuthorKind.PERSON.value,
    user: User | None = None,
    parent: Kernel | None = None,
    label: str = "",
    group: str = "",
    expectation: str = "",
    claimed: Mapping[str, Any] | None = None,
    notes: str = "",
) -> Kernel:
    """The task's kernel with this content; whoever registered it first stays its author.

    InvalidKernelError when the source cannot be stored.
    """
    content = source_check(source, entry)
    kernel, _ = Kernel.objects.get_or_create(
        task=task,
        sha256=hashlib.sha256(content).hexdigest(),
        entry=entry,
        defaults={
            "source": source,
            "language": language_of(source).value,
            "author_name": author_name,
            "author_kind": author_kind,
            "user": user,
            "parent": parent,
            "label": label,
            "group": group,
            "expectation": expectation,
            "claimed": claimed,
            "notes": notes,
        },
    )
    return kernel
