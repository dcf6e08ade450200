"""What a process sees of file systems, as the kernel tells it: never what was asked for."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_PLAIN: Final = frozenset(("rw", "ro", "relatime", "noatime"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One file system, where it is seen."""

    path: str
    access: Literal["ro", "rw"]
    what: str
    """In words: what is seen there."""
    source: str | None
    """The path on this machine, where it is a part of this machine's files."""
    options: tuple[str, ...]
    """Such as nosuid, nodev, noexec."""


class _Row(NamedTuple):
    device: str
    root: str
    path: str
    options: tuple[str, ...]
    kind: str
    settings: dict[str, str]


def mounts_of(pid: int) -> list[Mount]:
    """Those that a process of this machine sees, by path; none where it has ended."""
    try:
        seen = Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, ProcessLookupError):
        return []
    own = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    return read_mounts(seen, own)


def read_mounts(seen: str, own: str) -> list[Mount]:
    """The mounts of one /proc/PID/mountinfo, told in paths of another, which is this machine's."""
    ours = [_parse(line) for line in own.splitlines()]
    found = {row.path: _tell(row, ours) for row in map(_parse, seen.splitlines())}
    return [found[path] for path in sorted(found)]


def _parse(line: str) -> _Row:
    left, _, right = line.partition(" - ")
    fields = left.split(" ")
    kind, _, settings = right.split(" ", 2)
    pairs = (setting.partition("=") for setting in settings.split(","))
    return _Row(
        device=fields[2],
        root=_unescape(fields[3]),
        path=_unescape(fields[4]),
        options=tuple(fields[5].split(",")),
        kind=kind,
        settings={name: value for name, _, value in pairs},
    )


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def _tell(row: _Row, ours: Iterable[_Row]) -> Mount:
    source = _source(row, ours)
    return Mount(
        path=row.path,
        # Of the whole file system or of this view of it.
        access="ro" if "ro" in row.options or "ro" in row.settings else "rw",
        what=_describe(row, source),
        source=source,
        options=tuple(option for option in row.options if option not in _PLAIN),
    )


def _source(row: _Row, ours: Iterable[_Row]) -> str | None:
    """Where this machine sees the same: the longest of its own mounts that holds it, of those on top of others."""
    holding = [own for own in ours if own.device == row.device and _is_below(row.root, own.root)]
    if not holding:
        return None
    best = max(holding, key=lambda own: len(own.root))
    return posixpath.normpath(posixpath.join(best.path, posixpath.relpath(row.root, best.root)))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _describe(row: _Row, source: str | None) -> str:
    if source is not None:
        return f"this machine's {source}"
    if row.kind == "overlay":
        return "a disk of its own over the image"
    size = row.settings.get("size")
    return f"{row.kind}, {size}" if size else row.kind
