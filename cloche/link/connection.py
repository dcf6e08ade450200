"""A connection to a keeper, blocking: one for each operation."""

from __future__ import annotations

import os
import socket
import time
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING, Self

from cloche.link import frames

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

LONGEST_ADDRESS = 107
"""Octets of a path that fit in a sockaddr_un."""
STALL_SECONDS = 60.0
"""A keeper that takes none of our octets for so long is not going to."""


@contextmanager
def address_of(path: str) -> Generator[str]:
    """An address for a socket at a path of any length."""
    if len(os.fsencode(path)) <= LONGEST_ADDRESS:
        yield path
        return
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


class Connection:
    """Frames out, frames in.

    Raises ConnectionError where the keeper is gone, TimeoutError, and ProtocolError for nonsense.
    """

    __slots__ = ("_feeder", "_reader", "_sending", "_socket")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._reader = frames.Reader()
        self._sending = Lock()
        self._feeder: Thread | None = None

    @classmethod
    def open(cls, path: str, timeout: float) -> Self:
        """Connect to the keeper that listens there; it may be busy for a moment."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(timeout)
            if path.isascii() and len(path) <= LONGEST_ADDRESS:
                sock.connect(path)
            else:
                with address_of(path) as address:
                    sock.connect(address)
        except FileNotFoundError as error:
            sock.close()
            raise ConnectionRefusedError(*error.args) from error
        except BaseException:
            sock.close()
            raise
        return cls(sock)

    def send(self, data: bytes) -> bool:
        """Hand over encoded frames; False where the keeper has hung up: `receive` may tell why."""
        try:
            # A frame goes whole before one of another thread.
            with self._sending:
                self._socket.settimeout(STALL_SECONDS)
                self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def receive(self, timeout: float | None) -> frames.Frame:
        """The next frame; its octets, where they are a view, are good until the next call."""
        reader = self._reader
        frame = reader.next()
        if frame is not None:
            return frame
        sock = self._socket
        deadline = None if timeout is None else time.monotonic() + timeout
        while frame is None:
            # For the other half of a frame there is only the time that is left.
            sock.settimeout(None if deadline is None else max(deadline - time.monotonic(), 0.001))
            try:
                count = sock.recv_into(reader.space())
            except TimeoutError:
                # Another thread that sends sets a limit of its own.
                if deadline is not None and time.monotonic() >= deadline:
                    raise
                continue
            if not count:
                raise ConnectionResetError("the keeper hung up")
            reader.filled(count)
            frame = reader.next()
        return frame

    def feed(self, pieces: Iterable[bytes]) -> None:
        """Send encoded frames while others are being received; ends with the connection."""
        self._feeder = Thread(target=self._feed, args=(pieces,), name="cloche-feed", daemon=True)
        self._feeder.start()

    def _feed(self, pieces: Iterable[bytes]) -> None:
        # A process that does not read its input may still be at work: no limit of time here.
        with suppress(OSError):
            for piece in pieces:
                self._send_patiently(piece)

    def _send_patiently(self, piece: bytes) -> None:
        view = memoryview(piece)
        while view:
            with suppress(TimeoutError):
                view = view[self._socket.send(view) :]

    def read(self) -> bytes:
        """Octets of a raw stream; none at its end."""
        left = self._reader.take()
        if left:
            return left
        self._socket.settimeout(None)
        return self._socket.recv(1 << 16)

    def write(self, data: bytes) -> None:
        """Octets for a raw stream."""
        self._socket.settimeout(None)
        self._socket.sendall(data)

    def end_writing(self) -> None:
        """Nothing more will be written to the raw stream."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Hang up."""
        if self._feeder:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._feeder.join()
        self._socket.close()
