"""`cloche ps`."""

from __future__ import annotations

import shlex
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from cloche.cli.find import add_id, find_sandbox
from cloche.cli.tables import age, print_json, print_table

if TYPE_CHECKING:
    import argparse

    from cloche.models import ProcessInfo

EXAMPLE: Final = "cloche ps tests --all"
LONGEST: Final = 200
STATES: Final = {"R": "runs", "S": "sleeps", "D": "waits for the disk", "T": "stopped", "Z": "zombie"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_id(parser)
    parser.add_argument("-a", "--all", action="store_true", help="executions that have ended as well")


def run(args: argparse.Namespace) -> int:
    """Lists them: first what was started from outside, then what that started."""
    found = [process for process in find_sandbox(args.id).commands.list() if args.all or process.exit_code is None]
    if args.json:
        print_json([asdict(process) for process in found])
    else:
        rows = [_row(process) for process in found]
        print_table(("PID", "UID", "STATE", "CPU", "MEMORY", "AGE", "COMMAND"), rows)
    return 0


def _row(process: ProcessInfo) -> tuple[object, ...]:
    state = STATES.get(process.state, process.state) if process.exit_code is None else f"exit {process.exit_code}"
    return (
        process.pid,
        process.uid,
        f"{state}, background" if process.background else state,
        f"{process.cpu_seconds:.2f} s",
        f"{process.memory_bytes / (1 << 20):.1f} MB",
        age(time.time() - process.started),
        _shorten(shlex.join(process.argv)),
    )


def _shorten(command: str) -> str:
    """Code can be an argument, and megabytes long; JSON has all of it."""
    return command if len(command) <= LONGEST else f"{command[:LONGEST]}… ({len(command)} characters)"
