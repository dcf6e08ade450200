"""`cloche kill`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloche.cli.find import PID, add_id, find_sandbox
from cloche.errors import ProcessNotFound

if TYPE_CHECKING:
    import argparse

EXAMPLE: Final = "cloche kill tests 12 --signal INT"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_id(parser)
    parser.add_argument("pid", metavar="PID", type=PID, nargs="+", help="its number, as `cloche ps` shows it")
    parser.add_argument(
        "-s",
        "--signal",
        default="KILL",
        metavar="SIGNAL",
        help="name or number; KILL, the default, also ends all that it started",
    )


def run(args: argparse.Namespace) -> int:
    """Sends it to each of them; to `cloche rm` is left what ends the sandbox itself."""
    box = find_sandbox(args.id)
    signal: str = args.signal.upper()
    # Not isdigit: that is true of more than int() takes.
    wanted = int(signal) if signal.isdecimal() else f"SIG{signal.removeprefix('SIG')}"
    for pid in args.pid:
        if not box.commands.kill(pid, wanted):
            raise ProcessNotFound(f"there is no process {pid} in {box.id}; `cloche ps {args.id}` lists them")
    if args.json:
        from cloche.cli.tables import print_json

        print_json({"id": box.id, "signal": signal, "pids": args.pid})
    return 0
