"""Folders to make something in, below CLOCHE_HOME: gone afterwards, and after a kill when the next one is made."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator

FOLDER = "scratch"


class Scratch(NamedTuple):
    """A folder that nobody else uses."""

    folder: Path
    lock: int
    """A descriptor: as long as a process has it open, nobody takes the folder for left behind."""


@contextmanager
def make_scratch(home: Path) -> Generator[Scratch]:
    """One on the file system of CLOCHE_HOME: what was made in it goes to its place by being renamed."""
    parent = home / FOLDER
    # What is unpacked in it may be writable for everyone.
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sweep(parent)
    scratch = _make(parent)
    try:
        yield scratch
    finally:
        # What resists is swept the next time.
        shutil.rmtree(scratch.folder, ignore_errors=True)
        os.close(scratch.lock)


def _make(parent: Path) -> Scratch:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent))
        lock = _lock(folder)
        if lock is not None:
            return Scratch(folder, lock)


def _sweep(parent: Path) -> None:
    for folder in parent.iterdir():
        lock = _lock(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """None where another has it, or has removed it."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(folder)):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None
