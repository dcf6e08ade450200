# Generated from ../_async by `python tools/generate_sync.py`: change it there.
"""Octets to and from a port in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from cloche.client._sync.link import Operation


class Stream:
    """A connection to a port in a sandbox."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def read(self) -> bytes:
        """What comes next, as much as there is; nothing at the end."""
        return self._operation.connection.read()

    def write(self, data: bytes) -> None:
        """Send this."""
        self._operation.connection.write(data)

    def end(self) -> None:
        """Nothing more will be sent; reading goes on."""
        self._operation.connection.end_writing()

    def close(self) -> None:
        """Hang up."""
        self._operation.hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
