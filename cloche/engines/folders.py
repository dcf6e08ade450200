"""Removing a folder that a sandbox could write to: no link is followed, no depth is too deep."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from cloche.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

MOST_TRIES = 1000
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(folder: Path) -> None:
    """Remove it with all that is in it; one that is gone is fine, and so are others who remove it too.

    Folders within are first moved up to the top: two descriptors do, however deep it is.
    """
    for _ in range(MOST_TRIES):
        try:
            _try_to_remove(folder)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise
        if not os.path.lexists(folder):
            return
    raise EngineError(f"the folder {str(folder)!r} can't be removed: somebody goes on to put files into it")


def _try_to_remove(folder: Path) -> None:
    top = os.open(folder, _OPEN)
    try:
        while folders := _empty(top, top):
            for name in folders:
                _remove_one(top, name)
    finally:
        os.close(top)
    os.rmdir(folder)


def _remove_one(top: int, name: str) -> None:
    # Its owner may have taken their own rights away; the owner is us.
    with suppress(PermissionError):
        os.chmod(name, 0o700, dir_fd=top)
    inner = os.open(name, _OPEN, dir_fd=top)
    try:
        _empty(inner, top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def _empty(folder: int, top: int) -> list[str]:
    """Removes its files, moves its folders to `top`; names those that are there already."""
    folders: list[str] = []
    for name in os.listdir(folder):
        if not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
            os.unlink(name, dir_fd=folder)
        elif folder == top:
            folders.append(name)
        else:
            with suppress(PermissionError):
                os.chmod(name, 0o700, dir_fd=folder)
            os.rename(name, os.urandom(16).hex(), src_dir_fd=folder, dst_dir_fd=top)
    return folders
