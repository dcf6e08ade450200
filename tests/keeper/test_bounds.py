"""Hostile and unlucky clients, privileges, streams, and what is told of the sandbox."""

from __future__ import annotations

import errno
import os
import random
import signal
import socket
import struct
import subprocess
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.keeper.conftest import start
from tests.keeper.wire import (
    CONNECT,
    EGRESS,
    OK,
    PEER,
    PORTS,
    PROCESSES,
    STARTED,
    USAGE,
    USAGE_IS,
    Client,
    KeeperError,
    frame,
    octets,
    request,
    wait_until,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.keeper.conftest import Keeper

WITH_STDIN, PTY, BACKGROUND = 1, 2, 4
CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
LISTEN = "import socket,time; s=socket.create_server(({host!r},{port}),family=socket.{family}); print('up',flush=True); {then}"


def status(client: Client) -> dict[str, str]:
    lines = client.run("cat", "/proc/self/status").stdout.decode().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_an_ordinary_user_has_no_privilege_at_all(user: Client) -> None:
    found = status(user)
    assert [int(found[name], 16) for name in CAPABILITY_SETS] == [0] * 5
    assert (found["NoNewPrivs"], found["Seccomp"], found["Groups"], found["SigBlk"]) == ("1", "2", "", "0" * 16)
    assert (found["Uid"], found["Gid"], found["SigIgn"]) == ("1000\t" * 3 + "1000", "1000\t" * 3 + "1000", "0" * 16)


def test_root_keeps_what_the_option_says_and_no_more(binary: Path) -> None:
    with start(binary, "--root-caps", "c3", namespace=True) as keeper:
        found = status(keeper.client())
        assert [int(found[name], 16) for name in CAPABILITY_SETS] == [0, 0xC3, 0xC3, 0xC3, 0]
        assert [int(status(keeper.client(1000, 1000))[name], 16) for name in CAPABILITY_SETS] == [0] * 5


def test_root_without_that_option_has_none(boxed: Keeper) -> None:
    assert [int(status(boxed.client())[name], 16) for name in CAPABILITY_SETS] == [0] * 5


def test_a_command_is_taken_by_the_kernel_before_the_keeper(boxed: Keeper, user: Client) -> None:
    assert user.run("cat", "/proc/self/oom_score_adj").stdout == b"1000\n"
    with open(f"/proc/{boxed.pid}/oom_score_adj") as score:
        assert int(score.read()) < 1000


def test_only_standard_descriptors_are_handed_down(user: Client) -> None:
    assert user.shell("ls /proc/$$/fd").stdout.split() == [b"0", b"1", b"2"]


def test_clone3_is_not_there(user: Client) -> None:
    script = "import ctypes; c=ctypes.CDLL(None,use_errno=True); c.syscall(435,0,0); print(ctypes.get_errno())"
    assert user.run("python3", "-c", script).stdout == b"%d\n" % errno.ENOSYS


def test_other_users_than_the_one_allowed_are_refused(binary: Path) -> None:
    with start(binary, "--uid-only", "1000", namespace=True) as keeper, pytest.raises(KeeperError) as error:
        keeper.client().run("true")
    assert error.value.code == errno.EPERM


def test_on_the_host_only_its_own_user_is_served(binary: Path) -> None:
    with start(binary, "--host") as keeper:
        with pytest.raises(KeeperError) as error:
            keeper.client(os.geteuid() + 1, os.getegid()).run("true")
        assert error.value.code == errno.EPERM
        with pytest.raises(KeeperError) as error:
            keeper.client(os.geteuid(), os.getegid()).signal(os.getpid(), 0)
        assert error.value.code == errno.EPERM


def test_on_the_host_its_end_ends_what_it_has_started(binary: Path) -> None:
    with start(binary, "--host") as keeper:
        client = keeper.client(os.geteuid(), os.getegid())
        run = client.start("sh", "-c", "setsid sleep 100 & echo $!; wait")
        with run:
            run.started()
            pid = int(run.next()[1])
            keeper.process.send_signal(signal.SIGTERM)
            assert keeper.process.wait(20) == 0
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "it is gone")


