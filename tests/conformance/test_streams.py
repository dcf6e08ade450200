"""Ports inside, from outside."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from cloche.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from cloche import Sandbox

SERVER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
peer, _ = listener.accept()
data = b""
while piece := peer.recv(65536): data += piece
peer.sendall(data[::-1])
"""


def test_a_port_inside_can_be_seen_and_talked_to(sandbox: Sandbox) -> None:
    server = sandbox.commands.run(["python3", "-c", SERVER], background=True)
    port = int(next(iter(server)).data)
    assert port in [found.port for found in sandbox.ports()]
    with sandbox.connect_port(port) as stream:
        stream.write(b"abc" * 1000)
        stream.end()
        answer = b""
        while piece := stream.read():
            answer += piece
    assert answer == b"cba" * 1000


def test_a_port_where_nothing_listens_is_told(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(NotFound, match=f"nothing listens on port {port}"):
        sandbox.connect_port(port)
    with pytest.raises(InvalidRequest, match="port is 0"):
        sandbox.connect_port(0)
