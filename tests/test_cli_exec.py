from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cloche.cli.main import main

if TYPE_CHECKING:
    from cloche import Sandbox


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["box", "--", "echo", "-n", "a  b"], "a  b"),
        (["box", "echo", "-n", "a"], "a"),
        (["box", "--", "echo $((6 * 7)) | cat"], "42\n"),
        (["box", "--cwd", "/tmp", "--env", "A=1", "--", "pwd; echo $A"], "/tmp\n1\n"),
        (["--cwd", "/usr", "box", "--", "sh", "-c", "pwd; echo -- $0"], "/usr\n-- sh\n"),
        (["box", "--", "id", "-un"], "user\n"),
        (["box", "--env", "A=1", "sh", "-c", "echo $A $0", "--json"], "1 --json\n"),
        (["box", "echo", "--", "-n"], "-- -n\n"),
    ],
)
def test_commands_run(box: Sandbox, capfd: pytest.CaptureFixture[str], words: list[str], output: str) -> None:
    del box
    assert main(["exec", *words]) == 0
    assert capfd.readouterr() == (output, "")


def test_its_exit_code_is_ours_and_a_limit_is_told(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", box.id, "--", "exit 7"]) == 7
    assert main(["exec", box.id, "--timeout", "0.2", "--", "sleep", "60"]) == 137
    assert capfd.readouterr().err == "cloche: out of time: the limit is 0.2 s; raise --timeout\n"


def test_input_is_given_where_it_is_asked_for(box: Sandbox) -> None:
    for words, output in ((["-i", box.id, "cat"], b"in\xff"), ([box.id, "cat"], b"")):
        command = [sys.executable, "-m", "cloche", "exec", *words]
        assert subprocess.run(command, input=b"in\xff", capture_output=True, check=True).stdout == output


def test_in_the_background_it_goes_on_and_its_number_is_told(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", "box", "-b", "--", "echo begun; sleep 60"]) == 0
    pid = int(capfd.readouterr().out)
    assert [process.background for process in box.commands.list() if process.pid == pid] == [True]
    assert main(["exec", "box", "-b", "--json", "--", "true"]) == 0
    assert json.loads(capfd.readouterr().out)["id"] == box.id


def test_a_program_gets_the_result(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", box.id, "--json", "--", "echo out; exit 2"]) == 2
    assert json.loads(capfd.readouterr().out)["stdout"] == "out\n"
    assert main(["exec", box.id, "--json", "--timeout", "0.2", "sleep", "9"]) == 137
    assert json.loads(capfd.readouterr().out)["message"] == "out of time: the limit is 0.2 s; raise --timeout"


def test_options_may_stand_behind_the_id(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    del box
    assert main(["exec", "box", "--json", "echo", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["stdout"] == "--json\n"


@pytest.mark.parametrize("words", [["box"], ["box", "-i"], ["box", "--"]])
def test_without_a_command_the_form_is_told(box: Sandbox, capfd: pytest.CaptureFixture[str], words: list[str]) -> None:
    del box
    assert main(["exec", *words]) == 2
    assert "expected: cloche exec ID [options] -- CMD" in capfd.readouterr().err


def test_who_may_not_be_root_is_told_of_the_option(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", "box", "--user", "root", "id"]) == 125
    wanted = f"cloche: --user is 'root'; the sandbox {box.id} was made for 'user': make one for 'root'\n"
    assert capfd.readouterr().err == wanted


def test_a_terminal_is_refused_where_we_have_none(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    del box
    for words in (["exec", "box", "-t", "--", "top"], ["shell", "box"]):
        assert main(words) == 125
        assert "a terminal was asked for" in capfd.readouterr().err
