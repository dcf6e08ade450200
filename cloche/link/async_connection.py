"""A connection to a keeper for asyncio and uvloop: the methods of `connection.Connection`."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from cloche.link import frames
from cloche.link.connection import STALL_SECONDS, address_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class AsyncConnection:
    """Frames out, frames in.

    Raises ConnectionError where the keeper is gone, TimeoutError, and ProtocolError for nonsense.
    """

    __slots__ = ("_feeder", "_loop", "_reader", "_sending", "_socket")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._loop = asyncio.get_running_loop()
        self._reader = frames.Reader()
        self._sending = asyncio.Lock()
        self._feeder: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: str, timeout: float) -> Self:
        """Connect to the keeper that listens there; it may be busy for a moment."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            await _connect(sock, path, time.monotonic() + timeout)
        except FileNotFoundError as error:
            sock.close()
            raise ConnectionRefusedError(*error.args) from error
        except BaseException:
            sock.close()
            raise
        return cls(sock)

    async def send(self, data: bytes) -> bool:
        """Hand over encoded frames; False where the keeper has hung up: `receive` may tell why."""
        try:
            # A frame goes whole before one of another task.
            async with self._sending:
                sent = self._send_now(data)
                if sent < len(data):
                    async with asyncio.timeout(STALL_SECONDS):
                        await self._loop.sock_sendall(self._socket, memoryview(data)[sent:])
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _send_now(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    async def receive(self, timeout: float | None) -> frames.Frame:
        """The next frame; its octets, where they are a view, are good until the next call."""
        reader = self._reader
        frame = reader.next()
        if frame is not None:
            return frame
        async with asyncio.timeout(timeout):
            while frame is None:
                count = await self._loop.sock_recv_into(self._socket, reader.space())
                if not count:
                    raise ConnectionResetError("the keeper hung up")
                reader.filled(count)
                frame = reader.next()
        return frame

    def feed(self, pieces: Iterable[bytes]) -> None:
        """Send encoded frames while others are being received; ends with the connection."""
        self._feeder = asyncio.create_task(self._feed(pieces))

    async def _feed(self, pieces: Iterable[bytes]) -> None:
        with suppress(OSError):
            for piece in pieces:
                await self._loop.sock_sendall(self._socket, piece)

    async def read(self) -> bytes:
        """Octets of a raw stream; none at its end."""
        return self._reader.take() or await self._loop.sock_recv(self._socket, 1 << 16)

    async def write(self, data: bytes) -> None:
        """Octets for a raw stream."""
        await self._loop.sock_sendall(self._socket, data)

    def end_writing(self) -> None:
        """Nothing more will be written to the raw stream."""
        self._socket.shutdown(socket.SHUT_WR)

    async def close(self) -> None:
        """Hang up."""
        if self._feeder:
            self._feeder.cancel()
            with suppress(asyncio.CancelledError):
                await self._feeder
        self._socket.close()


async def _connect(sock: socket.socket, path: str, deadline: float) -> None:
    """A Unix socket connects at once or, while the keeper's queue is full, not at all: then nothing tells when."""
    while True:
        try:
            with address_of(path) as address:
                return sock.connect(address)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError("the keeper's queue of connections stays full") from None
            await asyncio.sleep(0.002)
