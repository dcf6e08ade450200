"""Paths inside a sandbox: octets to the kernel, `str` with surrogate escapes to people."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final, Literal

from cloche.errors import InvalidRequest
from cloche.models import Entry

if TYPE_CHECKING:
    from cloche.link import frames

_KINDS: Final[dict[int, Literal["file", "folder", "link", "pipe", "socket", "device"]]] = {
    ord("f"): "file",
    ord("d"): "folder",
    ord("l"): "link",
    ord("p"): "pipe",
    ord("s"): "socket",
    ord("c"): "device",
    ord("b"): "device",
}


def absolute(path: str, cwd: str) -> str:
    """The path, relative to `cwd` where it is not absolute.

    Raises: InvalidRequest.
    """
    if not path or "\0" in path:
        raise InvalidRequest(f"the path is {path!r}; a name without NUL was expected")
    return posixpath.join(cwd, path)


def to_octets(path: str) -> bytes:
    """As the kernel has it; a name that is no UTF-8 comes and goes as surrogate escapes."""
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"the path {path!r} holds a character that no file name has: {error.reason}") from None


def to_text(path: bytes) -> str:
    """As people have it."""
    return path.decode("utf-8", "surrogateescape")


def to_entry(frame: frames.Entry, folder: str) -> Entry:
    """An entry of LIST or STAT."""
    name = to_text(frame.name)
    kind = _KINDS[frame.kind]
    return Entry(
        name=posixpath.basename(name or folder.rstrip("/")),
        path=posixpath.join(folder, name) if name else folder,
        kind=kind,
        size=frame.size,
        mode=frame.mode & 0o7777,
        uid=frame.uid,
        gid=frame.gid,
        modified=frame.mtime_ns / 1e9,
        target=to_text(frame.target) if kind == "link" else None,
    )
