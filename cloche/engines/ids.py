"""Ranges of user ids on this machine: each box has one of its own for as long as it runs."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from cloche.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

# Above what systemd gives to its containers (524288 to 1879048191), below 2^31.
FIRST = 1_879_048_192
SIZE = 65_536
COUNT = 4_000


def lease(folder: Path, id: str) -> int:
    """The first id of a range that no other box on this machine has.

    Raises: EngineError.
    """
    return FIRST + lease_number(folder, id, COUNT) * SIZE


def lease_number(folder: Path, id: str, count: int) -> int:
    """A number below `count` that no other box has.

    Raises: EngineError.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    start = int(id, 36)
    for step in range(count):
        number = (start + step) % count
        try:
            # Whole or not at all, as a file with something in it is not.
            (folder / str(number)).symlink_to(id)
        except FileExistsError:
            continue
        return number
    raise EngineError(f"all {count} ranges of user ids are in use; delete sandboxes that are not needed")


def release(folder: Path, id: str) -> None:
    """Give back the range that is that box's, where it has one."""
    with suppress(FileNotFoundError), _alone(folder):
        start = int(id, 36) % COUNT
        for name in sorted(os.listdir(folder), key=lambda name: (int(name) - start) % COUNT):
            if _holder(folder / name) == id:
                (folder / name).unlink()
                return


def _holder(lease: Path) -> str:
    try:
        return os.readlink(lease)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file, as an older version made it
            raise
        return lease.read_text()


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Two that release one range must not take it from the box that got it in between."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
