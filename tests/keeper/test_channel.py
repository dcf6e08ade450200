"""Runs with a channel: what a command says on descriptor 3, for the client whose turn it is."""

from __future__ import annotations

import errno
import struct
import time
from typing import TYPE_CHECKING

import pytest

from tests.keeper.wire import (
    ATTACH,
    DATA,
    END,
    EXIT,
    PROCESSES,
    STARTED,
    STDERR,
    STDIN,
    STDIN_END,
    STDOUT,
    Client,
    Connection,
    KeeperError,
    frame,
    request,
    wait_until,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.keeper.conftest import Keeper

CHANNEL = 1 | 4 | 8  # with standard input, in the background
PTY, OWN, FOLLOW = 2, 2, 1
TURNS = 50

# Evaluates each line of its input.
SHELL = 'while read -r line; do eval "$line"; done'


def own(client: Client, pid: int) -> Connection:
    return client.open(request(ATTACH, struct.pack("<IIQ", OWN, pid, 0)))


def say(connection: Connection, line: str) -> None:
    connection.send(frame(STDIN, line.encode() + b"\n"))


def leave(connection: Connection) -> None:
    """In peace: nothing is interrupted."""
    connection.send(frame(END))
    connection.socket.close()


def until(connection: Connection, kind: int, text: bytes) -> dict[int, bytes]:
    """What came of each kind, up to that text on one of them."""
    found = {STDOUT: b"", STDERR: b"", DATA: b""}
    while text not in found[kind]:
        got, payload = connection.next()
        found[got] += payload
    return found


def test_what_was_printed_first_comes_first(client: Client) -> None:
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as turn:
        turn.started()
        for number in range(TURNS):
            say(turn, f"echo out{number}; echo err{number} >&2; echo said{number} >&3")
            found = until(turn, DATA, b"said%d\n" % number)
            assert found == {STDOUT: b"out%d\n" % number, STDERR: b"err%d\n" % number, DATA: b"said%d\n" % number}


def test_it_waits_for_megabytes_and_not_for_ever(client: Client) -> None:
    endless = "while :; do echo more; done"
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as turn:
        turn.started()
        say(turn, "head -c 3000000 /dev/zero; echo said >&3")
        assert len(until(turn, DATA, b"said\n")[STDOUT]) == 3_000_000
        say(turn, f"({endless}) & echo said >&3")
        assert until(turn, DATA, b"said\n")[DATA] == b"said\n"


def test_a_client_that_is_slow_holds_up_what_is_said(client: Client) -> None:
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as turn:
        turn.started()
        say(turn, "head -c 20000000 /dev/zero >&3; echo; echo all >&3")
        size, last = 0, b""
        while not last.endswith(b"all\n"):
            kind, payload = turn.next()
            if kind == DATA:
                size += len(payload)
                last = (last + payload)[-4:]
        assert size == 20_000_004


def test_the_next_client_goes_on_where_the_last_one_left(client: Client) -> None:
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as first:
        pid = first.started()
        say(first, "a=1; echo a is $a >&3")
        until(first, DATA, b"a is 1\n")
        leave(first)
    for number in range(2, 10):
        with own(client, pid) as turn:
            turn.expect(STARTED)
            say(turn, "a=$((a + 1)); echo a is $a >&3")
            assert until(turn, DATA, b"\n")[DATA] == b"a is %d\n" % number
            leave(turn)


def test_clients_wait_for_their_turn(client: Client) -> None:
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as first:
        pid = first.started()
        with own(client, pid) as second, own(client, pid) as gone, own(client, pid) as third:
            gone.socket.close()
            for turn in (second, third):
                turn.socket.settimeout(0.05)
                with pytest.raises(TimeoutError):
                    turn.next()
                turn.socket.settimeout(10)
            leave(first)
            second.expect(STARTED)
            say(second, "echo two >&3")
            until(second, DATA, b"two\n")
            leave(second)
            third.expect(STARTED)
            say(third, "echo three >&3")
            assert until(third, DATA, b"three\n")[DATA] == b"three\n"


def test_who_leaves_in_the_middle_interrupts(client: Client) -> None:
    script = f"trap : INT; {SHELL}"
    with client.start("sh", "-c", script, flags=CHANNEL) as first:
        pid = first.started()
        say(first, "sh -c 'echo begun >&3; exec sleep 60'; echo interrupted >&3")
        until(first, DATA, b"begun\n")
    with own(client, pid) as turn:
        turn.expect(STARTED)
        say(turn, "echo mine >&3")
        # What belongs to the one who left may still come: whoever asks knows its own answer.
        assert until(turn, DATA, b"mine\n")[DATA].endswith(b"mine\n")


def test_who_leaves_in_peace_is_believed_though_more_comes(client: Client) -> None:
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as first:
        pid = first.started()
        say(first, "a=kept; (while :; do echo more; done) & echo begun >&3")
        until(first, DATA, b"begun\n")
        leave(first)
    with own(client, pid) as turn:
        turn.expect(STARTED)
        say(turn, "kill $!; echo $a >&3")
        assert until(turn, DATA, b"\n")[DATA] == b"kept\n"


def test_what_comes_while_nobody_is_there_is_nobodys(client: Client, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    go, done = tmp_path / "go", tmp_path / "done"
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as first:
        pid = first.started()
        say(first, f"(until [ -e {go} ]; do sleep 0.01; done; head -c 3000000 /dev/zero; echo x >&3; > {done}) &")
        say(first, "echo begun >&3")
        until(first, DATA, b"begun\n")
        leave(first)
    with own(client, pid) as turn:
        turn.expect(STARTED)
        leave(turn)
    go.touch()
    wait_until(done.exists, "it has written all")
    with own(client, pid) as turn:
        turn.expect(STARTED)
        say(turn, "echo mine >&3")
        assert until(turn, DATA, b"mine\n") == {STDOUT: b"", STDERR: b"", DATA: b"mine\n"}


@pytest.mark.parametrize("last", ["exit 3", "kill -KILL $$"])
def test_its_end_is_told_to_all_who_wait(client: Client, last: str) -> None:
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as first:
        pid = first.started()
        with own(client, pid) as second:
            say(first, f"echo words >&3; echo out; {last}")
            found = {STDOUT: b"", STDERR: b"", DATA: b""}
            while (got := first.next())[0] != EXIT:
                found[got[0]] += got[1]
            assert found == {STDOUT: b"out\n", STDERR: b"", DATA: b"words\n"}
            second.expect(STARTED)
            second.expect(EXIT)
    with own(client, pid) as late:
        late.expect(STARTED)
        late.expect(EXIT)


def test_the_end_of_its_input_is_its_owners_to_give(client: Client) -> None:
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as first:
        first.started()
        first.send(frame(STDIN_END))
        first.expect(EXIT)


def test_only_owners_attach_and_only_to_a_channel(client: Client) -> None:
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as first:
        pid = first.started()
        with client.attach(pid, follow=True) as other, pytest.raises(KeeperError) as refused:
            other.next()
        assert refused.value.code == errno.EINVAL
    with client.start("sleep", "60") as plain:
        with own(client, plain.started()) as other, pytest.raises(KeeperError) as refused:
            other.next()
        assert refused.value.code == errno.EINVAL
    with client.start("sh", flags=CHANNEL | PTY) as terminal, pytest.raises(KeeperError) as refused:
        terminal.next()
    assert refused.value.code == errno.EINVAL


def test_half_a_request_is_finished_for_who_comes_next(client: Client) -> None:
    reader = "sleep 0.2; head -c 500000 | wc -c >&3; cat >&3"
    with client.start("sh", "-c", f"trap '' INT; {reader}", flags=CHANNEL) as first:
        pid = first.started()
        first.send(frame(STDIN, bytes(500_000)))
        with own(client, pid) as turn:
            first.socket.close()
            turn.expect(STARTED)
            turn.send(frame(STDIN, b"next\n"))
            assert until(turn, DATA, b"next\n")[DATA].split() == [b"500000", b"next"]


def test_a_channel_is_descriptor_3_and_nothing_else_is_there(client: Client) -> None:
    with client.start("sh", "-c", "ls /proc/self/fd >&3; readlink /proc/self/fd/3 >&3", flags=CHANNEL) as run:
        run.started()
        found = until(run, DATA, b"pipe:")[DATA].split()
        assert found[:4] == [b"0", b"1", b"2", b"3"]
        assert len(found) <= 6  # the folder that ls reads, and the link


def test_channels_leave_no_descriptor(keeper: Keeper) -> None:
    client = keeper.client()
    client.run("true")
    before = keeper.descriptors()
    for number in range(100):
        with client.start("sh", "-c", SHELL, flags=CHANNEL, tag=b"%d" % number) as run:
            pid = run.started()
            with own(client, pid) as waiting:
                say(run, "echo x >&3; exit")
                while run.next()[0] != EXIT:
                    pass
                waiting.expect(STARTED)
    wait_until(lambda: keeper.descriptors() <= before, "descriptors are given back")
    assert sum(entry[12] & 1 for entry in client.every(PROCESSES)) <= 64


def test_an_owner_counts_as_use_and_a_channel_by_itself_does_not(client: Client) -> None:
    def idle() -> int:
        with client.open(request(6)) as usage:
            return struct.unpack("<QQQQQQII", usage.expect(77))[5]

    with client.start("sh", "-c", SHELL, flags=CHANNEL) as first:
        first.started()
        assert idle() == 0
        leave(first)
    deadline = time.monotonic() + 10
    while idle() == 0:
        assert time.monotonic() < deadline, "it counts as use though nobody is there"


def test_who_waits_for_what_was_never_started_is_told(client: Client) -> None:
    pid = client.run("true").pid
    for number in range(60):
        begun = client.start("sh", "-c", SHELL, flags=CHANNEL, cwd=b"/nonexistent")
        waiting = [own(client, pid + number + step) for step in range(1, 7)]
        for turn in (begun, *waiting):
            with turn, pytest.raises((KeeperError, EOFError)):
                list(turn.frames())
    assert client.shell("echo fine").stdout == b"fine\n"


def test_all_are_told_the_same_end(client: Client) -> None:
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as first:
        pid = first.started()
        with own(client, pid) as second:
            say(first, "echo out; echo said >&3")
            until(first, DATA, b"said\n")
            client.signal(pid, 9, scope=2)
            ends = [turn.collect().ended for turn in (first, second)]
            assert [(end.signal, end.flags & 2, end.offset) for end in ends] == [(9, 2, 4)] * 2


def test_output_that_code_reads_away_holds_nothing_up(client: Client) -> None:
    steal = "(while :; do dd bs=1M count=1 </proc/self/fd/1 2>/dev/null >/dev/null; done) &"
    with client.start("sh", "-c", SHELL, flags=CHANNEL) as turn:
        turn.started()
        say(turn, steal)
        for number in range(200):
            say(turn, f"echo printed; echo said{number} >&3")
            until(turn, DATA, b"said%d\n" % number)
        say(turn, "kill $!; exit")