def test_nothing_inside_ends_the_keeper(boxed: Keeper) -> None:
    client = boxed.client()
    client.shell("for s in 1 2 3 6 9 11 15 19 31; do kill -$s 1; done; kill -9 -1")
    assert client.run("echo", "alive").stdout == b"alive\n"


def test_a_step_that_fails_leaves_the_program_unexecuted(binary: Path, tmp_path: Path) -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    os.set_inheritable(descriptor, True)
    with socket.socket(socket.AF_UNIX) as listener:
        path = tmp_path / "s"
        listener.bind(str(path))
        listener.listen()
        command = [str(binary), "--listen-fd", str(listener.fileno()), "--join-fd", str(descriptor)]
        process = subprocess.Popen(command, pass_fds=[listener.fileno(), descriptor])
        try:
            with pytest.raises(KeeperError, match="could not join the cgroup") as error:
                Client(path).run("touch", str(tmp_path / "executed"))
            assert error.value.code == errno.ENOSPC
            assert not (tmp_path / "executed").exists()
        finally:
            process.kill()
            process.wait()
            os.close(descriptor)


def test_one_connection_too_many_is_refused_and_the_next_ones_served(keeper: Keeper, client: Client) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(client.open()) for _ in range(256)]
        refused = [stack.enter_context(client.open()) for _ in range(44)]
        for connection in refused:
            with pytest.raises(KeeperError) as error:
                connection.next()
            assert error.value.code == errno.EAGAIN
        assert len(idle) == 256
    wait_until(lambda: keeper.descriptors() < 30, "all are closed")
    assert client.run("echo", "x").stdout == b"x\n"


def test_a_request_that_dribbles_in_is_given_up_after_ten_seconds(client: Client) -> None:
    whole = client.run_frame("true")
    with client.open() as slow:
        for octet in whole[:-1]:
            slow.send(bytes([octet]))
        with pytest.raises(KeeperError) as error:
            slow.next()
        assert error.value.code == errno.ETIMEDOUT


def test_a_request_in_single_octets_is_as_good_as_another(client: Client) -> None:
    with client.open() as slow:
        for octet in client.run_frame("echo", "whole"):
            slow.send(bytes([octet]))
        assert slow.collect().stdout == b"whole\n"


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (struct.pack("<IB", 2**32 - 1, 1), errno.EMSGSIZE),
        (frame(0), errno.EBADMSG),
        (frame(STARTED, bytes(20)), errno.EBADMSG),
        (frame(255), errno.EBADMSG),
        (frame(PROCESSES, b"\x02"), errno.EPROTONOSUPPORT),
        (frame(PROCESSES), errno.EBADMSG),
        (request(PROCESSES, b"x"), errno.EBADMSG),
    ],
)
def test_what_is_not_a_request_is_refused(client: Client, first: bytes, code: int) -> None:
    with client.open(first) as connection:
        with pytest.raises(KeeperError) as error:
            connection.next()
        assert error.value.code == code
        with pytest.raises((EOFError, ConnectionError)):
            connection.next()


def test_garbage_does_no_harm(keeper: Keeper, client: Client) -> None:
    rng = random.Random(7)
    for _ in range(500):
        size = rng.randrange(200)
        kind = rng.choice([0, 2, 3, 4, 5, 6, 7, 8, 9, 64, 200])
        with client.open() as connection:
            connection.send(struct.pack("<IB", size, kind) + b"\x01"[: size > 0] + rng.randbytes(max(size - 1, 0)))
    assert client.run("echo", "alive").stdout == b"alive\n"
    wait_until(lambda: keeper.descriptors() < 30, "nothing is left open")
    assert keeper.memory_kib() < 8192


