"""Code and commands: what runs, as what, and how it ends (product lines 1, 3, 10, 11)."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from cloche.errors import CommandFailed, CommandTimeout, InvalidRequest, RuntimeNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche import Sandbox
    from cloche.models import CommandResult


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["python3", "-c", "print(6 * 7)"], "42\n"),
        (["node", "-e", "console.log(6 * 7)"], "42\n"),
        ("echo $((6 * 7))", "42\n"),
        ("bash -c 'echo 42'", "42\n"),
        (["sh", "-c", "echo 42"], "42\n"),
    ],
)
def test_the_usual_languages_run(sandbox: Sandbox, command: str | list[str], output: str) -> None:
    assert sandbox.commands.run(command).check().stdout == output


def test_the_two_outputs_are_apart_and_in_order(sandbox: Sandbox) -> None:
    seen: list[str] = []
    result = sandbox.commands.run(
        "for i in 1 2 3; do echo out$i; sleep 0.02; echo err$i >&2; sleep 0.02; done",
        on_stdout=seen.append,
        on_stderr=seen.append,
    )
    assert (result.stdout, result.stderr) == ("out1\nout2\nout3\n", "err1\nerr2\nerr3\n")
    assert "".join(seen).split() == ["out1", "err1", "out2", "err2", "out3", "err3"]


def test_output_streams_while_the_command_runs(sandbox: Sandbox) -> None:
    times: list[float] = []
    sandbox.commands.run("echo a; sleep 0.3; echo b", on_stdout=lambda _: times.append(time.monotonic()))
    assert times[-1] - times[0] > 0.2


@pytest.mark.parametrize(
    ("command", "code", "signal"), [("exit 7", 7, None), ("kill -15 $$", 143, 15), ("true", 0, None)]
)
def test_exit_codes_and_signals_are_told(sandbox: Sandbox, command: str, code: int, signal: int | None) -> None:
    result = sandbox.commands.run(command)
    assert (result.exit_code, result.signal, result.ok) == (code, signal, code == 0)


def test_times_and_memory_are_told(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(["python3", "-c", "x = b'x' * (40 << 20); sum(range(3_000_000))"]).check()
    assert result.cpu_seconds > 0.01
    assert result.wall_seconds >= 0.01
    assert 40 << 20 < result.peak_memory_bytes < 200 << 20


def test_a_program_that_is_not_there_is_a_result(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(["no-such-program"])
    assert result.exit_code == 127
    assert "no-such-program" in result.stderr


def test_check_raises_for_what_failed(sandbox: Sandbox) -> None:
    with pytest.raises(CommandFailed, match="exit code 3: gone wrong"):
        sandbox.commands.run("echo gone wrong >&2; exit 3").check()
    with pytest.raises(CommandTimeout, match="out of time"):
        sandbox.commands.run(["sleep", "9"], timeout=0.1).check()


def test_the_environment_is_built_from_nothing(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "1")
    env = dict(line.split("=", 1) for line in sandbox.commands.run(["env"]).stdout.splitlines())
    assert "SECRET_OF_THE_HOST" not in env
    assert (env["LANG"], env["TERM"]) == ("C.UTF-8", "dumb")
    assert {"HOME", "PATH", "USER"} <= set(env)


def test_the_calls_environment_wins_over_the_boxs(make: Callable[..., Sandbox]) -> None:
    box = make(env={"A": "box", "B": "box", "LANG": "de"})
    result = box.commands.run("echo $A $B $LANG", env={"B": "call"})
    assert result.stdout == "box call de\n"


def test_commands_start_at_home_or_where_they_are_told(sandbox: Sandbox) -> None:
    assert sandbox.commands.run('test "$PWD" = "$HOME" && echo home').stdout == "home\n"
    assert sandbox.commands.run(["pwd"], cwd="/usr").stdout == "/usr\n"


def test_a_cwd_that_is_not_there_is_the_callers_error(sandbox: Sandbox) -> None:
    with pytest.raises(InvalidRequest, match="cwd is '/nowhere'"):
        sandbox.commands.run("true", cwd="/nowhere")


@pytest.mark.parametrize(("data", "size"), [("hello", 5), (b"\0\xff", 2), ("x" * 3_000_000, 3_000_000), ("", 0)])
def test_input_of_any_size_is_fed(sandbox: Sandbox, data: str | bytes, size: int) -> None:
    assert sandbox.commands.run(["wc", "-c"], stdin=data).stdout.strip() == str(size)


def test_input_and_output_flow_at_once(sandbox: Sandbox) -> None:
    text = "0123456789" * 500_000
    assert sandbox.commands.run(["cat"], stdin=text, output_bytes=0).stdout == text


def test_without_input_a_reader_is_at_the_end(sandbox: Sandbox) -> None:
    assert sandbox.commands.run(["cat"]).stdout == ""


def test_arguments_arrive_as_they_are(sandbox: Sandbox) -> None:
    words = ["a b", "", "$HOME", "ü\n", "'\"", "\udcff", "x" * 100_000]
    result = sandbox.commands.run(
        ["python3", "-c", "import os,sys; print([os.fsencode(a) for a in sys.argv[1:]])", *words]
    )
    assert result.stdout == f"{[word.encode('utf-8', 'surrogateescape') for word in words]}\n"


@pytest.mark.parametrize("command", [[], [""], "", "a\0b", ["a", "b\0"]])
def test_a_command_that_makes_no_sense_is_refused(sandbox: Sandbox, command: str | list[str]) -> None:
    with pytest.raises(InvalidRequest):
        sandbox.commands.run(command)


def stubborn(body: str) -> list[str]:
    return ["python3", "-c", f"import os,signal,sys,time\n{body}"]


def test_its_own_streams_can_be_opened_again(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("cat /dev/stdin >/dev/stdout; echo err | tee /dev/stderr", stdin="in")
    assert (result.stdout, result.stderr) == ("inerr\n", "err\n")


@pytest.mark.promise("timeout")
@pytest.mark.parametrize(
    "command",
    [
        ["sleep", "100"],
        stubborn(
            "for s in range(1, 65):\n try: signal.signal(s, signal.SIG_IGN)\n except (OSError, ValueError): ...\ntime.sleep(100)"
        ),
        stubborn("os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(100)"),
        stubborn("if os.fork(): time.sleep(100)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(100)"),
        "while :; do :; done",
        "yes",
    ],
    ids=["plain", "ignores signals", "stops itself", "hides", "spins", "floods"],
)
def test_time_is_up_for_whatever_it_is(sandbox: Sandbox, command: str | list[str]) -> None:
    result = sandbox.commands.run(command, timeout=0.4)
    assert result.limit_hit == "timeout"
    assert result.message == "out of time: the limit is 0.4 s; raise timeout"
    assert 0.3 < result.wall_seconds < 2.4
    assert sandbox.commands.run("echo lives on").stdout == "lives on\n"


@pytest.mark.promise("kill_tree")
def test_the_time_limit_takes_daemons_along(sandbox: Sandbox, wait_for: Callable[[Callable[[], bool]], None]) -> None:
    mark = "314.15926"
    sandbox.commands.run(f"(setsid sleep {mark} &) ; setsid sh -c 'sleep {mark} & sleep {mark}'", timeout=0.5)
    wait_for(lambda: not any(mark in process.argv and process.state != "Z" for process in sandbox.commands.list()))


def test_what_a_command_leaves_running_is_told_and_does_not_hold_it(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("sleep 5 & echo done", timeout=20)
    assert result.stdout == "done\n"
    assert result.left_running
    assert result.wall_seconds < 2


@pytest.mark.promise("output_bytes")
def test_output_beyond_the_limit_is_cut_in_the_middle_and_told(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(["seq", "1000000"], output_bytes=10_000)
    assert result.ok
    assert result.limit_hit == "output_bytes"
    assert result.message is not None
    assert "raise output_bytes" in result.message
    assert result.stdout.startswith("1\n2\n")
    assert result.stdout.endswith("999999\n1000000\n")
    assert f"{result.output_dropped} bytes of output are missing here" in result.stdout
    assert len(result.stdout) < 10_200


def test_a_flood_of_output_without_a_newline_is_bounded(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(["head", "-c", "1000000000", "/dev/zero"], timeout=60)
    kept = 1_000_000_000 - result.output_dropped
    assert (1 << 19) < kept <= 1 << 20


def test_all_output_comes_where_no_limit_is_set(sandbox: Sandbox) -> None:
    assert len(sandbox.commands.run(["head", "-c", "30000000", "/dev/zero"], output_bytes=0).stdout) == 30_000_000


def test_text_is_decoded_wherever_it_was_cut(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(["python3", "-c", "print('ü€𝄞' * 300_000)"], output_bytes=0)
    assert result.stdout == "ü€𝄞" * 300_000 + "\n"


def test_octets_that_are_no_text_do_no_harm(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("printf 'a\\377b\\303'").stdout == "a�b�"


def test_many_threads_share_a_sandbox(sandbox: Sandbox) -> None:
    results: list[CommandResult] = []

    def run(number: int) -> None:
        results.append(sandbox.commands.run(f"echo {number}; exit {number}"))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.exit_code for result in results) == list(range(12))
    assert all(result.stdout == f"{result.exit_code}\n" for result in results)


def test_a_runtime_that_is_not_there_is_told_with_those_that_are(make: Callable[..., Sandbox]) -> None:
    with pytest.raises(RuntimeNotFound, match=r"python ?2\.3.*it has .*python3"):
        make("python2.3")
    with pytest.raises(RuntimeNotFound, match="there is no runtime 'cobol'"):
        make("cobol")


def test_the_runtime_says_what_was_chosen(sandbox: Sandbox) -> None:
    assert sandbox.runtime.name.startswith("python3")
    found = sandbox.commands.run(["python", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).check()
    assert found.stdout.strip() == sandbox.runtime.version


def test_root_is_not_had_for_the_asking(sandbox: Sandbox) -> None:
    with pytest.raises(InvalidRequest, match="made for 'user'"):
        sandbox.commands.run("true", user="root")
