"""One file of this machine that is written: replaced as a whole, or where it is a device or a pipe written to."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final

from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Generator

FRESH: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_THERE: Final = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_UNFIT: Final = {stat.S_IFDIR: "folder", stat.S_IFSOCK: "socket"}
MOST_LINKS: Final = 8


@contextmanager
def open_target(path: str | os.PathLike[str]) -> Generator[IO[bytes]]:
    """The file at `path`: a regular one, or none, is replaced when all of it is there, and until then is as it was.

    Links are not followed: where a sandbox may write, they may lead anywhere. Those to our own open files are
    (/dev/stdout, /dev/fd/3).

    Raises: InvalidRequest.
    """
    path = os.fspath(path)
    number = own_descriptor(path)
    there = _find(path) if number is None else None
    is_replaced = number is None and (there is None or stat.S_ISREG(there.st_mode))
    with _replacing(path, there) if is_replaced else open(_open_there(path, number), "wb") as file:
        yield file


def own_descriptor(path: str) -> int | None:
    """The number of our own open file that is meant by /dev/stdout, /dev/fd/1 and the like."""
    for _ in range(MOST_LINKS):
        folder, name = os.path.split(os.path.abspath(path))
        if name.isdecimal() and os.path.realpath(folder) == f"/proc/{os.getpid()}/fd":
            return int(name)
        try:
            path = os.path.join(folder, os.readlink(path))
        except OSError:
            return None
    return None


def _find(path: str) -> os.stat_result | None:
    """What is there, where it can be written."""
    if not path:
        raise InvalidRequest("the target is ''; the path of a file was expected")
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refusal(path, error) from error
    kind = stat.S_IFMT(there.st_mode)
    if kind == stat.S_IFLNK:
        target = os.readlink(path)
        raise InvalidRequest(f"{path!r} is a link to {target!r}, and is not followed; name that, if you mean it")
    if kind in _UNFIT:
        raise InvalidRequest(f"{path!r} is a {_UNFIT[kind]}; a file was expected, or a name that is free")
    return there


def _open_there(path: str, number: int | None) -> int:
    """A device, a pipe, or what we have open already."""
    try:
        if number is not None:
            # Not opened again: it goes on where it stands, also behind what is in a file already.
            return os.dup(number)
        descriptor = os.open(path, _THERE)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise InvalidRequest(f"{path!r} is a pipe that nobody reads; start its reader first") from error
        raise _refusal(path, error) from error
    os.set_blocking(descriptor, True)
    return descriptor


@contextmanager
def _replacing(path: str, before: os.stat_result | None) -> Generator[IO[bytes]]:
    folder, name = os.path.split(os.path.abspath(path))
    scratch = os.path.join(folder, f".{name[:200]}.{os.urandom(6).hex()}")
    try:
        descriptor = os.open(scratch, FRESH, 0o644)
    except OSError as error:
        raise _refusal(path, error) from error
    try:
        with open(descriptor, "wb") as file:
            if before:
                _take_over(descriptor, before)
            yield file
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def _take_over(descriptor: int, before: os.stat_result) -> None:
    """Whose it is and who may read it, but no setuid: that was given to what stood there."""
    with suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, before.st_mode & 0o777)


def _refusal(path: str, error: OSError) -> InvalidRequest:
    return InvalidRequest(f"{path!r} can't be written: {error.strerror}")
