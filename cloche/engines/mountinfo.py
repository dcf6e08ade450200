"""A table of mounts, as the kernel has it in /proc/PID/mountinfo."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_DELETED: Final = "//deleted"
"""What the kernel puts behind the path of what is not there any more; no path has two slashes."""


class MountRow(NamedTuple):
    """One mount; its words are as the kernel has them, whatever their octets are."""

    device: str
    root: str
    is_deleted: bool
    """What was mounted is not there any more."""
    path: str
    options: tuple[str, ...]
    kind: str
    source: str
    settings: tuple[str, ...]


def read_mounts(process: int | str = "self") -> list[MountRow]:
    """Those that a process sees.

    Raises: FileNotFoundError, ProcessLookupError.
    """
    with open(f"/proc/{process}/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        return parse_mounts(file.read())


def parse_mounts(text: str) -> list[MountRow]:
    """Each line; a path may hold whatever is no blank and no line feed, other ends of lines among it."""
    return [_parse(line) for line in text.split("\n") if line]


def _parse(line: str) -> MountRow:
    left, _, right = line.partition(" - ")
    fields = left.split(" ")
    kind, source, settings = right.split(" ", 2)
    return MountRow(
        device=fields[2],
        root=_unescape(fields[3].removesuffix(_DELETED)),
        is_deleted=fields[3].endswith(_DELETED),
        path=_unescape(fields[4]),
        options=tuple(fields[5].split(",")),
        kind=kind,
        source=_unescape(source),
        settings=tuple(settings.split(",")),
    )


def _unescape(text: str) -> str:
    """A blank, a tab, a line feed and a backslash are written as octal numbers."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
