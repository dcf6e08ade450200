"""What a process sees of file systems, as the kernel tells it: never what was asked for."""

from __future__ import annotations

import errno
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from cloche.engines import mountinfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cloche.engines.mountinfo import MountRow

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


def mounts_of(pid: int) -> list[Mount]:
    """Those that a process of this machine sees, by path; none where it has ended."""
    try:
        seen = mountinfo.read_mounts(pid)
    except (FileNotFoundError, ProcessLookupError):
        return []
    except OSError as error:
        # One that is about to end has left its namespaces.
        if error.errno != errno.EINVAL:
            raise
        return []
    return tell_mounts(seen, mountinfo.read_mounts())


def tell_mounts(seen: Iterable[MountRow], own: Sequence[MountRow]) -> list[Mount]:
    """The mounts of one process, told in paths of another, which is this machine's."""
    found = {row.path: _tell(row, own) for row in seen}
    return [found[path] for path in sorted(found)]


def _tell(row: MountRow, ours: Iterable[MountRow]) -> Mount:
    source = _source(row, ours)
    return Mount(
        path=row.path,
        # Of the whole file system or of this view of it.
        access="ro" if "ro" in row.options or "ro" in row.settings else "rw",
        what=_describe(row, source),
        source=source,
        options=tuple(option for option in row.options if option not in _PLAIN),
    )


def _source(row: MountRow, ours: Iterable[MountRow]) -> str | None:
    """Where this machine sees the same: the longest of its own mounts that holds it, of those on top of others."""
    holding = [own for own in ours if own.device == row.device and _is_below(row.root, own.root)]
    if not holding:
        return None
    best = max(holding, key=lambda own: len(own.root))
    return posixpath.normpath(posixpath.join(best.path, posixpath.relpath(row.root, best.root)))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _describe(row: MountRow, source: str | None) -> str:
    if source is not None:
        return f"this machine's {source}{' (deleted)' if row.is_deleted else ''}"
    if row.kind == "overlay":
        return "a disk of its own over the image"
    size = next((setting[5:] for setting in row.settings if setting.startswith("size=")), None)
    return f"{row.kind}, {size}" if size else row.kind