def test_processes_tells_runs_first_and_then_all_others(user: Client) -> None:
    with user.start("sh", "-c", "sleep 100 & wait", tag=b"t\0g", flags=BACKGROUND) as run:
        pid = run.started()
        wait_until(lambda: any(octets(b"sleep") in entry for entry in user.every(PROCESSES)), "it sleeps")
        entries = user.every(PROCESSES)
        user.signal(pid, 9, 2)
    fixed = [struct.unpack_from("<IIII", entry) for entry in entries]
    assert (fixed[0][0], fixed[0][2], fixed[0][3]) == (pid, 1000, 1 | 2)
    assert b"t\0g" in entries[0]
    assert fixed[1][1:] == (pid, 1000, 0)
    assert len(entries) == 2


def test_usage_counts_runs_and_idle_time(user: Client) -> None:
    def usage() -> tuple[int, ...]:
        with user.open(request(USAGE)) as connection:
            return struct.unpack("<QQQQQQII", connection.expect(USAGE_IS))

    with user.start("sleep", "100") as run:
        pid = run.started()
        assert usage()[5:] == (0, 1, 1)
        user.signal(pid, 9, 2)
    wait_until(lambda: usage()[5] > 50, "it is idle")
    assert usage()[6:] == (0, 0)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", "AF_INET"), ("::1", "AF_INET6")])
def test_a_stream_goes_both_ways_and_ends_on_each_side_apart(user: Client, host: str, family: str) -> None:
    port = free_port()
    echo = "c,_=s.accept(); f=c.makefile('rwb'); d=f.read(); f.write(d); f.close(); c.close()"
    data = os.urandom(3_000_000)
    with user.start("python3", "-c", LISTEN.format(host=host, port=port, family=family, then=echo)) as server:
        server.started()
        server.next()
        assert any(struct.unpack_from("<H", entry, len(entry) - 6)[0] == port for entry in user.every(PORTS))
        with user.open(request(CONNECT, struct.pack("<H", port)) + b"early") as stream:
            stream.expect(OK)
            sender = threading.Thread(target=lambda: (stream.send(data), stream.socket.shutdown(socket.SHUT_WR)))
            sender.start()
            assert stream.read(len(data) + 5) == b"early" + data
            sender.join()
            assert stream.socket.recv(1) == b""


@pytest.mark.parametrize(("port", "code"), [(1, errno.ECONNREFUSED), (0, errno.EINVAL)])
def test_a_port_that_nobody_listens_on_is_refused(user: Client, port: int, code: int) -> None:
    with pytest.raises(KeeperError) as error, user.open(request(CONNECT, struct.pack("<H", port))) as stream:
        stream.next()
    assert error.value.code == code


def test_an_outgoing_connection_is_handed_over_with_its_address(user: Client) -> None:
    user.run("true")
    for address, host in ((b"\x7f\0\0\x01", "127.0.0.1"), (bytes(15) + b"\x01", "::1")):
        with user.open(request(EGRESS)) as gate, socket.create_connection((host, 47171)) as caller:
            peer = gate.expect(PEER)
            assert peer == struct.pack("<I", len(address)) + address + struct.pack("<H", 47171)
            caller.sendall(b"out")
            gate.send(b"in")
            assert (gate.read(3), caller.recv(9)) == (b"out", b"in")


def test_an_outgoing_connection_waits_for_a_while(user: Client) -> None:
    user.run("true")
    with socket.create_connection(("127.0.0.1", 47171)) as caller:
        caller.sendall(b"early")
        with user.open(request(EGRESS)) as gate:
            gate.expect(PEER)
            assert gate.read(5) == b"early"
    with socket.create_connection(("127.0.0.1", 47171)) as caller, pytest.raises(ConnectionResetError):
        caller.recv(1)


def test_egress_without_its_option_is_refused(client: Client) -> None:
    with pytest.raises(KeeperError) as error, client.open(request(EGRESS)) as gate:
        gate.next()
    assert error.value.code == errno.EOPNOTSUPP
