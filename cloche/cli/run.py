"""`cloche run`."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from io import BytesIO
from typing import IO, TYPE_CHECKING, Final

from cloche.cli.arguments import Rest, UsageError
from cloche.cli.options import add_box_options, box_arguments
from cloche.cli.outlet import add_output_options, collect, follow, refuse_too_much
from cloche.client.targets import own_descriptor
from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator

    from cloche.client._sync.sandbox import Sandbox

EXAMPLE: Final = "cloche run --memory 256 --timeout 5 -c 'print(6 * 7)'"
REST: Final = Rest(
    "[--] FILE | - [ARG …]",
    "a file with the code, or - for standard input (neither with -c); then the code's own arguments",
)
SUFFIXES: Final = {
    ".py": "python",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".ts": "node",
    ".mts": "node",
    ".sh": "bash",
    ".bash": "bash",
}
"""The language of a file, where none is asked for."""
IDLE_SECONDS: Final = 10.0
"""Should this program be killed: nobody comes back to its sandbox."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_box_options(parser)
    add_output_options(parser)
    parser.add_argument("-c", dest="code", metavar="CODE", help="the code itself")


def run(args: argparse.Namespace) -> int:
    """Makes a sandbox, runs the code with our input and output, and ends with its exit code."""
    from cloche.client._sync.sandbox import Sandbox

    file, words = _find_code(args)
    options = box_arguments(args)
    if args.json and "output_bytes" in options:
        refuse_too_much(options["output_bytes"])
    if file and "runtime" not in options:
        options["runtime"] = SUFFIXES.get(os.path.splitext(file)[1].lower())
    with (
        _open_code(file) as source,
        Sandbox.create(**options, bound=True, idle_timeout=IDLE_SECONDS) as box,
    ):
        if box.runtime.note and not args.json:
            from cloche.cli.terminal import say

            say(box.runtime.note)
        command = _command(box, args.code, file, source, words)
        has_input = file != "-"
        with box.commands.start(command, stdin=has_input) as execution:
            if not args.json:
                return follow(execution, box.limits, raw=args.raw, stdin=has_input)
            answer = collect(execution, box.limits, stdin=has_input)
        from cloche.cli.tables import print_json

        print_json({**answer, "runtime": box.runtime.name, "note": box.runtime.note, "engine": box.engine})
        return answer["exit_code"]


def _find_code(args: argparse.Namespace) -> tuple[str | None, list[str]]:
    """The file, if there is one, and the code's arguments."""
    if args.code is not None:
        return None, args.rest
    if not args.rest:
        raise UsageError("there is no code; expected a file, - for standard input, or -c CODE")
    file, *words = args.rest
    return "-" if own_descriptor(file) == 0 else file, words


@contextmanager
def _open_code(file: str | None) -> Generator[IO[bytes]]:
    """The file with the code: before there is a sandbox, as it may be none, or have to be waited for."""
    if file is None or file == "-":
        yield BytesIO(sys.stdin.buffer.read() if file else b"")
        return
    try:
        source = open(file, "rb")  # noqa: SIM115
    except IsADirectoryError:
        raise InvalidRequest(f"{file!r} is a folder; a file with code was expected") from None
    except OSError as error:
        raise InvalidRequest(f"{file!r} can't be read: {error.strerror}") from error
    with source:
        yield source if source.seekable() else BytesIO(source.read())


def _command(box: Sandbox, code: str | None, file: str | None, source: IO[bytes], words: list[str]) -> list[str]:
    """The interpreter with the code: given as an argument, or in a file that is put into the sandbox's home."""
    language = box.runtime.name.rstrip("0123456789.")
    interpreter = box.runtime.path
    if code is not None:
        if language == "node":
            return [interpreter, "-e", code, "--", *words]
        # A shell takes the first word as its own name.
        return [interpreter, "-c", code, *([] if language == "python" else [language]), *words]
    assert file is not None, "without code there is a file"
    path = f"{box.home}/{'stdin' if file == '-' else os.path.basename(os.path.abspath(file))}"
    box.files.write(path, source)
    return [interpreter, path, *words]
