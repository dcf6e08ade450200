"""Who makes a sandbox and who removes what it is to stand on do not meet: one holds it, the other waits and takes it."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cloche.images.host import NAME
from cloche.images.toolchains import ADDED

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextmanager
def hold(home: Path, image: str) -> Generator[None]:
    """While a sandbox is made on that image nothing of it is removed. It may be gone before: look for it within."""
    with _locked(_folder(home, image), fcntl.LOCK_SH):
        yield


@contextmanager
def take(home: Path, image: str) -> Generator[None]:
    """To remove it, or of the host image a runtime that was added: those that were being made on it are whole then."""
    with _locked(_folder(home, image), fcntl.LOCK_EX):
        yield


def _folder(home: Path, image: str) -> str:
    # Of the host image nothing can be removed but what was added.
    return f"{home}/{ADDED}" if image == NAME else f"{home}/images/{image.replace('/', '_')}"


@contextmanager
def _locked(folder: str, how: int) -> Generator[None]:
    lock = _lock(folder, how)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _lock(folder: str, how: int) -> int | None:
    """On the folder itself; None where it is not there. The kernel lets go of it when the process ends."""
    while True:
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        fcntl.flock(lock, how)
        try:
            if os.path.samestat(os.fstat(lock), os.stat(folder)):
                return lock
        except FileNotFoundError:
            pass
        # Another one has its name by now.
        os.close(lock)
