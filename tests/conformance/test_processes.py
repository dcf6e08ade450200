"""Background processes and signals (product line 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.errors import InvalidRequest, ProcessNotFound

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_background_command_can_be_waited_for(sandbox: Sandbox) -> None:
    command = sandbox.commands.run("echo out; echo err >&2; exit 4", background=True)
    result = command.wait()
    assert (result.stdout, result.stderr, result.exit_code, result.pid) == ("out\n", "err\n", 4, command.pid)


def test_the_time_limit_is_not_for_background_commands(make: Callable[..., Sandbox]) -> None:
    box = make(timeout=0.1)
    assert box.commands.run("sleep 0.4; echo done", background=True).wait().stdout == "done\n"


def test_a_time_limit_of_its_own_holds(sandbox: Sandbox) -> None:
    assert sandbox.commands.run(["sleep", "60"], background=True, timeout=0.2).wait().limit_hit == "timeout"


def test_its_input_can_be_fed_later(sandbox: Sandbox) -> None:
    command = sandbox.commands.run(["cat"], background=True, stdin=True)
    command.send_stdin("one ")
    sandbox.commands.send_stdin(command.pid, b"two")
    command.close_stdin()
    assert command.wait().stdout == "one two"


def test_its_input_can_be_given_at_once(sandbox: Sandbox) -> None:
    assert sandbox.commands.run(["wc", "-c"], background=True, stdin="x" * 30_000).wait().stdout.strip() == "30000"


def test_it_outlives_the_client_and_is_found_again(sandbox: Sandbox) -> None:
    pid = sandbox.commands.run("echo before; read line; echo got $line", background=True, stdin=True).pid
    again = Sandbox.connect(sandbox.id).commands.connect(pid)
    again.send_stdin("it\n")
    assert again.wait().stdout == "before\ngot it\n"


def test_output_is_followed_from_any_offset(sandbox: Sandbox) -> None:
    command = sandbox.commands.run("printf 0123456789; printf abc >&2", background=True)
    command.wait()
    chunks = list(command.output(4))
    assert [(chunk.stream, chunk.offset, chunk.data) for chunk in chunks] == [
        ("stdout", 4, b"456789"),
        ("stderr", 10, b"abc"),
    ]
    assert list(command.output(1 << 40)) == []


def test_iterating_follows_to_the_end(sandbox: Sandbox) -> None:
    command = sandbox.commands.run("for i in 1 2 3; do echo $i; sleep 0.05; done", background=True)
    assert b"".join(chunk.data for chunk in command) == b"1\n2\n3\n"


def test_what_is_no_longer_kept_is_a_gap(sandbox: Sandbox) -> None:
    command = sandbox.commands.run(["seq", "100000"], background=True, output_bytes=2000)
    result = command.wait()
    gaps = [chunk for chunk in command.output() if chunk.stream == "gap"]
    assert [gap.size for gap in gaps] == [result.output_dropped]
    assert sum(chunk.size for chunk in command.output()) == len("".join(f"{i}\n" for i in range(1, 100_001)))


def test_waiting_can_be_given_up(sandbox: Sandbox) -> None:
    command = sandbox.commands.run(["sleep", "60"], background=True)
    with pytest.raises(TimeoutError, match=r"0\.1 s"):
        command.wait(timeout=0.1)
    assert command.kill()


def test_a_signal_reaches_it(sandbox: Sandbox) -> None:
    command = sandbox.commands.run(
        "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done", background=True
    )
    next(iter(command))
    command.signal("SIGINT")
    result = command.wait()
    assert (result.exit_code, result.stdout) == (9, "ready\ncaught\n")


def test_killing_takes_the_whole_tree(sandbox: Sandbox, wait_for: Callable[[Callable[[], bool]], None]) -> None:
    mark = "271.82818"
    command = sandbox.commands.run(
        f"setsid sleep {mark} & (setsid sleep {mark} &); echo up; sleep {mark}", background=True
    )
    next(iter(command))
    assert sandbox.commands.kill(command.pid)
    assert command.wait().signal == 9
    wait_for(
        lambda: (
            not any(
                mark in process.argv and process.state not in "XZ"
                for process in sandbox.commands.list()
                if not process.is_execution
            )
        )
    )


def test_the_list_tells_what_runs(sandbox: Sandbox) -> None:
    command = sandbox.commands.run(["sleep", "60"], background=True, tag="my job")
    [found] = [process for process in sandbox.commands.list() if process.pid == command.pid]
    assert (found.argv, found.tag, found.background, found.is_execution, found.exit_code) == (
        ("sleep", "60"),
        "my job",
        True,
        True,
        None,
    )
    command.kill()
    command.wait()
    [ended] = [process for process in sandbox.commands.list() if process.pid == command.pid and process.is_execution]
    assert ended.exit_code == 137


def test_a_process_that_is_not_there_is_told(sandbox: Sandbox) -> None:
    with pytest.raises(ProcessNotFound, match="no process 999999"):
        sandbox.commands.connect(999_999)
    with pytest.raises(ProcessNotFound):
        sandbox.commands.send_stdin(999_999, "x")
    assert not sandbox.commands.kill(999_999)


def test_options_that_do_not_go_together_are_refused(sandbox: Sandbox) -> None:
    with pytest.raises(InvalidRequest, match="no callbacks"):
        sandbox.commands.run("true", background=True, on_stdout=print)  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(InvalidRequest, match="stdin is True"):
        sandbox.commands.run("true", stdin=True)  # pyright: ignore[reportCallIssue, reportArgumentType]
    command = sandbox.commands.run(["sleep", "60"], background=True)
    with pytest.raises(InvalidRequest, match="'SIGNONE'"):
        command.signal("SIGNONE")
    command.kill()
