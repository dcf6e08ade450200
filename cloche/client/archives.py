"""Tar archives of this machine that files come from and go to."""

from __future__ import annotations

import lzma
import os
import tarfile
import tempfile
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Self

from cloche.client.trees import MOST_NAME, SourceEntry
from cloche.errors import InvalidRequest, SandboxError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator


class ArchiveTarget:
    """An archive that is filled with what a sandbox has; the names have been checked."""

    def __init__(self, file: IO[bytes]) -> None:
        self._tar = tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)
        self._names: set[tuple[bytes, ...]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._tar.close()

    def make_folder(self, parts: tuple[bytes, ...]) -> None:
        """A folder's header."""
        info = self._info(parts, tarfile.DIRTYPE, 0o755)
        self._tar.addfile(info)

    @contextmanager
    def open_file(self, parts: tuple[bytes, ...], mode: int) -> Generator[IO[bytes]]:
        """A file to write to: only when all of it is there is its size certain, whatever the sandbox said."""
        info = self._info(parts, tarfile.REGTYPE, mode & 0o755 | 0o600)
        with tempfile.SpooledTemporaryFile(max_size=8 << 20) as file:
            yield file  # pyright: ignore[reportReturnType]
            info.size = file.tell()
            file.seek(0)
            self._tar.addfile(info, file)  # pyright: ignore[reportArgumentType]

    def make_link(self, parts: tuple[bytes, ...], target: bytes) -> None:
        """A link's header."""
        info = self._info(parts, tarfile.SYMTYPE, 0o777)
        info.linkname = os.fsdecode(target)
        self._tar.addfile(info)

    def _info(self, parts: tuple[bytes, ...], type: bytes, mode: int) -> tarfile.TarInfo:
        # The same name twice, as a link and as a folder, would lead whoever unpacks it astray.
        if parts in self._names:
            raise SandboxError(f"the sandbox gave the name {b'/'.join(parts)[:200]!r} twice")
        self._names.add(parts)
        info = tarfile.TarInfo(os.fsdecode(b"/".join(parts)))
        info.type, info.mode = type, mode
        return info


def walk_archive(path: str | os.PathLike[str]) -> Iterator[SourceEntry]:
    """What is in a tar archive, plain or compressed.

    Raises: InvalidRequest.
    """
    name = os.fspath(path)
    try:
        with tarfile.open(name, "r:*", tarinfo=_Member) as tar:
            for member in tar:
                entry = _source_entry(tar, member)
                if entry:
                    yield entry
    except OSError as error:
        # Also of what is packed: it has no words of the system's own then.
        raise InvalidRequest(f"{name!r} can't be read: {error.strerror or error}") from error
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        is_start = str(error).startswith("file could not be opened")
        what = "is no tar archive, plain or packed with gzip, bzip2 or xz" if is_start else f"is damaged: {error}"
        raise InvalidRequest(f"{name!r} {what}") from error


class _Member(tarfile.TarInfo):
    """Python takes any header that is none for the end of the archive; here only the mark of the end is one."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                raise
            raise tarfile.ReadError(str(error) if buf else "it stops without an end") from error


def _source_entry(tar: tarfile.TarFile, member: tarfile.TarInfo) -> SourceEntry | None:
    name = os.path.normpath(member.name)
    parts = name.split("/")
    if os.path.isabs(name) or ".." in parts or "\0" in name or max(map(len, parts)) > MOST_NAME:
        raise InvalidRequest(f"the archive has a member {member.name[:200]!r}; a relative name without .. was expected")
    mode = member.mode & 0o777
    if name == ".":
        return None
    if member.isdir():
        return SourceEntry(name=name, kind="folder", mode=mode)
    if member.issym():
        return SourceEntry(name=name, kind="link", mode=mode, target=member.linkname)
    if member.isreg() or member.islnk():
        return SourceEntry(name=name, kind="file", mode=mode, descriptor=_copy(tar, member))
    raise InvalidRequest(f"the archive has a member {name!r} that is neither file, folder nor link")


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo) -> int:
    """The content as a file of its own, without a name."""
    source = tar.extractfile(member)
    if source is None:
        raise InvalidRequest(f"the archive's member {member.name!r} links to nothing in it")
    with tempfile.TemporaryFile() as scratch, source:
        while piece := source.read(1 << 20):
            scratch.write(piece)
        scratch.seek(0)
        return os.dup(scratch.fileno())
