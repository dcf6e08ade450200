"""The output of one execution as it comes in: text, in order, bounded."""

from __future__ import annotations

import codecs
from collections import deque
from typing import TYPE_CHECKING, Final

from cloche.errors import ProtocolError
from cloche.link import frames
from cloche.models import OutputChunk

if TYPE_CHECKING:
    from collections.abc import Callable

_SLACK: Final = frames.MAX_PAYLOAD
_LEAST: Final = 64
"""What a frame without octets counts as: a flood of them is a flood too."""


class _Stream:
    """Octets to text; a character may come in two pieces. With `kept`, of its text the beginning and the end stay."""

    __slots__ = ("_callback", "_half", "_head", "_head_size", "_pending", "_tail", "_tail_size", "dropped")

    def __init__(self, callback: Callable[[str], object] | None, kept: int) -> None:
        self._callback = callback
        self._half = kept // 2
        self._pending = b""
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._head_size = self._tail_size = self.dropped = 0

    def add(self, data: bytes | memoryview, final: bool = False) -> None:
        if self._pending:
            data = self._pending + bytes(data)
        text, used = codecs.utf_8_decode(data, "replace", final)
        self._pending = bytes(data[used:]) if used < len(data) else b""
        self.put(text)

    def put(self, text: str) -> None:
        if not text:
            return
        self._keep(text)
        if self._callback:
            self._callback(text)

    def _keep(self, text: str) -> None:
        if not self._half or self._head_size < self._half:
            self._head.append(text)
            self._head_size += len(text)
            return
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size - len(self._tail[0]) >= self._half:
            size = len(self._tail.popleft())
            self._tail_size -= size
            self.dropped += size

    def text(self) -> str:
        gap = f"\n[... {self.dropped} characters of output are missing here ...]\n" if self.dropped else ""
        return "".join([*self._head, gap, *self._tail])


class Output:
    """Both streams; `limit` 0 means no limit, and `kept` bounds what stays in memory of what may go on for ever."""

    __slots__ = ("_last", "_limit", "_size", "_stderr", "_stdout")

    def __init__(
        self,
        limit: int,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        *,
        kept: int = 0,
    ) -> None:
        self._limit = limit
        self._size = 0
        self._stdout = self._last = _Stream(on_stdout, kept)
        self._stderr = _Stream(on_stderr, kept)

    def add(self, frame: frames.Frame) -> None:
        """Takes STDOUT, STDERR and GAP.

        Raises: ProtocolError for any other, and for more than the limit.
        """
        if isinstance(frame, frames.Gap):
            self._count(_LEAST)
            return self._note_gap(frame.octets)
        if isinstance(frame, frames.Stdout):
            self._last = self._stdout
        elif isinstance(frame, frames.Stderr):
            self._last = self._stderr
        else:
            raise ProtocolError(f"{frame.NAME} was not expected between the output of an execution")
        self._count(len(frame.data) or _LEAST)
        self._last.add(frame.data)
        return None

    @property
    def dropped(self) -> int:
        """Characters of what is not kept of both."""
        return self._stdout.dropped + self._stderr.dropped

    def _count(self, octets: int) -> None:
        self._size += octets
        if self._limit and self._size > self._limit + _SLACK:
            raise ProtocolError(f"the keeper sent {self._size} octets of output; the limit is {self._limit}")

    def _note_gap(self, octets: int) -> None:
        self._last.add(b"", final=True)
        self._last.put(f"\n[... {octets} bytes of output are missing here ...]\n")

    def finish(self) -> tuple[str, str]:
        """All of stdout, all of stderr."""
        if self._size:
            self._stdout.add(b"", final=True)
            self._stderr.add(b"", final=True)
        return self._stdout.text(), self._stderr.text()


def to_chunk(frame: frames.Frame, offset: int) -> OutputChunk | None:
    """STDOUT, STDERR and GAP as a piece of output; None for any other."""
    match frame:
        case frames.Stdout():
            return OutputChunk(stream="stdout", offset=offset, data=bytes(frame.data), size=len(frame.data))
        case frames.Stderr():
            return OutputChunk(stream="stderr", offset=offset, data=bytes(frame.data), size=len(frame.data))
        case frames.Gap():
            return OutputChunk(stream="gap", offset=offset, data=b"", size=frame.octets)
        case _:
            return None
