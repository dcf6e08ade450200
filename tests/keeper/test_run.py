"""RUN, ATTACH, INPUT and SIGNAL, with each way to hold a run's processes together."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import struct
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.keeper.wire import (
    ATTACH,
    END,
    EXIT,
    PROCESSES,
    RESIZE,
    STDERR,
    STDIN,
    STDIN_END,
    STDOUT,
    Client,
    KeeperError,
    frame,
    request,
    wait_until,
)

if TYPE_CHECKING:
    import socket

    from tests.keeper.conftest import Keeper

WITH_STDIN, PTY, BACKGROUND = 1, 2, 4
TIMED_OUT, KILLED, LEFT = 1, 2, 4
ENDED = 4
LAST = 2**64 - 1


def is_running(client: Client, marker: str) -> bool:
    """Whether any living process of the sandbox has `marker` as an argument."""
    return any(marker.encode() in entry and not entry[12] & ENDED for entry in client.every(PROCESSES))


def test_a_command_gives_its_output_its_errors_and_its_exit_code(client: Client) -> None:
    result = client.shell("echo out; echo err >&2; exit 7")
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert (result.ended.code, result.ended.signal, result.ended.flags & 7, result.ended.offset) == (7, 0, 0, 8)


def test_a_signal_that_ends_it_is_told(client: Client) -> None:
    ended = client.shell("kill -SEGV $$").ended
    assert (ended.code, ended.signal) == (-1, signal.SIGSEGV)


def test_a_program_that_is_not_there_is_a_result(client: Client) -> None:
    result = client.run("no-such-program")
    assert (result.ended.code, result.stderr) == (127, b"no-such-program: not found\n")


def test_a_file_that_cannot_be_executed_is_a_result(client: Client) -> None:
    result = client.run("/etc/passwd")
    assert (result.ended.code, result.stderr) == (126, b"/etc/passwd: Permission denied\n")


def test_a_folder_that_cannot_be_entered_is_an_error(client: Client) -> None:
    with pytest.raises(KeeperError, match="working directory") as error:
        client.run("true", cwd=b"/no/such/folder")
    assert error.value.code == errno.ENOENT


def test_an_empty_argv_is_refused(client: Client) -> None:
    with pytest.raises(KeeperError, match="argv is empty"):
        client.run()


def test_the_environment_is_what_was_given_and_no_more(client: Client) -> None:
    result = client.run("/usr/bin/env", env=[b"A=1", b"B=x\ny"], cwd=b"/usr")
    assert result.stdout == b"A=1\nB=x\ny\n"


def test_a_command_begins_in_its_folder_with_nothing_on_its_input(client: Client) -> None:
    assert client.shell("pwd; wc -c", cwd=b"/usr/bin").stdout == b"/usr/bin\n0\n"


def test_input_is_passed_on_until_it_ends(client: Client) -> None:
    data = os.urandom(3 << 20)
    with client.start("sha256sum", flags=WITH_STDIN) as run:
        for at in range(0, len(data), 1 << 20):
            run.send(frame(STDIN, data[at : at + (1 << 20)]))
        run.send(frame(STDIN_END))
        assert run.collect().stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_input_for_a_command_that_has_closed_it_is_dropped(client: Client) -> None:
    with client.start("sh", "-c", "exec <&-; echo closed; read x <&2; sleep 0.2", flags=WITH_STDIN) as run:
        for _ in range(4):
            run.send(frame(STDIN, bytes(1 << 20)))
        assert run.collect().stdout == b"closed\n"


def test_another_client_can_give_input_and_end_it(client: Client) -> None:
    with client.start("cat", flags=WITH_STDIN) as run:
        pid = run.started()
        client.input(pid, b"from afar\n")
        client.input(pid, kind=1)
        assert run.collect().stdout == b"from afar\n"


def test_a_terminal_has_its_size_and_is_resized(client: Client) -> None:
    with client.start("sh", "-c", "stty size; read x; stty size; tty", flags=PTY, rows=11, cols=99) as run:
        pid = run.started()
        assert run.expect(STDOUT) == b"11 99\r\n"
        run.send(frame(RESIZE, struct.pack("<HH", 12, 100)))
        client.input(pid, b"\n")
        result = run.collect()
        assert b"12 100\r\n" in result.stdout
        assert b"/dev/pts/" in result.stdout


def test_the_end_of_input_at_a_terminal_is_its_end_character(client: Client) -> None:
    with client.start("cat", flags=PTY) as run:
        run.send(frame(STDIN_END))
        assert run.collect().ended.code == 0


def test_the_time_limit_ends_the_whole_tree(client: Client) -> None:
    result = client.shell("setsid sleep 7171 & (setsid sleep 7171 &) ; sleep 7171", time_limit=0.3)
    assert (result.ended.signal, result.ended.flags & TIMED_OUT) == (signal.SIGKILL, TIMED_OUT)
    wait_until(lambda: not is_running(client, "7171"), "all are gone")


def test_what_a_command_left_running_dies_with_the_time_limit(client: Client) -> None:
    result = client.shell("setsid sleep 7272 & echo done", time_limit=0.5)
    assert (result.stdout, result.ended.code, result.ended.flags) == (b"done\n", 0, LEFT)
    assert is_running(client, "7272")
    wait_until(lambda: not is_running(client, "7272"), "it is gone")


def test_what_a_command_left_running_dies_with_its_tree(client: Client) -> None:
    result = client.shell("setsid sleep 7373 & echo $!")
    client.signal(result.pid, signal.SIGKILL, 2)
    wait_until(lambda: not is_running(client, "7373"), "it is gone")

    def is_forgotten() -> bool:
        try:
            client.signal(result.pid, signal.SIGKILL, 2)
        except KeeperError:
            return True
        return False

    wait_until(is_forgotten, "the run is settled")


NASTY = {
    "ignores every signal": "trap '' HUP INT QUIT TERM USR1 USR2 TSTP; while :; do sleep 7474; done",
    "stops itself": "kill -STOP $$; sleep 7474",
    "forks twice and hides": "(setsid sh -c '(setsid sleep 7474 &) ; sleep 7474' &) ; sleep 7474",
    "forks without end": "i=0; while [ $i -lt 40 ]; do sh -c 'while :; do sleep 0.01 7474 & done' & i=$((i+1)); done; wait",
}


@pytest.mark.parametrize("script", NASTY.values(), ids=NASTY.keys())
def test_a_process_does_not_outlive_its_tree_when_it(client: Client, script: str) -> None:
    limited = f"ulimit -u 4000; {script}"
    with client.start("sh", "-c", limited, flags=BACKGROUND) as run:
        pid = run.started()
        wait_until(lambda: is_running(client, "7474"), "it runs")
        client.signal(pid, signal.SIGKILL, 2)
        ended = run.collect().ended
    assert (ended.signal, ended.flags & KILLED) == (signal.SIGKILL, KILLED)
    wait_until(lambda: not is_running(client, "7474"), "all are gone")


def test_an_output_held_open_delays_the_end_by_a_tenth_of_a_second(client: Client) -> None:
    result = client.shell("sleep 7575 & echo out")
    assert (result.stdout, result.ended.flags & LEFT) == (b"out\n", LEFT)
    client.signal(result.pid, signal.SIGKILL, 2)


def test_one_that_writes_without_end_does_not_delay_it_for_ever(client: Client) -> None:
    result = client.shell("yes 7676 & echo first", output_limit=1000)
    assert result.ended.code == 0
    client.signal(result.pid, signal.SIGKILL, 2)
    wait_until(lambda: not is_running(client, "7676"), "it is gone")


def test_a_signal_goes_to_the_group_or_to_the_process(client: Client) -> None:
    with client.start("sh", "-c", "trap 'echo got; exit 4' USR1; echo up; while :; do sleep 0.05; done") as run:
        pid = run.started()
        run.expect(STDOUT)
        client.signal(pid, signal.SIGUSR1)
        assert (run.collect().ended.code) == 4
    with client.start("sleep", "100") as run:
        client.signal(run.started(), signal.SIGTERM, 2)
        ended = run.collect().ended
        assert (ended.signal, ended.flags) == (signal.SIGTERM, KILLED)


@pytest.mark.parametrize(("pid", "code"), [(0, errno.ESRCH), (2**32 - 1, errno.ESRCH), (2**31, errno.ESRCH)])
def test_numbers_that_mean_more_than_one_process_are_refused(client: Client, pid: int, code: int) -> None:
    with pytest.raises(KeeperError) as error:
        client.signal(pid, signal.SIGKILL)
    assert error.value.code == code


def test_the_keeper_itself_cannot_be_signalled(boxed: Keeper) -> None:
    with pytest.raises(KeeperError) as error:
        boxed.client().signal(1, signal.SIGKILL)
    assert error.value.code == errno.EPERM


@pytest.mark.parametrize(("number", "scope"), [(65, 0), (2**31, 2), (9, 1), (9, 255)])
def test_unknown_signals_and_scopes_are_refused(client: Client, number: int, scope: int) -> None:
    with pytest.raises(KeeperError) as error:
        client.signal(2, number, scope)
    assert error.value.code == errno.EINVAL


def test_a_client_gets_the_first_half_and_the_last_half_of_too_much_output(client: Client) -> None:
    result = client.shell("seq 100000 | tr '\\n' ' '", output_limit=1000)
    whole = b"".join(b"%d " % number for number in range(1, 100001))
    assert result.stdout == whole[:500] + whole[-500:]
    assert result.gaps == [(500, len(whole) - 1000)]
    assert (result.ended.dropped, result.ended.offset) == (len(whole) - 1000, len(whole))


@pytest.mark.parametrize("limit", [1 << 20, 0])
def test_a_slow_client_gets_what_was_written_in_order(client: Client, limit: int) -> None:
    whole = b"".join(b"%d\n" % number for number in range(1, 1000000))
    half = limit // 2 or len(whole)
    for _ in range(2):
        with client.start("seq", "1", "999999", output_limit=limit) as run:
            # Slower than the command, so that much of it waits in the pipe.
            run.pending = b"".join(iter(partial(take_slowly, run.socket), b""))
            result = run.collect()
        assert result.stdout[:half] == whole[:half]
        assert len(result.stdout) == min(len(whole), limit or len(whole))
        assert whole.endswith(result.stdout[half:])


def take_slowly(connection: socket.socket) -> bytes:
    time.sleep(0.001)
    return connection.recv(1 << 14)


def test_kept_output_can_be_read_again_from_any_offset(client: Client) -> None:
    with client.start("sh", "-c", "seq 100000 | tr '\\n' ' '", flags=BACKGROUND, output_limit=1000) as run:
        pid = run.started()
    whole = b"".join(b"%d " % number for number in range(1, 100001))
    size = len(whole)
    with client.attach(pid, LAST, follow=True) as again:
        # Until it ends: whoever follows earlier may see some of what is not kept.
        again.collect()
    with client.attach(pid, follow=True) as again:
        assert again.collect().stdout == whole[:500] + whole[-500:]
    for offset, gaps in ((3, size - 1000), (500, size - 1000), (700, size - 1200), (size - 500, 0)):
        with client.attach(pid, offset) as again:
            result = again.collect()
            assert result.stdout == whole[offset:500] + whole[-500:]
            assert [gap for _, gap in result.gaps] == ([gaps] if gaps else [])
    with client.attach(pid, LAST) as again:
        assert (again.collect().stdout, again.pending) == (b"", b"")


def test_the_order_of_both_outputs_is_kept(client: Client) -> None:
    script = "for i in 1 2 3 4 5; do echo o$i; sleep 0.02; echo e$i >&2; sleep 0.02; done"
    with client.start("sh", "-c", script, flags=BACKGROUND) as run:
        pid = run.started()
        run.collect()
    with client.attach(pid) as again:
        again.started()
        found = [again.next() for _ in range(10)]
    assert found == [
        (kind, b"%c%d\n" % (letter, i)) for i in range(1, 6) for kind, letter in ((STDOUT, 111), (STDERR, 101))
    ]


def test_a_run_goes_on_without_its_client_and_keeps_its_output(client: Client) -> None:
    with client.start("sh", "-c", "echo one; read x; echo two", flags=WITH_STDIN) as run:
        pid = run.started()
        assert run.expect(STDOUT) == b"one\n"
    with client.attach(pid, LAST, follow=True) as again:
        again.started()
        client.input(pid, b"\n")
        result = again.collect()
    assert (result.stdout, result.ended.code) == (b"two\n", 0)


def test_several_clients_follow_one_process(client: Client) -> None:
    with client.start("cat", flags=WITH_STDIN | BACKGROUND) as run, ExitStack() as stack:
        pid = run.started()
        others = [stack.enter_context(client.attach(pid, follow=True)) for _ in range(5)]
        client.input(pid, b"to all")
        client.input(pid, kind=1)
        assert [other.collect().stdout for other in others] == [b"to all"] * 5
        assert run.collect().stdout == b"to all"


def test_attach_without_following_ends_with_end_while_it_runs(client: Client) -> None:
    with client.start("sleep", "100", flags=BACKGROUND) as run:
        pid = run.started()
        with client.attach(pid) as other:
            other.started()
            assert other.next()[0] == END
        client.signal(pid, signal.SIGKILL, 2)
        assert run.collect().ended.signal == signal.SIGKILL


def test_the_last_64_that_ended_can_still_be_attached_to(client: Client) -> None:
    pids = [client.shell(f"echo {i}", flags=BACKGROUND).pid for i in range(66)]
    for pid in pids[:2]:
        with pytest.raises(KeeperError), client.attach(pid) as old:
            old.collect()
    with client.attach(pids[2]) as kept:
        assert (kept.collect().stdout) == b"2\n"


def test_a_gigabyte_of_kept_output_costs_no_more_than_its_limit(keeper: Keeper, client: Client) -> None:
    client.run("head", "-c", "10000000", "/dev/zero", flags=BACKGROUND, output_limit=1 << 20)
    before = keeper.memory_kib()
    result = client.run("head", "-c", "1000000000", "/dev/zero", flags=BACKGROUND, output_limit=1 << 20)
    assert result.ended.offset == 1000000000
    assert len(result.stdout) + sum(gap for _, gap in result.gaps) == 1000000000
    assert keeper.memory_kib() - before < 8192


def test_a_slow_client_holds_the_command_up_and_not_the_keeper(keeper: Keeper, client: Client) -> None:
    with client.start("head", "-c", "50000000", "/dev/zero") as slow:
        slow.started()
        assert client.shell("echo quick").stdout == b"quick\n"
        assert keeper.memory_kib() < 8192
        assert len(slow.collect().stdout) == 50000000


def test_a_pipe_that_somebody_else_drains_does_not_break_the_frames(client: Client) -> None:
    script = "timeout 1 cat </proc/self/fd/1 >/dev/null & head -c 30000000 /dev/zero; wait; echo end"
    result = client.shell(script)
    assert result.stdout.endswith(b"end\n")


def test_a_frame_that_does_not_belong_there_ends_the_connection(client: Client) -> None:
    with client.start("sleep", "0.3") as run:
        run.started()
        run.send(frame(EXIT))
        with pytest.raises((EOFError, ConnectionError)):
            run.next()


def test_attaching_to_what_is_not_there_is_an_error(client: Client) -> None:
    with pytest.raises(KeeperError) as error, client.open(request(ATTACH, struct.pack("<IIQ", 0, 999999, 0))) as none:
        none.next()
    assert error.value.code == errno.ESRCH
