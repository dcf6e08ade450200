"""`cloche logs`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from cloche.cli.arguments import number_from
from cloche.cli.find import PID, add_id, find_sandbox
from cloche.cli.outlet import Outlet, add_output_options
from cloche.cli.terminal import say
from cloche.errors import ProcessNotFound

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from cloche.client._sync.sandbox import Sandbox
    from cloche.models import OutputChunk

EXAMPLE: Final = "cloche logs tests 12 --follow"
LARGEST: Final = (1 << 63) - 1
"""The largest offset that any file has."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_id(parser)
    parser.add_argument("pid", metavar="PID", type=PID, nargs="?", help="its number; may be left out if there is one")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until it ends")
    parser.add_argument(
        "--offset",
        type=number_from(0, LARGEST),
        default=0,
        metavar="BYTES",
        help="begin there; both outputs count together (default: 0)",
    )
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Shows what a background command wrote: both outputs as they were, in order."""
    box = find_sandbox(args.id)
    pid = _only_one(box) if args.pid is None else args.pid
    chunks = box.commands.connect(pid).output(args.offset, follow=args.follow)
    if args.json:
        _print_lines(chunks)
    else:
        _show(chunks, raw=args.raw)
    return 0


def _show(chunks: Iterator[OutputChunk], *, raw: bool) -> None:
    outlets = {"stdout": Outlet("stdout", raw=raw), "stderr": Outlet("stderr", raw=raw)}
    for chunk in chunks:
        if chunk.stream == "gap":
            say(f"{chunk.size} bytes, from {chunk.offset} on, are not kept any more")
        else:
            outlets[chunk.stream].write(chunk.data)
    for outlet in outlets.values():
        outlet.finish()


def _print_lines(chunks: Iterator[OutputChunk]) -> None:
    """An object a line: it may go on for ever."""
    for chunk in chunks:
        text = chunk.data.decode("utf-8", "backslashreplace")
        line = {"stream": chunk.stream, "offset": chunk.offset, "size": chunk.size, "text": text}
        print(json.dumps(line), flush=True)


def _only_one(box: Sandbox) -> int:
    found = sorted(process.pid for process in box.commands.list() if process.background)
    if len(found) == 1:
        return found[0]
    numbers = ", ".join(map(str, found)) or "none"
    raise ProcessNotFound(f"which background command of {box.id}? There are: {numbers}; name one: cloche logs ID PID")
