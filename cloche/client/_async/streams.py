"""Octets to and from a port in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from cloche.client._async.link import AsyncOperation


class AsyncStream:
    """A connection to a port in a sandbox."""

    def __init__(self, operation: AsyncOperation) -> None:
        self._operation = operation

    async def read(self) -> bytes:
        """What comes next, as much as there is; nothing at the end."""
        return await self._operation.connection.read()

    async def write(self, data: bytes) -> None:
        """Send this."""
        await self._operation.connection.write(data)

    async def end(self) -> None:
        """Nothing more will be sent; reading goes on."""
        self._operation.connection.end_writing()

    async def close(self) -> None:
        """Hang up."""
        await self._operation.hang_up()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
