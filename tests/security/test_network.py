"""A box without network has loopback, and nothing leaves it (promise 8)."""

from __future__ import annotations

import os
import socket
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.security.lab import keeper_of, run_python

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche import Sandbox


def addresses_of_this_machine() -> list[str]:
    lines = Path("/proc/net/fib_trie").read_text().splitlines()
    pairs = pairwise(lines)
    return sorted({line.split()[-1] for line, following in pairs if "/32 host LOCAL" in following})


@pytest.mark.promise("network_none")
def test_there_is_only_loopback(any_box: Sandbox) -> None:
    lines = any_box.files.read("/proc/net/dev").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]
    routes = any_box.files.read("/proc/net/route").splitlines()[1:]
    assert routes == []


@pytest.mark.promise("network_none")
def test_nothing_can_be_reached(any_box: Sandbox) -> None:
    source = """
import socket, sys
for address in sys.argv[1:]:
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(family, kind) as s:
            s.settimeout(1)
            try:
                s.connect((address, 53))
            except OSError:
                continue
            print(address, kind)
"""
    addresses = [a for a in addresses_of_this_machine() if not a.startswith("127.")]
    # Of documentation, and such as mean something on any machine: nobody is reached, even if a packet came out.
    addresses += ["192.0.2.1", "198.51.100.1", "203.0.113.1", "255.255.255.255", "224.0.0.1"]
    addresses += ["2001:db8::1", "fe80::1", "::ffff:192.0.2.1", "ff02::1", "64:ff9b::c000:201"]
    assert run_python(any_box, source, *addresses).check().stdout == ""


@pytest.mark.promise("network_none")
def test_a_server_on_this_machine_is_not_heard(any_box: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0cloche-canary-{os.getpid()}")
        abstract.listen()
        source = """
import socket, sys
for family, address in ((socket.AF_INET, ('127.0.0.1', int(sys.argv[1]))), (socket.AF_UNIX, chr(0) + sys.argv[2])):
    print(socket.socket(family).connect_ex(address) == 0)
"""
        port = str(server.getsockname()[1])
        found = run_python(any_box, source, port, f"cloche-canary-{os.getpid()}").check().stdout
    assert found.split() == ["False", "False"]


@pytest.mark.promise("network_none")
def test_no_interface_route_or_filter_can_be_made(any_box: Sandbox) -> None:
    source = """
import socket, struct
RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE, NLM = 16, 20, 24, 0x605
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
for kind, body in ((RTM_NEWLINK, struct.pack('BxHiII', 0, 0, 0, 0, 0) + struct.pack('HHHH', 12, 18, 9, 1) + b'dummy\\0\\0\\0'),
                   (RTM_NEWADDR, struct.pack('BBBBI', 2, 8, 0, 0, 1) + struct.pack('HH4s', 8, 2, bytes([10, 0, 0, 9]))),
                   (RTM_NEWROUTE, struct.pack('BBBBBBBBI', 2, 0, 0, 0, 254, 3, 0, 1, 0))):
    s.sendto(struct.pack('IHHII', 16 + len(body), kind, NLM, 1, 0) + body, (0, 0))
    print(struct.unpack('i', s.recv(4096)[16:20])[0])
"""
    assert set(run_python(any_box, source).check().stdout.split()) == {"-1"}


def test_the_network_is_not_that_of_the_host_or_of_another_box(make: Callable[..., Sandbox]) -> None:
    boxes = [make(), make()]
    networks = {os.readlink(f"/proc/{pid}/ns/net") for pid in ("self", *map(keeper_of, boxes))}
    assert len(networks) == 3


@pytest.mark.promise("isolation")
@pytest.mark.parametrize("kind", ["mnt", "pid", "ipc", "uts", "user", "cgroup", "net"])
def test_no_namespace_is_that_of_the_host(sandbox: Sandbox, kind: str) -> None:
    assert os.readlink(f"/proc/{keeper_of(sandbox)}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")


def test_no_packet_counts_as_sent(sandbox: Sandbox) -> None:
    sandbox.commands.run("echo x > /dev/udp/192.0.2.1/53; getent hosts example.com; ping -c1 -W1 192.0.2.1")
    lines = sandbox.files.read("/proc/net/dev").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]
