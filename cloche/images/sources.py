"""What the sources of runtimes, which look alike, have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cloche.images.runtimes import text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SECONDS = 1800.0
"""What a download may take."""
ELSEWHERE = "an image that has it (cloche images add NAME ARCHIVE)"


class Got(NamedTuple):
    """A runtime, whole, in a scratch folder."""

    name: str
    """Language and full version: `node-22.11.0`."""
    folder: Path
    """It has a `bin`."""


def either(way: str, *others: str) -> str:
    """A choice, in words."""
    *first, last = way, *others
    return f"{', '.join(first)}, or {last}" if first else last


def list_versions(there: Iterable[tuple[int, ...]], wanted: str, parts: int) -> str:
    """Those that begin as the wanted one does, in full; else all, by the numbers that tell runtimes apart."""
    numbers = tuple(int(part) for part in wanted.split("."))[:parts]
    near = sorted({version for version in there if version[:parts] == numbers})
    return ", ".join(map(text, near or sorted({version[:parts] for version in there}))) or "none at all"
