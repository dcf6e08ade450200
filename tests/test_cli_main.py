"""The front of the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from cloche.cli.main import COMMANDS, main, tell
from cloche.errors import SandboxNotFound

FOLDER = Path(import_module("cloche.cli").__path__[0])


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("cloche ")


def test_an_unknown_command_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lss"]) == 2
    assert "did you mean: cloche ls" in capsys.readouterr().err
    assert main(["\x1b[31m"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_an_unknown_option_is_told_with_the_way_to_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--nonsense"]) == 2
    assert "Try: cloche ls --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["ls", "--json", "--nonsense"],
        ["lss", "--json"],
        ["run", "--memory", "x", "--json", "-c", "1"],
        ["exec", "--json"],
        ["kill", "--json", "box", "x"],
        ["images", "--json", "add"],
        ["images", "remove", "--json"],
    ],
)
def test_an_error_is_json_where_that_was_asked_for(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "invalid_request"


@pytest.mark.parametrize(
    "words",
    [
        ["exec", "nobody", "--", "ls", "--json"],
        ["exec", "nobody", "ls", "--json"],
        ["exec", "--nonsense", "nobody", "--", "--json"],
        ["rm", "nobody", "--", "--json"],
        ["run", "--engine", "moon", "-c", "1", "--", "--json"],
    ],
)
def test_words_of_another_command_make_no_json_of_ours(
    home: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    del home
    assert main(words) in (2, 125)
    assert capsys.readouterr().err.startswith("cloche: ")


def test_an_error_is_one_line_for_people_and_has_its_code_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    error = SandboxNotFound("there is no sandbox '\x07'")
    tell(error, as_json=False)
    assert capsys.readouterr().err == "cloche: there is no sandbox '�'\n"
    tell(error, as_json=True)
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "sandbox_not_found"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--memory", "0", "-c", "1"], "--memory is 0; at least 16 MB are needed"),
        (["run", "--output", "1", "-c", "1"], "--output is 1; at least 1024 octets are needed, or 0 for no limit"),
        (["create", "--idle-timeout", "-1"], "--idle-timeout is -1.0; 0.1 to"),
    ],
)
def test_a_refusal_names_the_option_and_not_the_argument_of_the_library(
    home: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    del home
    assert main(words) == 125
    assert capsys.readouterr().err.startswith(f"cloche: {message}")


@pytest.mark.parametrize("name", sorted(name for name in COMMANDS if (FOLDER / f"{name}.py").exists()))
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out.replace("sudo ", "")
    assert f"example:\n  cloche {name}" in shown


def test_an_answer_that_cannot_be_written_is_told(home: Path) -> None:
    del home
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "cloche", "ls"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 125
    assert done.stderr == b"cloche: No space left on device\n"


@pytest.mark.parametrize("words", [["ps", "nobody"], ["exec", "--json", "nobody", "ls"]])
def test_the_exit_status_is_told_also_where_nobody_hears_the_error(home: Path, words: list[str]) -> None:
    del home
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as deaf:
        assert subprocess.run([sys.executable, "-m", "cloche", *words], stderr=deaf).returncode == 125
