# Generated from ../_async by `python tools/generate_sync.py`: change it there.
"""Moving whole files and folders between this machine and a sandbox."""

from __future__ import annotations

import os
from io import BytesIO
from typing import TYPE_CHECKING, Final

from cloche.client.archives import ArchiveTarget, walk_archive
from cloche.client.contents import pieces_of
from cloche.client.paths import to_entry, to_octets, to_text
from cloche.client.refusals import refuse_file
from cloche.client.targets import open_target
from cloche.client.trees import TargetFolder, find_source, split_name, walk_source
from cloche.errors import InvalidRequest, SandboxError
from cloche.link import frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike
    from typing import IO

    from cloche.client._sync.link import Link
    from cloche.client.trees import SourceEntry

REPLY_SECONDS: Final = 60.0
MOST_AT_ONCE: Final = 1 << 30
DEEPEST: Final = (1 << 32) - 1
_KINDS: Final = (ord("f"), ord("d"))
"""What has a content to be fetched."""


class Transfers:
    """Reading and writing as one user; all paths inside are absolute."""

    def __init__(self, link: Link, ids: tuple[int, int]) -> None:
        self._link = link
        self._ids = ids

    def read(self, path: str) -> Iterator[bytes]:
        """A file's content as it comes."""
        for piece in self._pieces(path):
            yield bytes(piece)

    def _pieces(self, path: str) -> Iterator[bytes | memoryview]:
        """The same, each piece good until the next is asked for."""
        request = frames.Read(*self._ids, offset=0, limit=0, path=to_octets(path))
        with self._link.start(request, refuse_file(path)) as operation:
            while True:
                frame = operation.receive(REPLY_SECONDS)
                if isinstance(frame, frames.Data):
                    yield frame.data
                elif isinstance(frame, frames.End):
                    return
                else:
                    raise operation.broken(f"{frame.NAME} was not expected between a file's octets")

    def read_all(self, path: str) -> bytes:
        """A file's content, where it is not too much to hold."""
        content = BytesIO()
        for piece in self._pieces(path):
            content.write(piece)
            if content.tell() > MOST_AT_ONCE:
                raise SandboxError(f"{path!r} has more than {MOST_AT_ONCE} octets; read it with format='stream'")
        return content.getvalue()

    def write(self, path: str, pieces: Iterable[bytes | memoryview], *, flags: int, mode: int) -> int:
        """A file's content; gives its size."""
        request = frames.Write(flags, *self._ids, mode=mode, path=to_octets(path))
        with self._link.start(request, refuse_file(path)) as operation:
            for piece in pieces:
                if not operation.send(frames.Data(piece)):
                    break
            operation.send(frames.End())
            return (operation.expect(frames.Ok, REPLY_SECONDS)).value

    def make_folder(self, path: str, mode: int) -> None:
        """One that is there is fine."""
        self._make(frames.MAKE_FOLDER, path, "", mode)

    def _make(self, kind: int, path: str, target: str, mode: int) -> None:
        request = frames.Make(
            frames.PARENTS, *self._ids, mode=mode, kind=kind, path=to_octets(path), target=to_octets(target)
        )
        self._link.ask(request, frames.Ok, refuse_file(path))

    def upload(self, local: str | PathLike[str], remote: str, *, unpack: bool) -> int:
        """A file, a folder or an archive's members."""
        if unpack:
            return self._send_all(walk_archive(local), remote)
        source = find_source(local)
        if source.kind == "folder":
            return self._send_all(walk_source(local), remote)
        return self._send_file(source, remote)

    def _send_all(self, entries: Iterator[SourceEntry], remote: str) -> int:
        self.make_folder(remote, 0o755)
        total = 0
        for entry in entries:
            path = f"{remote}/{entry.name}"
            if entry.kind == "folder":
                self.make_folder(path, entry.mode | 0o700)
            elif entry.kind == "link":
                self._make(frames.MAKE_LINK, path, entry.target, 0)
            else:
                total += self._send_file(entry, path)
        return total

    def _send_file(self, source: SourceEntry, path: str) -> int:
        with source.open() as file:
            return self.write(path, pieces_of(file), flags=frames.PARENTS, mode=source.mode)

    def download(self, remote: str, local: str | PathLike[str], *, max_bytes: int, max_entries: int) -> int:
        """A file, or a folder as folder or archive."""
        request = frames.Stat(0, *self._ids, path=to_octets(remote))
        found = self._link.ask(request, frames.Entry, refuse_file(remote))
        if found.kind not in _KINDS:
            kind = to_entry(found, remote).kind
            raise InvalidRequest(f"{remote!r} is a {kind}; a file or a folder was expected")
        if found.kind != ord("d"):
            with open_target(local) as file:
                return self._fetch(remote, file, max_bytes)
        request = frames.List(*self._ids, depth=DEEPEST, path=to_octets(remote))
        entries = self._link.collect(request, frames.Entry, refuse_file(remote))
        if len(entries) > max_entries:
            raise SandboxError(
                f"{remote!r} holds {len(entries)} entries; max_entries is {max_entries}", parameter="max_entries"
            )
        if os.fspath(local).endswith(".tar"):
            with open_target(local) as file, ArchiveTarget(file) as archive:
                return self._fetch_all(remote, entries, archive, max_bytes)
        with TargetFolder(local) as folder:
            return self._fetch_all(remote, entries, folder, max_bytes)

    def _fetch_all(
        self, remote: str, entries: list[frames.Entry], target: TargetFolder | ArchiveTarget, max_bytes: int
    ) -> int:
        total = 0
        links: list[frames.Entry] = []
        for entry in entries:
            parts = split_name(entry.name)
            kind = to_entry(entry, remote).kind
            if kind == "folder":
                target.make_folder(parts)
            elif kind == "link":
                links.append(entry)
            elif kind == "file":
                with target.open_file(parts, entry.mode) as file:
                    total += self._fetch(f"{remote}/{to_text(entry.name)}", file, max_bytes - total)
        # Last of all: no name that comes after can lead through one.
        for entry in links:
            target.make_link(split_name(entry.name), entry.target)
        return total

    def _fetch(self, path: str, file: IO[bytes], max_bytes: int) -> int:
        size = 0
        for piece in self._pieces(path):
            size += len(piece)
            if size > max_bytes:
                raise SandboxError(
                    f"{path!r} takes more than max_bytes allows; raise it, or fetch less", parameter="max_bytes"
                )
            file.write(piece)
        return size
