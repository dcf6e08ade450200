"""The output of one execution as it comes in: text, in order, bounded."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

from cloche.errors import ProtocolError
from cloche.link import frames

if TYPE_CHECKING:
    from collections.abc import Callable

_SLACK: Final = frames.MAX_PAYLOAD


class _Stream:
    """Octets to text; a character may come in two pieces."""

    __slots__ = ("_callback", "_pending", "parts")

    def __init__(self, callback: Callable[[str], object] | None) -> None:
        self._callback = callback
        self._pending = b""
        self.parts: list[str] = []

    def add(self, data: bytes | memoryview, final: bool = False) -> None:
        if self._pending:
            data = self._pending + bytes(data)
        text, used = codecs.utf_8_decode(data, "replace", final)
        self._pending = bytes(data[used:]) if used < len(data) else b""
        self.put(text)

    def put(self, text: str) -> None:
        if not text:
            return
        self.parts.append(text)
        if self._callback:
            self._callback(text)


class Output:
    """Both streams; `limit` 0 means no limit."""

    __slots__ = ("_last", "_limit", "_size", "_stderr", "_stdout")

    def __init__(
        self,
        limit: int,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
    ) -> None:
        self._limit = limit
        self._size = 0
        self._stdout = self._last = _Stream(on_stdout)
        self._stderr = _Stream(on_stderr)

    def add(self, frame: frames.Frame) -> None:
        """Takes STDOUT, STDERR and GAP.

        Raises: ProtocolError for any other, and for more than the limit.
        """
        if isinstance(frame, frames.Gap):
            return self._note_gap(frame.octets)
        if isinstance(frame, frames.Stdout):
            self._last = self._stdout
        elif isinstance(frame, frames.Stderr):
            self._last = self._stderr
        else:
            raise ProtocolError(f"{frame.NAME} was not expected between the output of an execution")
        self._size += len(frame.data)
        if self._limit and self._size > self._limit + _SLACK:
            raise ProtocolError(f"the keeper sent {self._size} octets of output; the limit is {self._limit}")
        self._last.add(frame.data)
        return None

    def _note_gap(self, octets: int) -> None:
        self._last.add(b"", final=True)
        self._last.put(f"\n[... {octets} bytes of output are missing here ...]\n")

    def finish(self) -> tuple[str, str]:
        """All of stdout, all of stderr."""
        if self._size:
            self._stdout.add(b"", final=True)
            self._stderr.add(b"", final=True)
        return "".join(self._stdout.parts), "".join(self._stderr.parts)
