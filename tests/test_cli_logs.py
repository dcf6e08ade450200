from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cloche.cli.main import main

if TYPE_CHECKING:
    from cloche import Sandbox


def test_output_is_shown_from_any_offset_and_followed_to_the_end(
    box: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    command = box.commands.run("echo one; sleep 0.3; echo two >&2; sleep 0.05; echo three", background=True)
    assert main(["logs", "box", "--follow"]) == 0
    assert capfd.readouterr() == ("one\nthree\n", "two\n")
    assert main(["logs", "box", str(command.pid), "--offset", "4", "--json"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(line["stream"], line["offset"], line["text"]) for line in lines] == [
        ("stderr", 4, "two\n"),
        ("stdout", 8, "three\n"),
    ]


def test_what_is_not_kept_is_told(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    box.commands.run("head -c 100000 /dev/zero | tr '\\0' x", background=True, output_bytes=10_000).wait()
    assert main(["logs", "box"]) == 0
    captured = capfd.readouterr()
    assert len(captured.out) == 10_000
    assert captured.err == "cloche: 90000 bytes, from 5000 on, are not kept any more\n"


def test_logs_of_one_of_many_wants_a_number(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "box"]) == 125
    assert "There are: none" in capfd.readouterr().err
    pids = [box.commands.run(["sleep", "60"], background=True).pid for _ in range(2)]
    assert main(["logs", "box"]) == 125
    assert f"{pids[0]}, {pids[1]}" in capfd.readouterr().err
    assert main(["logs", "box", "4000"]) == 125


@pytest.mark.parametrize("words", [["--offset", "-1"], ["--offset", str(1 << 63)], ["0"], [str(1 << 22 | 1)]])
def test_numbers_that_can_t_be_are_refused(box: Sandbox, capfd: pytest.CaptureFixture[str], words: list[str]) -> None:
    del box
    assert main(["logs", "box", *words]) == 2
    assert "was given; a number of" in capfd.readouterr().err


def test_an_offset_behind_the_end_shows_nothing(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    box.commands.run("echo one", background=True).wait()
    assert main(["logs", "box", "--offset", str((1 << 63) - 1)]) == 0
    assert capfd.readouterr() == ("", "")
