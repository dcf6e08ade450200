# Generated from ../_async by `python tools/generate_sync.py`: change it there.
"""The files of a sandbox."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final, Literal, Self, overload

from cloche.client._sync.transfers import Transfers
from cloche.client.contents import pieces_of
from cloche.client.paths import absolute, to_entry, to_octets, to_text
from cloche.client.refusals import refuse_file
from cloche.errors import FileError, InvalidRequest
from cloche.link import frames
from cloche.models import FileEvent

if TYPE_CHECKING:
    import builtins
    from collections.abc import Iterable, Iterator
    from os import PathLike
    from types import TracebackType

    from cloche.client._sync.link import Link, Operation
    from cloche.client.executions import Preparation
    from cloche.models import Entry

REPLY_SECONDS: Final = 30.0
_MISSING: Final = (2, 20)
"""ENOENT and ENOTDIR."""
_EVENTS: Final[dict[int, Literal["made", "written", "removed", "moved_from", "moved_to", "attributes", "lost"]]] = {
    1: "made",
    2: "written",
    3: "removed",
    4: "moved_from",
    5: "moved_to",
    6: "attributes",
    7: "lost",
}


class Files:
    """The files of one sandbox: `sandbox.files`. Paths are relative to the workspace, else to the home."""

    def __init__(self, link: Link, preparation: Preparation) -> None:
        identity = preparation.identity(None)
        self._link = link
        self._ids = (identity.uid, identity.gid)
        self._cwd = preparation.default_cwd()
        self._transfers = Transfers(link, self._ids)

    @overload
    def read(self, path: str, format: Literal["text"] = "text") -> str: ...
    @overload
    def read(self, path: str, format: Literal["bytes"]) -> bytes: ...
    @overload
    def read(self, path: str, format: Literal["stream"]) -> Iterator[bytes]: ...

    def read(self, path: str, format: Literal["text", "bytes", "stream"] = "text") -> str | bytes | Iterator[bytes]:
        """A file's content: UTF-8 text, octets, or for any size a stream of octets.

        Raises: FileError, InvalidRequest.
        """
        full = self._full(path)
        if format == "stream":
            return self._transfers.read(full)
        if format not in ("text", "bytes"):
            raise InvalidRequest(f"format is {format!r}; 'text', 'bytes' or 'stream' was expected")
        content = self._transfers.read_all(full)
        if format == "bytes":
            return bytes(content)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(
                f"{path!r} is no UTF-8 text ({error.reason} at {error.start}); use format='bytes'"
            ) from None

    def write(
        self,
        path: str,
        content: str | bytes | IO[bytes] | IO[str] | Iterable[bytes],
        *,
        mode: int = 0o644,
        exclusive: bool = False,
    ) -> int:
        """Write a file, missing folders included; gives the number of octets. `mode` is for one that is made.

        Raises: FileError, InvalidRequest.
        """
        flags = frames.PARENTS | (frames.WRITE_EXCLUSIVE if exclusive else 0)
        return self._transfers.write(self._full(path), pieces_of(content), flags=flags, mode=mode)

    def append(self, path: str, content: str | bytes | IO[bytes] | IO[str] | Iterable[bytes]) -> int:
        """Write at the end of a file, which is made where it is missing."""
        flags = frames.PARENTS | frames.WRITE_APPEND
        return self._transfers.write(self._full(path), pieces_of(content), flags=flags, mode=0o644)

    def list(self, path: str = ".", depth: int = 1) -> builtins.list[Entry]:
        """What is in a folder, and down to `depth` in its folders; links are not followed."""
        if not 1 <= depth < 1 << 32:
            raise InvalidRequest(f"depth is {depth}; 1 or more was expected")
        full = self._full(path)
        request = frames.List(*self._ids, depth=depth, path=to_octets(full))
        found = self._link.collect(request, frames.Entry, refuse_file(full))
        return [to_entry(entry, full) for entry in found]

    def stat(self, path: str, *, follow: bool = True) -> Entry:
        """What a path is; with `follow=False` a link itself.

        Raises: FileError.
        """
        full = self._full(path)
        request = frames.Stat(0 if follow else frames.STAT_NOFOLLOW, *self._ids, path=to_octets(full))
        found = self._link.ask(request, frames.Entry, refuse_file(full))
        found.name = b""
        return to_entry(found, full)

    def exists(self, path: str) -> bool:
        """True where there is something at that path."""
        try:
            self.stat(path)
        except FileError as error:
            if error.errno in _MISSING:
                return False
            raise
        return True

    def move(self, source: str, destination: str) -> None:
        """Rename, as rename(2) does: a file at the destination is replaced; missing folders are made."""
        full = self._full(source)
        request = frames.Move(
            frames.PARENTS, *self._ids, source=to_octets(full), destination=to_octets(self._full(destination))
        )
        self._link.ask(request, frames.Ok, refuse_file(full))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or an empty folder; with `recursive` a folder with all that is in it."""
        full = self._full(path)
        request = frames.Remove(frames.REMOVE_RECURSIVE if recursive else 0, *self._ids, path=to_octets(full))
        with self._link.start(request, refuse_file(full)) as operation:
            # A large tree takes as long as it takes.
            operation.expect(frames.Ok, None)

    def make_dir(self, path: str, *, mode: int = 0o755) -> None:
        """Make a folder, missing ones above it included; one that is there is fine."""
        self._transfers.make_folder(self._full(path), mode)

    def watch(self, path: str = ".", *, recursive: bool = False) -> Watch:
        """Changes in a folder from this moment on, to be iterated over and closed."""
        full = self._full(path)
        flags = frames.WATCH_RECURSIVE if recursive else 0
        request = frames.Watch(flags, *self._ids, path=to_octets(full))
        operation = self._link.start(request, refuse_file(full))
        operation.__enter__()
        try:
            operation.expect(frames.Ok, REPLY_SECONDS)
        except BaseException:
            operation.hang_up()
            raise
        return Watch(operation)

    def upload(self, local: str | PathLike[str], remote: str, *, unpack: bool = False) -> int:
        """Send a file, or a folder with all that is in it, or with `unpack=True` what is in a tar archive.

        Gives the number of octets. Links are sent as they are and never followed.

        Raises: FileError, InvalidRequest.
        """
        return self._transfers.upload(local, self._full(remote), unpack=unpack)

    def download(
        self, remote: str, local: str | PathLike[str], *, max_bytes: int = 4 << 30, max_entries: int = 200_000
    ) -> int:
        """Fetch a file; or a folder: to a tar archive where `local` ends with `.tar`, else to an empty folder.

        Gives the number of octets.

        Raises: FileError, InvalidRequest, SandboxError for more than the bounds.
        """
        return self._transfers.download(self._full(remote), local, max_bytes=max_bytes, max_entries=max_entries)

    def _full(self, path: str) -> str:
        return absolute(path, self._cwd)


class Watch:
    """The changes in a folder, as they happen."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def next(self, timeout: float | None = None) -> FileEvent:
        """The next change.

        Raises: TimeoutError where there is none within `timeout` seconds.
        """
        frame = self._operation.receive_within(timeout)
        if not isinstance(frame, frames.Event):
            raise self._operation.broken(f"{frame.NAME} was not expected while watching")
        return FileEvent(kind=_EVENTS[frame.kind], name=to_text(frame.name))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> FileEvent:
        return self.next()

    def close(self) -> None:
        """Stop watching."""
        self._operation.hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
