"""`cloche COMMAND …`: finds the command, reads its arguments, and says in one line what went wrong."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, TypeGuard, cast

from cloche.errors import ClocheError, EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS: Final = {
    "run": "run code in a fresh sandbox, which is gone afterwards",
    "create": "make a sandbox and print its id",
    "exec": "run a command in a sandbox",
    "shell": "open a shell in a sandbox",
    "code": "run code in an interpreter that stays, or open a console",
    "ls": "list the sandboxes",
    "ps": "list the processes in a sandbox",
    "logs": "show the output of a background process",
    "kill": "send a signal to a process in a sandbox",
    "cp": "copy files into a sandbox, out of it, or between two",
    "rm": "end sandboxes and remove all that is in them",
    "images": "list, add and remove images",
    "runtimes": "list the language runtimes, and add others",
    "explain": "show where a command would run, why, and what it would see",
    "doctor": "show what this machine enforces, and how to repair what it does not",
    "setup": "prepare this machine for sandboxes of an ordinary user",
    "completion": "print a completion script for bash, zsh or fish",
}
"""Each name is a file beside this one."""

USAGE_ERROR, OUR_ERROR = 2, 125
OBJECTS: Final = 50_000
"""That may be made before the garbage collector looks at them."""
JSON_HELP: Final = "print JSON, for programs"


class Command(Protocol):
    """What the file of a command holds."""

    EXAMPLE: str
    """One line that works, shown in the help."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int:
        """The exit status. Raises: ClocheError."""
        ...


class TakesCommand(Command, Protocol):
    """One that is called with another command behind `--`, which it finds in `args.command`."""

    COMMAND_HELP: str


class Actions(Protocol):
    """What `parser.add_subparsers` gives."""

    def add_parser(self, name: str, *, help: str, description: str, allow_abbrev: bool) -> argparse.ArgumentParser: ...


class Formatter(argparse.RawDescriptionHelpFormatter):
    """The usual one; argparse makes one for each option, and would import `shutil` for the width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width())


class Parser(argparse.ArgumentParser):
    """One that says what to do next."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"cloche: {message}\nTry: {self.prog} --help\n")


def program() -> NoReturn:
    """The program `cloche`: ended from outside it still leaves nothing half done."""
    # Nothing of what is imported is garbage: to look through it takes 4 ms.
    gc.set_threshold(OBJECTS)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)
    status = main()
    # The interpreter's own end takes 10 ms, and gives back nothing that the kernel would not.
    os._exit(status)


def _stop(number: int, frame: object) -> NoReturn:
    del frame
    # Once is enough: what is being cleaned up is to be cleaned up.
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """What `cloche` does with these words; gives the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _call(words[0] if words else "--help", words[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Nobody reads our output any more.
        return 141
    except ClocheError as error:
        tell(error, as_json="--json" in words)
        return OUR_ERROR
    except OSError as error:
        # Of our own files, or of our output: what a sandbox's files are about has been told above.
        what = f"{error.filename!r}: " if error.filename else ""
        tell(EngineError(f"{what}{error.strerror or error}"), as_json="--json" in words)
        return OUR_ERROR
    return status


def _call(name: str, words: list[str]) -> int:
    if name in ("-h", "--help", "help"):
        print(overview(), end="")
        return 0
    if name in ("-V", "--version"):
        from cloche.version import __version__

        print(f"cloche {__version__}")
        return 0
    if name not in COMMANDS:
        return _refuse(name)
    command = load(name)
    words, command_words = _split(command, words)
    args = make_parser(name, command, is_split=command_words is not None).parse_args(words)
    if command_words is not None:
        args.command = command_words
    return command.run(args)


def load(name: str) -> Command:
    """The file of a command."""
    return cast("Command", import_module(f"cloche.cli.{name}"))


def make_parser(name: str, command: Command, *, is_split: bool = False) -> Parser:
    """The parser of one command, with the options that all have; `is_split`: what is behind `--` was taken off."""
    parser = Parser(
        prog=f"cloche {name}",
        description=f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.",
        epilog=f"example:\n  {command.EXAMPLE}",
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    command.add_arguments(parser)
    if _takes_command(command) and not is_split:
        parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD …", help=command.COMMAND_HELP)
    return parser


def _takes_command(command: Command) -> TypeGuard[TakesCommand]:
    return hasattr(command, "COMMAND_HELP")


def _split(command: Command, words: list[str]) -> tuple[list[str], list[str] | None]:
    """Our words, and behind the first `--` those of a command that is to be run, options and all."""
    if not _takes_command(command) or "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]


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
    action = actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.", allow_abbrev=False)
    # Where it is not given here, what stands before the name holds.
    action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=JSON_HELP)
    return action


def overview() -> str:
    """The help without a command."""
    lines = [f"  {name:<12} {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "usage: cloche COMMAND ...",
            "",
            "Runs code that an AI agent wrote, where it can do no harm and where a person can see everything it does.",
            "",
            *lines,
            "",
            "cloche COMMAND --help shows the options of a command, with an example.",
            "",
        ]
    )


def tell(error: ClocheError, *, as_json: bool) -> None:
    """What went wrong, on standard error; a program finds the code that is stable."""
    if as_json:
        import json

        print(json.dumps({"error": {"code": error.code, "message": error.message}}), file=sys.stderr)
    else:
        from cloche.cli.terminal import say

        say(error.message)


def _width() -> int:
    with suppress(OSError, ValueError):
        return max(40, int(os.environ.get("COLUMNS") or os.get_terminal_size().columns) - 2)
    return 78


def _refuse(name: str) -> int:
    from difflib import get_close_matches

    from cloche.cli.terminal import say

    near = get_close_matches(name, COMMANDS, 1)
    hint = f"did you mean: cloche {near[0]}" if near else f"there are: {', '.join(COMMANDS)}"
    say(f"there is no command {name!r}; {hint}")
    return USAGE_ERROR
