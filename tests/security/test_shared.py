"""What all users of a machine share of the kernel: a box cannot take it from the others (promise 23)."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

import pytest

from tests.security.lab import run_python, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche import Sandbox

LIBC = ctypes.CDLL(None, use_errno=True)
TAKE_WATCHES = """
import ctypes, time
libc, count = ctypes.CDLL(None), 0
while libc.inotify_init() >= 0: count += 1
print(count, flush=True)
time.sleep(60)
"""
TAKE_SOCKETS = """
import socket, sys, time
kind = getattr(socket, sys.argv[1])
pairs, sent = [], 0
for _ in range(120):
    if kind == socket.SOCK_STREAM:
        server = socket.create_server(("127.0.0.1", 0))
        one = socket.create_connection(server.getsockname())
        pairs.append((one, server.accept()[0], server))
    else:
        one, other = (socket.socket(socket.AF_INET, kind) for _ in range(2))
        other.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        other.bind(("127.0.0.1", 0)); one.connect(other.getsockname())
        pairs.append((one, other))
    one.setblocking(False)
    for _ in range(300):
        try: sent += one.send(bytes(60000))
        except OSError: break
print(sent, flush=True)
time.sleep(60)
"""


def watch_on_the_host() -> int:
    """Fails as for any program of root's on this machine."""
    descriptor: int = LIBC.inotify_init()
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor


def test_a_box_that_takes_all_watches_takes_those_of_nobody_else(make: Callable[..., Sandbox]) -> None:
    greedy, other = make(), make()
    run = greedy.commands.run(["python3", "-c", TAKE_WATCHES], background=True)
    wait_until(lambda: b"".join(chunk.data for chunk in run.output()), "it has them all")
    assert watch_on_the_host() >= 0
    with other.files.watch("/tmp") as watch:
        other.files.write("/tmp/seen", "1")
        assert watch.next(5) is not None


@pytest.mark.promise("memory_mb")
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_what_waits_in_sockets_is_limited_as_memory_is(make: Callable[..., Sandbox], kind: str) -> None:
    box = make(memory_mb=128)
    before = sockets_pages()
    run = box.commands.run(["python3", "-c", TAKE_SOCKETS, kind], background=True)
    wait_until(lambda: b"".join(chunk.data for chunk in run.output()) or not box.commands.list(), "it has sent all")
    assert (sockets_pages() - before) * os.sysconf("SC_PAGE_SIZE") <= 130 << 20


def sockets_pages() -> int:
    """Of the whole machine, whatever the namespace."""
    with open("/proc/net/sockstat", encoding="ascii") as file:
        return sum(int(line.split(" mem ")[1].split()[0]) for line in file if " mem " in line)


def test_the_machines_pool_of_requests_is_not_touched(make: Callable[..., Sandbox]) -> None:
    source = "import ctypes; c = ctypes.c_ulong(); print(ctypes.CDLL(None).syscall(206, 65536, ctypes.byref(c)))"
    assert run_python(make(), source).stdout == "-1\n"
    with open("/proc/sys/fs/aio-nr", encoding="ascii") as file:
        assert int(file.read()) == 0
