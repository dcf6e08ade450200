"""Which words are ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche.cli.arguments import Parser, UsageError, number_from, parse, screen_width, split_words
from cloche.cli.main import load, main, make_parser

if TYPE_CHECKING:
    from cloche.cli.main import Command


def parser(*, ids: int) -> Parser:
    found = Parser(prog="cloche test")
    found.add_argument("--json", action="store_true")
    found.add_argument("-i", "--interactive", action="store_true")
    found.add_argument("-c")
    found.add_argument("--user")
    for number in range(ids):
        found.add_argument(f"id{number}")
    return found


@pytest.mark.parametrize(
    ("ids", "line", "own", "rest"),
    [
        (1, "t1 ls -l", "t1", "ls -l"),
        (1, "t1 --json ls --json", "t1 --json", "ls --json"),
        (1, "--user root t1 -i ls", "--user root t1 -i", "ls"),
        (1, "--user=root t1 ls", "--user=root t1", "ls"),
        (1, "t1 -- --json", "t1", "--json"),
        (1, "t1 ls -- -l", "t1", "ls -- -l"),
        (1, "-ic code t1 ls", "-ic code t1", "ls"),
        (1, "-iccode t1 ls", "-iccode t1", "ls"),
        (1, "t1 --unknown ls", "t1 --unknown", "ls"),
        (1, "t1 -x ls", "t1 -x", "ls"),
        (1, "t1", "t1", ""),
        (1, "--user", "--user", ""),
        (1, "--", "", ""),
        (0, "file -c", "", "file -c"),
        (0, "- -x", "", "- -x"),
        (0, "-c code -- --foo", "-c code", "--foo"),
        (0, "-c code a -- b", "-c code", "a -- b"),
        (0, "--json -- file", "--json", "file"),
    ],
)
def test_the_rest_begins_behind_two_dashes_or_with_the_first_word_that_is_not_ours(
    ids: int, line: str, own: str, rest: str
) -> None:
    assert split_words(parser(ids=ids), line.split()) == (own.split(), rest.split())


def test_what_makes_no_sense_is_an_error_with_the_way_to_help() -> None:
    with pytest.raises(UsageError, match=r"unrecognized arguments: --nonsense\. Try: cloche test --help"):
        parse(parser(ids=0), ["--nonsense"])


def test_help_alone_is_shown_and_nothing_else_is_to_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(parser(ids=1), ["--help"]) is None
    assert "usage: cloche test" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["0", "11", "²", "-1", "1e3", "99999999999999999999", ""])
def test_a_number_that_can_t_be_is_refused_with_those_that_can(text: str) -> None:
    found = Parser(prog="cloche test")
    found.add_argument("--number", type=number_from(1, 10))
    assert found.parse_args(["--number", "10"]).number == 10
    with pytest.raises(UsageError, match=f"'{text}' was given; a number of 1 to 10 was expected"):
        parse(found, [f"--number={text}"])


@pytest.mark.parametrize(("columns", "width"), [("1", 40), ("0", 40), ("-5", 40), ("100", 100), ("wide", 80)])
def test_there_is_always_room_to_write(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert screen_width() == width


@pytest.mark.parametrize("words", [["run"], ["exec"], ["images", "add"]])
def test_help_fits_where_there_is_hardly_any_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1")
    assert main([*words, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "show this help" in " ".join(shown.split())


def test_help_tells_of_the_rest_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    command: Command = load("exec")
    assert main(["exec", "--help"]) == 0
    assert capsys.readouterr().out == make_parser("exec", command).format_help()
