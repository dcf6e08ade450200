"""A keeper that misbehaves, and one that is gone."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.client.trees import TargetFolder
from cloche.errors import ClocheError, ProtocolError, SandboxError, SandboxNotFound
from cloche.link import frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Impostor = Callable[[bytes], Sandbox]

STARTED = frames.encode(frames.Started(2, 0, 0))


@pytest.fixture
def impostor(home: Path) -> Iterator[Impostor]:
    """A real box, at whose address something else answers every request with these octets."""
    listeners: list[socket.socket] = []
    made: list[Sandbox] = []

    def make(answer: bytes) -> Sandbox:
        box = Sandbox.create(engine="host")
        made.append(box)
        listener = socket.socket(socket.AF_UNIX)
        listeners.append(listener)
        path = home / f"impostor-{len(made)}"
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=serve, args=(listener, answer), daemon=True).start()
        record = box._record  # pyright: ignore[reportPrivateUsage]
        return Sandbox(replace(record, box=replace(record.box, socket=path)))

    yield make
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for box in made:
        box.kill()


def serve(listener: socket.socket, answer: bytes) -> None:
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        with peer, suppress(BrokenPipeError):
            peer.recv(1 << 20)
            peer.sendall(answer)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff" * 64,
        frames.encode(frames.End()),
        frames.encode(frames.Ports()),
        STARTED + frames.encode(frames.Ok(0)),
        STARTED + frames.encode(frames.Exit(-1, 0, 0, 0, 0, 0, 0, 0, 0)),
        STARTED + frames.encode(frames.Stdout(bytes(1 << 20))) * 4,
    ],
)
def test_a_keeper_that_breaks_the_protocol_loses_its_box(impostor: Impostor, answer: bytes) -> None:
    box = impostor(answer)
    with pytest.raises(ProtocolError, match="has been ended for it"):
        box.commands.run(["true"], output_bytes=2048)
    with pytest.raises(SandboxNotFound):
        Sandbox.connect(box.id)


def test_a_keeper_that_hangs_up_in_the_middle_is_told(impostor: Impostor) -> None:
    box = impostor(STARTED + frames.encode(frames.Stdout(b"half")))
    with pytest.raises(SandboxError, match="does not answer as it should: the keeper hung up"):
        box.commands.run(["true"])


def test_a_listing_without_end_is_not_collected(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloche.client._sync.link.MOST_OCTETS", 1 << 20)
    entry = frames.encode(frames.Entry(ord("f"), 0, 0, 0, 0, 0, 1, 1, b"n" * 250, b""))
    with pytest.raises(ProtocolError, match="ENTRY was not expected after"):
        impostor(entry * 10_000).files.list()


def test_a_file_without_end_is_not_held_in_memory(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloche.client._sync.transfers.MOST_AT_ONCE", 1 << 20)
    with pytest.raises(SandboxError, match="format='stream'"):
        impostor(frames.encode(frames.Data(bytes(1 << 20))) * 2).files.read("x")


def test_a_keeper_of_another_version_is_told(impostor: Impostor) -> None:
    box = impostor(frames.encode(frames.Error(93, b"")))
    with pytest.raises(ProtocolError, match="another version"):
        box.usage()


def test_whatever_a_keeper_answers_the_error_is_ours(impostor: Impostor) -> None:
    chance = random.Random(3)
    for _ in range(3):
        box = impostor(STARTED + chance.randbytes(200))
        for action in (box.usage, box.ports, box.commands.list, box.files.list):
            with pytest.raises(ClocheError):
                action()


@pytest.mark.parametrize("name", [b"../escape", b"/etc/escape", b"a/../../escape", b""])
def test_a_hostile_listing_writes_nothing_outside(impostor: Impostor, tmp_path: Path, name: bytes) -> None:
    box = impostor(b"")
    entry = frames.Entry(ord("f"), 0o100644, 0, 0, 0, 0, 1, 1, name, b"")
    transfers = box.files._transfers  # pyright: ignore[reportPrivateUsage]
    with TargetFolder(tmp_path / "target") as target, pytest.raises(SandboxError, match="not one that can be made"):
        transfers._fetch_all("/x", [entry], target, 100)  # pyright: ignore[reportPrivateUsage]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["target"]


def test_a_keeper_that_was_killed_is_told_with_what_to_do(home: Path) -> None:
    del home
    with Sandbox.create(engine="host") as box:
        os.kill(int(box._record.box.state["pid"]), signal.SIGKILL)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(SandboxError, match=r"has ended: it was killed from outside; make another"):
            box.commands.run(["true"])
        assert not box.is_running()
