"""The ids that an ordinary user was given for user namespaces (subuid(5), subgid(5)), and how a box uses them."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cloche.engines.machine import find_program

if TYPE_CHECKING:
    from collections.abc import Iterable

SLICE: Final = 2048
"""What one box takes of them: enough for 0 to 2046 and nobody, so that 65,536 serve for 32 boxes."""
LAST, NOBODY, USER = SLICE - 2, 65_534, 1000
MAPPERS: Final = ("newuidmap", "newgidmap")


class Slice(NamedTuple):
    """The ids of one box on this machine: the first of its users and of its groups."""

    uid: int
    gid: int


def find_slices() -> list[Slice]:
    """Those of this process's user; none where nothing could map them."""
    if not all(map(find_program, MAPPERS)):
        return []
    names = _names(os.geteuid())
    users, groups = (_cut(Path(path), names) for path in ("/etc/subuid", "/etc/subgid"))
    return [Slice(uid, gid) for uid, gid in zip(users, groups, strict=False)]


def make_rows(first: int, own: int, *, is_user: bool) -> list[tuple[int, int, int]]:
    """Inside, outside, how many: `own` is the box's root, or its user, whose then are the files in /workspace."""
    if is_user:
        rows = [(0, first, USER), (USER, own, 1), (USER + 1, first + USER, LAST - USER)]
    else:
        rows = [(0, own, 1), (1, first, LAST)]
    return [*rows, (NOBODY, first + LAST, 1)]


def make_map(rows: Iterable[tuple[int, int, int]]) -> str:
    """The words for newuidmap and newgidmap."""
    return " ".join(str(number) for row in rows for number in row)


def outside(first: int, own: int, *, is_user: bool) -> int:
    """What root of that box is on this machine."""
    return first if is_user else own


def parse_ranges(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """First id and count of each range that belongs to one of the names."""
    wanted = set(names)
    rows = (line.strip().split(":") for line in text.splitlines())
    return [
        (int(row[1]), int(row[2]))
        for row in rows
        if len(row) == 3 and row[0] in wanted and row[1].isdecimal() and row[2].isdecimal()
    ]


def _cut(path: Path, names: Iterable[str]) -> list[int]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [
        start for first, count in parse_ranges(text, names) for start in range(first, first + count - SLICE + 1, SLICE)
    ]


def _names(uid: int) -> list[str]:
    try:
        return [str(uid), pwd.getpwuid(uid).pw_name]
    except KeyError:
        return [str(uid)]
