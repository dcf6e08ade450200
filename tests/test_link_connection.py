"""Both kinds of connection against a peer on a real socket."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from cloche.errors import ProtocolError
from cloche.link import frames
from cloche.link.async_connection import AsyncConnection
from cloche.link.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

SECONDS = 5.0


@contextmanager
def serve(path: Path, answer: Callable[[socket.socket], object]) -> Generator[str]:
    """A keeper that takes one connection and does this with it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def work() -> None:
            peer, _ = listener.accept()
            with peer:
                answer(peer)

        thread = threading.Thread(target=work)
        thread.start()
        yield str(path)
        thread.join()


class Blocking:
    """The async connection, driven to its end at each call: one test for both."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()

    def open(self, path: str, timeout: float) -> Any:
        connection = self.runner.run(AsyncConnection.open(path, timeout))
        runner = self.runner

        class Driven:
            def __getattr__(self, name: str) -> Any:
                method = getattr(connection, name)

                async def call(*args: Any) -> Any:
                    found = method(*args)
                    return await found if asyncio.iscoroutine(found) else found

                return lambda *args: runner.run(call(*args))  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]

        return Driven()


@pytest.fixture(params=["blocking", "asyncio"])
def opener(request: pytest.FixtureRequest) -> Generator[Any]:
    if request.param == "blocking":
        yield Connection
        return
    driven = Blocking()
    yield driven
    driven.runner.close()


def test_a_reply_follows_a_request(tmp_path: Path, opener: Any) -> None:
    def answer(peer: socket.socket) -> None:
        assert peer.recv(100) == frames.encode(frames.Ports())
        peer.sendall(frames.encode(frames.Ok(7)))

    with serve(tmp_path / "s", answer) as path:
        connection = opener.open(path, SECONDS)
        assert connection.send(frames.encode(frames.Ports()))
        assert connection.receive(SECONDS) == frames.Ok(7)
        connection.close()


def test_a_path_that_is_too_long_for_an_address_can_be_connected_to(tmp_path: Path, opener: Any) -> None:
    folder = tmp_path / ("a" * 120)
    folder.mkdir()
    with serve(tmp_path / "s", lambda peer: peer.sendall(frames.encode(frames.End()))):
        (tmp_path / "s").rename(folder / "s")
        connection = opener.open(str(folder / "s"), SECONDS)
        assert connection.receive(SECONDS) == frames.End()
        connection.close()


def test_nobody_there_is_a_refused_connection(tmp_path: Path, opener: Any) -> None:
    with pytest.raises(ConnectionRefusedError):
        opener.open(str(tmp_path / "none"), SECONDS)


def test_a_keeper_that_says_nothing_is_not_waited_for(tmp_path: Path, opener: Any) -> None:
    with serve(tmp_path / "s", lambda peer: peer.recv(1)) as path:
        connection = opener.open(path, SECONDS)
        before = time.monotonic()
        with pytest.raises(TimeoutError):
            connection.receive(0.05)
        assert time.monotonic() - before < SECONDS
        connection.close()


def test_a_keeper_that_hangs_up_is_an_error(tmp_path: Path, opener: Any) -> None:
    with serve(tmp_path / "s", lambda peer: peer.sendall(b"\x05\0\0")) as path:
        connection = opener.open(path, SECONDS)
        with pytest.raises(ConnectionResetError):
            connection.receive(SECONDS)
        connection.close()


def test_what_a_keeper_said_before_it_hung_up_can_still_be_read(tmp_path: Path, opener: Any) -> None:
    with serve(tmp_path / "s", lambda peer: peer.sendall(frames.encode(frames.Error(28, b"full")))) as path:
        connection = opener.open(path, SECONDS)
        while connection.send(bytes(100_000)):
            pass
        assert connection.receive(SECONDS) == frames.Error(28, b"full")
        connection.close()


def test_nonsense_is_told(tmp_path: Path, opener: Any) -> None:
    with serve(tmp_path / "s", lambda peer: peer.sendall(b"HTTP/1.1 400 Bad Request\r\n")) as path:
        connection = opener.open(path, SECONDS)
        with pytest.raises(ProtocolError):
            connection.receive(SECONDS)
        connection.close()


def test_input_is_fed_while_output_comes(tmp_path: Path, opener: Any) -> None:
    size = 8 << 20

    def echo(peer: socket.socket) -> None:
        left = size + 8 * 5
        while left:
            data = peer.recv(min(left, 1 << 16))
            left -= len(data)
            peer.sendall(frames.encode(frames.Stdout(data)))

    with serve(tmp_path / "s", echo) as path:
        connection = opener.open(path, SECONDS)
        connection.feed(frames.encode(frames.Stdin(bytes(1 << 20))) for _ in range(8))
        seen = 0
        while seen < size + 8 * 5:
            seen += len(connection.receive(SECONDS).data)
        connection.close()


def test_a_connection_can_be_closed_while_it_feeds_a_peer_that_does_not_read(tmp_path: Path, opener: Any) -> None:
    with serve(
        tmp_path / "s", lambda peer: (peer.sendall(frames.encode(frames.Ok(0))), peer.recv(1, socket.MSG_PEEK))
    ) as path:
        connection = opener.open(path, SECONDS)
        connection.feed(bytes(1 << 20) for _ in range(64))
        assert connection.receive(SECONDS) == frames.Ok(0)
        connection.close()


def test_raw_octets_follow_the_last_frame(tmp_path: Path, opener: Any) -> None:
    def answer(peer: socket.socket) -> None:
        peer.sendall(frames.encode(frames.Ok(0)) + b"at once")
        assert peer.recv(10) == b"question"
        peer.sendall(b"answer")

    with serve(tmp_path / "s", answer) as path:
        connection = opener.open(path, SECONDS)
        connection.receive(SECONDS)
        assert connection.read() == b"at once"
        connection.write(b"question")
        connection.end_writing()
        assert connection.read() == b"answer"
        assert connection.read() == b""
        connection.close()


def test_a_limit_that_a_sender_sets_meanwhile_does_not_end_the_wait(tmp_path: Path) -> None:
    class Hasty(socket.socket):
        """One on which somebody else's limit has passed."""

        has_failed = False

        def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
            if not self.has_failed:
                self.has_failed = True
                raise TimeoutError
            return super().recv_into(buffer, nbytes, flags)

    answer = frames.encode(frames.Ok(7))
    with serve(tmp_path / "s", lambda peer: peer.sendall(answer)) as path, Hasty(socket.AF_UNIX) as sock:
        sock.connect(path)
        assert Connection(sock).receive(SECONDS) == frames.Ok(7)


