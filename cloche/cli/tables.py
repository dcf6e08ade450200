"""Answers of commands: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from cloche.cli.terminal import clean

if TYPE_CHECKING:
    from collections.abc import Sequence


def print_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as what is in them; the last one is not padded. Cells may come from a sandbox."""
    cells = [list(headers), *([clean(str(cell)) for cell in row] for row in rows)]
    widths = [max(columns_of(row[column]) for row in cells) for column in range(len(headers))]
    for row in cells:
        padded = [cell + " " * (width - columns_of(cell)) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(padded).rstrip())


def columns_of(text: str) -> int:
    """How much room it takes on a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata

    # A character that is set on the one before takes none.
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def print_json(value: Any) -> None:
    """One document; what JSON does not know is told as text."""
    # In pieces: it may hold all that a command wrote.
    json.dump(value, sys.stdout, indent=2, default=str)
    print()


def age(seconds: float) -> str:
    """How long that is, in its largest unit."""
    whole = max(0, int(seconds))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"
