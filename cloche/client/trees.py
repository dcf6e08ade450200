"""Folders of this machine that files come from and go to.

What is written is named by a sandbox, so it is hostile: every part of a name is checked and opened by itself,
below a descriptor of the folder, without following links; nothing that exists is opened for writing.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, Literal, Self

from cloche.client.targets import FRESH
from cloche.errors import InvalidRequest, SandboxError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLLOWED: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
MOST_PARTS: Final = 128
MOST_NAME: Final = 255


def split_name(name: bytes) -> tuple[bytes, ...]:
    """The parts of a relative name that a sandbox gave.

    Raises: SandboxError for one that could lead anywhere else.
    """
    parts = tuple(name.split(b"/"))
    if len(parts) > MOST_PARTS:
        raise SandboxError(
            f"the sandbox has a name of {len(parts)} folders in each other; at most {MOST_PARTS} are taken"
        )
    for part in parts:
        if part in (b"", b".", b"..") or b"\0" in part or len(part) > MOST_NAME:
            raise SandboxError(f"the sandbox gave the name {name[:200]!r}, which is not one that can be made here")
    return parts


class TargetFolder:
    """A folder of this machine that is filled with what a sandbox has: in the end all of it is there, or nothing."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)

    def __enter__(self) -> Self:
        """Made where it is missing, and must be empty: then nothing of yours can be in the way.

        Raises: InvalidRequest.
        """
        if not self._path:
            raise InvalidRequest("the target is ''; the path of a folder was expected")
        folder, self._name = os.path.split(os.path.abspath(self._path))
        self._scratch = f".{self._name[:200]}.{os.urandom(6).hex()}"
        # Filled within the folder where it is there, as it may be a mount, or where somebody is; else beside it.
        self._is_there = os.path.lexists(self._path)
        try:
            self._outer = os.open(self._path, _FOLDER) if self._is_there else os.open(folder, _FOLLOWED)
        except OSError as error:
            raise self._refusal(error) from error
        try:
            self._root = self._make_scratch()
        except BaseException:
            os.close(self._outer)
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._put_in_place()
        finally:
            os.close(self._root)
            with suppress(FileNotFoundError):
                shutil.rmtree(self._scratch, dir_fd=self._outer)
            os.close(self._outer)

    def _make_scratch(self) -> int:
        if self._is_there:
            self._refuse_full(os.listdir(self._outer))
        try:
            os.mkdir(self._scratch, 0o755, dir_fd=self._outer)
            return os.open(self._scratch, _FOLDER, dir_fd=self._outer)
        except OSError as error:
            raise self._refusal(error) from error

    def _put_in_place(self) -> None:
        try:
            if not self._is_there:
                os.rename(self._scratch, self._name, src_dir_fd=self._outer, dst_dir_fd=self._outer)
                return
            self._refuse_full([name for name in os.listdir(self._outer) if name != self._scratch])
            for name in os.listdir(self._root):
                os.rename(name, name, src_dir_fd=self._root, dst_dir_fd=self._outer)
        except OSError as error:
            raise self._refusal(error) from error

    def _refuse_full(self, names: Sequence[str]) -> None:
        if names:
            raise InvalidRequest(f"the folder {self._path!r} is not empty; name one that is, or one to be made")

    def _refusal(self, error: OSError) -> InvalidRequest:
        return InvalidRequest(f"{self._path!r} is no folder that can be opened: {error.strerror}")

    def make_folder(self, parts: tuple[bytes, ...]) -> None:
        """Its owner can always look into it."""
        with self._parent(parts) as parent:
            os.mkdir(parts[-1], 0o755, dir_fd=parent)

    def open_file(self, parts: tuple[bytes, ...], mode: int) -> IO[bytes]:
        """A file that was not there; no more than permission bits are taken over."""
        with self._parent(parts) as parent:
            return open(os.open(parts[-1], FRESH, mode & 0o755 | 0o600, dir_fd=parent), "wb")

    def make_link(self, parts: tuple[bytes, ...], target: bytes) -> None:
        """Only text: nothing here ever follows it."""
        with self._parent(parts) as parent:
            os.symlink(target, parts[-1], dir_fd=parent)

    @contextmanager
    def _parent(self, parts: tuple[bytes, ...]) -> Generator[int]:
        folder = os.dup(self._root)
        try:
            for part in parts[:-1]:
                inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        except OSError as error:
            raise SandboxError(f"{b'/'.join(parts)[:200]!r} can't be made here: {error.strerror}") from error
        finally:
            os.close(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntry:
    """A file, folder or link of this machine, to be sent to a sandbox."""

    name: str
    """Relative to the folder that is sent."""
    kind: Literal["file", "folder", "link"]
    mode: int
    target: str = ""
    descriptor: int = -1
    """Of a file, open for reading."""

    def open(self) -> IO[bytes]:
        """The file; whoever gets the entry opens and closes it."""
        return open(self.descriptor, "rb")


def find_source(path: str | os.PathLike[str]) -> SourceEntry:
    """What is to be sent: a file, open, or a folder.

    Raises: InvalidRequest.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise InvalidRequest(f"{os.fspath(path)!r} can't be read: {error.strerror}") from error
    info = os.fstat(descriptor)
    if stat.S_ISREG(info.st_mode):
        return SourceEntry(name="", kind="file", mode=info.st_mode & 0o777, descriptor=descriptor)
    os.close(descriptor)
    if stat.S_ISDIR(info.st_mode):
        return SourceEntry(name="", kind="folder", mode=info.st_mode & 0o777)
    raise InvalidRequest(f"{os.fspath(path)!r} is neither a file nor a folder")


def walk_source(path: str | os.PathLike[str]) -> Iterator[SourceEntry]:
    """What is in a folder of this machine, folders before what is in them; no link is followed.

    Raises: InvalidRequest.
    """
    top = os.fspath(path)
    with _told(top):
        root = os.open(top, _FOLLOWED)
    try:
        yield from _walk(root, top, "")
    finally:
        os.close(root)


def _walk(folder: int, top: str, inside: str) -> Iterator[SourceEntry]:
    with _told(os.path.join(top, inside)):
        names = sorted(os.listdir(folder))
    for name in names:
        path = os.path.join(inside, name)
        with _told(os.path.join(top, path)):
            entry = _source_entry(path, name, folder)
            inner = os.open(name, _FOLDER, dir_fd=folder) if entry and entry.kind == "folder" else None
        if entry:
            yield entry
        if inner is not None:
            try:
                yield from _walk(inner, top, path)
            finally:
                os.close(inner)


@contextmanager
def _told(path: str) -> Generator[None]:
    """What can't be read is not left out in silence."""
    try:
        yield
    except OSError as error:
        raise InvalidRequest(f"{path!r} can't be read: {error.strerror}") from error


def _source_entry(path: str, name: str, folder: int) -> SourceEntry | None:
    info = os.lstat(name, dir_fd=folder)
    mode = stat.S_IMODE(info.st_mode) & 0o777
    if stat.S_ISDIR(info.st_mode):
        return SourceEntry(name=path, kind="folder", mode=mode)
    if stat.S_ISLNK(info.st_mode):
        return SourceEntry(name=path, kind="link", mode=mode, target=os.readlink(name, dir_fd=folder))
    if not stat.S_ISREG(info.st_mode):
        return None
    return SourceEntry(name=path, kind="file", mode=mode, descriptor=os.open(name, _READ, dir_fd=folder))
