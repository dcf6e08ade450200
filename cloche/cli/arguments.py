"""The words of a command line: which are ours, and what they ask for."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, Protocol, cast

from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

JSON_HELP: Final = "print JSON, for programs"
NARROWEST: Final = 40


class UsageError(InvalidRequest):
    """The words on the command line make no sense: the exit status is 2."""


class Rest(NamedTuple):
    """The words that a command passes on: all behind `--`, else all from the first one that is not for itself."""

    name: str
    help: str


class Actions(Protocol):
    """What `parser.add_subparsers` gives."""

    def add_parser(
        self, name: str, *, help: str, description: str, formatter_class: type[Formatter], allow_abbrev: bool
    ) -> argparse.ArgumentParser: ...


class Formatter(argparse.RawDescriptionHelpFormatter):
    """The usual one; argparse makes one for each option, and would import `shutil` for the width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=screen_width() - 2)


class Parser(argparse.ArgumentParser):
    """One that says what to do next."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. Try: {self.prog} --help")


def split_words(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words for `parser` itself, and the rest, which it passes on."""
    flags = {flag: action for action in arguments_of(parser) for flag in action.option_strings}
    missing = sum(not action.option_strings for action in arguments_of(parser))
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return list(words[:at]), list(words[at + 1 :])
        if word.startswith("-") and word != "-":
            at += 2 if _takes_next(word, flags) else 1
            continue
        if not missing:
            break
        missing -= 1
        at += 1
    return list(words[:at]), list(words[at:])


def _takes_next(word: str, flags: Mapping[str, argparse.Action]) -> bool:
    """True where the next word is the value of this option, or of the last of these (`-itc`)."""
    if word in flags:
        return flags[word].nargs != 0
    for at, letter in enumerate(word[1:], 2):
        action = flags.get(f"-{letter}")
        if action is None or action.nargs != 0:
            return action is not None and at == len(word)
    return False


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace | None:
    """What they say; None where they ask for help alone, which has been shown.

    Raises: UsageError.
    """
    try:
        return parser.parse_args(words)
    except SystemExit as end:
        if end.code:
            raise
        return None


def number_from(least: int, most: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number of that range."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text!r} was given; a number of {least} to {most} was expected")
        return number

    return read


def arguments_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What a parser takes: argparse tells nobody else."""
    return list(parser._actions)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001


def actions_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of `cloche COMMAND NAME`."""
    for argument in arguments_of(parser):
        choices = cast("object", argument.choices)
        if isinstance(choices, dict):
            return cast("dict[str, argparse.ArgumentParser]", choices)
    return {}


def add_action(actions: Actions, name: str, what: str) -> argparse.ArgumentParser:
    """The parser of `cloche COMMAND NAME`."""
    action = actions.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    # Where it is not given here, what stands before the name holds.
    action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=JSON_HELP)
    return action


def screen_width() -> int:
    """Columns of the terminal, where that is enough to write in; 80 where there is none."""
    with suppress(OSError, ValueError):
        return max(NARROWEST, int(os.environ.get("COLUMNS") or os.get_terminal_size().columns))
    return 80