def read_whole_frames(peer: socket.socket, count: int) -> None:
    """Frames of a megabyte, each of one letter only."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with peer.makefile("rb") as stream:
        for _ in range(count):
            header = stream.read(5)
            payload = stream.read(int.from_bytes(header[:4], "little"))
            assert payload == payload[:1] * frames.MAX_PAYLOAD, "two frames were mixed"
    peer.sendall(frames.encode(frames.Ok(1)))


def test_frames_of_several_threads_go_whole(tmp_path: Path) -> None:
    def send(connection: Connection, letter: bytes) -> None:
        for _ in range(4):
            connection.send(frames.encode(frames.Stdin(letter * frames.MAX_PAYLOAD)))

    with serve(tmp_path / "s", lambda peer: read_whole_frames(peer, 8)) as path:
        connection = Connection.open(path, SECONDS)
        threads = [threading.Thread(target=send, args=(connection, letter)) for letter in (b"a", b"b")]
        for thread in threads:
            thread.start()
        assert isinstance(connection.receive(30), frames.Ok)
        for thread in threads:
            thread.join()
        connection.close()


def test_frames_of_several_tasks_go_whole(tmp_path: Path) -> None:
    async def send(connection: AsyncConnection, letter: bytes) -> None:
        for _ in range(4):
            await connection.send(frames.encode(frames.Stdin(letter * frames.MAX_PAYLOAD)))

    async def go(path: str) -> None:
        connection = await AsyncConnection.open(path, SECONDS)
        await asyncio.gather(send(connection, b"a"), send(connection, b"b"))
        assert isinstance(await connection.receive(30), frames.Ok)
        await connection.close()

    with serve(tmp_path / "s", lambda peer: read_whole_frames(peer, 8)) as path:
        asyncio.run(go(path))
