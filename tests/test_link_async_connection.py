"""What only the asyncio connection can meet; the rest is in test_link_connection.py, for both."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from cloche.link import frames
from cloche.link.async_connection import AsyncConnection

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 5.0


def test_a_full_queue_of_connections_is_waited_for(tmp_path: Path) -> None:
    async def body(listener: socket.socket, path: str) -> None:
        first = [await AsyncConnection.open(path, SECONDS)]
        error: TimeoutError | None = None
        while error is None:
            try:
                first.append(await AsyncConnection.open(path, 0.05))
            except TimeoutError as full:
                error = full
        assert "queue" in str(error)
        waiting = asyncio.create_task(AsyncConnection.open(path, SECONDS))
        await asyncio.sleep(0)
        for _ in first:
            listener.accept()[0].close()
        for connection in [*first, await waiting]:
            await connection.close()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(1)
        asyncio.run(body(listener, str(tmp_path / "s")))


def test_a_receive_that_is_cancelled_loses_nothing(tmp_path: Path) -> None:
    async def body(listener: socket.socket, path: str) -> None:
        connection = await AsyncConnection.open(path, SECONDS)
        peer, _ = listener.accept()
        waiting = asyncio.create_task(connection.receive(SECONDS))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        peer.sendall(frames.encode(frames.Ok(7)))
        assert await connection.receive(SECONDS) == frames.Ok(7)
        await connection.close()
        peer.close()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        asyncio.run(body(listener, str(tmp_path / "s")))
