"""`cloche COMMAND …`: finds the command, reads its arguments, and says in one line what went wrong."""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, TypeGuard, cast

from cloche.cli.arguments import JSON_HELP, Formatter, Parser, Rest, UsageError, parse, split_words
from cloche.cli.signals import handle_ends
from cloche.cli.streams import complete_streams
from cloche.errors import ClocheError, EngineError

if TYPE_CHECKING:
    import argparse
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

USAGE_ERROR, OUR_ERROR, INTERRUPTED, NO_READER = 2, 125, 130, 141
OBJECTS: Final = 50_000
"""That may be made before the garbage collector looks at them."""


class Command(Protocol):
    """What the file of a command holds."""

    EXAMPLE: str
    """One line that works, shown in the help."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int:
        """The exit status. Raises: ClocheError."""
        ...


class PassesOn(Command, Protocol):
    """One that passes words on, and finds them in `args.rest`."""

    REST: Rest


def program() -> NoReturn:
    """The program `cloche`: ended from outside it still leaves nothing half done."""
    # Nothing of what is imported is garbage: to look through it takes 4 ms.
    gc.set_threshold(OBJECTS)
    status = INTERRUPTED
    with suppress(KeyboardInterrupt):
        complete_streams()
        handle_ends()
        status = main()
    # The interpreter's own end takes 10 ms, and gives back nothing that the kernel would not.
    os._exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """What `cloche` does with these words; gives the exit status."""
    line = Line(sys.argv[1:] if argv is None else argv)
    try:
        status = line.run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads our output any more.
        return NO_READER
    except ClocheError as error:
        tell(error, as_json=line.as_json)
        return USAGE_ERROR if isinstance(error, UsageError) else OUR_ERROR
    except OSError as error:
        # Of our own files, or of our output: what a sandbox's files are about has been told above.
        tell(EngineError(_describe(error)), as_json=line.as_json)
        return OUR_ERROR
    return status


class Line:
    """A command line."""

    def __init__(self, words: Sequence[str]) -> None:
        self._name = words[0] if words else "--help"
        self._own, self._rest = list(words[1:]), list[str]()

    @property
    def as_json(self) -> bool:
        """True where JSON is asked for by a word that is ours."""
        own = self._own
        return "--json" in own[: own.index("--") if "--" in own else None]

    def run(self) -> int:
        """Does what it says."""
        if self._name in ("-h", "--help", "help"):
            print(overview(), end="")
            return 0
        if self._name in ("-V", "--version"):
            from cloche.version import __version__

            print(f"cloche {__version__}")
            return 0
        if self._name not in COMMANDS:
            raise _unknown(self._name)
        command = load(self._name)
        parser = _make_parser(self._name, command)
        if _passes_on(command):
            self._own, self._rest = split_words(parser, self._own)
            # Shown only: argparse would take our own options for a part of the rest.
            parser.format_help = lambda: make_parser(self._name, command).format_help()
        args = parse(parser, self._own)
        if args is None:
            return 0
        args.rest = self._rest
        return command.run(args)


def load(name: str) -> Command:
    """The file of a command."""
    return cast("Command", import_module(f"cloche.cli.{name}"))


def make_parser(name: str, command: Command) -> Parser:
    """All that a command takes, to be shown."""
    parser = _make_parser(name, command)
    if _passes_on(command):
        parser.add_argument("rest", nargs="...", metavar=command.REST.name, help=command.REST.help)
    return parser


def _make_parser(name: str, command: Command) -> Parser:
    """What it takes for itself, the option that all have included."""
    parser = Parser(
        prog=f"cloche {name}",
        description=f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.",
        epilog=f"example:\n  {command.EXAMPLE}",
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    command.add_arguments(parser)
    return parser


def _passes_on(command: Command) -> TypeGuard[PassesOn]:
    return hasattr(command, "REST")


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
    message = _in_our_words(error)
    # Where nobody listens, the exit status is all that is left to tell.
    with suppress(OSError):
        if as_json:
            import json

            print(json.dumps({"error": {"code": error.code, "message": message}}), file=sys.stderr)
        else:
            from cloche.cli.terminal import say

            say(message)


def _in_our_words(error: ClocheError) -> str:
    """The library's argument that it is about has the name of the option."""
    argument = error.data.get("parameter")
    if not isinstance(argument, str):
        return error.message
    from cloche.cli.options import FLAGS

    return re.sub(rf"\b{argument}\b", FLAGS.get(argument, f"--{argument.replace('_', '-')}"), error.message, count=1)


def _describe(error: OSError) -> str:
    if error.errno == errno.EBADF:
        return "standard output is closed, so there is nowhere to write the answer"
    what = f"{error.filename!r}: " if error.filename else ""
    return f"{what}{error.strerror or error}"


def _unknown(name: str) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, 1)
    hint = f"did you mean: cloche {near[0]}" if near else f"there are: {', '.join(COMMANDS)}"
    return UsageError(f"there is no command {name!r}; {hint}")
