"""The options that say what a sandbox is to be: the same for every command that makes one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable


class Option(NamedTuple):
    """An option, and the argument of `Sandbox.create` that it becomes."""

    flag: str
    argument: str
    kind: Callable[[str], Any]
    metavar: str
    help: str


BOX_OPTIONS: Final = (
    Option("--runtime", "runtime", str, "R", "language and version: python, python3.10, node22, bash"),
    Option("--image", "image", str, "I", "root file system, by name (default: host, this machine's own)"),
    Option("--engine", "engine", str, "E", "what makes it: embedded, embedded:crun, embedded:runc, host"),
    Option("--memory", "memory_mb", int, "MB", "memory (default: 512)"),
    Option("--cpus", "cpus", float, "N", "CPU cores, fractions allowed (default: 1)"),
    Option("--pids", "pids", int, "N", "processes and threads (default: 128)"),
    Option("--disk", "disk_mb", int, "MB", "all that can be written (default: 1024)"),
    Option("--inodes", "inodes", int, "N", "files and folders (default: 65536)"),
    Option("--timeout", "timeout", float, "S", "seconds for one execution, 0 for no limit (default: 30)"),
    Option("--output", "output_bytes", int, "BYTES", "output of one execution, 0 for all of it (default: 1 MiB)"),
    Option("--workspace", "workspace", str, "DIR[:ro|:rw]", "a folder of this machine, seen at /workspace"),
    Option("--user", "user", str, "U", "user or root (default: user)"),
)
FLAGS: Final = {option.argument: option.flag for option in BOX_OPTIONS}
"""What a limit is called on the command line."""


def add_box_options(parser: argparse.ArgumentParser) -> None:
    """Those of a new sandbox."""
    for option in BOX_OPTIONS:
        parser.add_argument(
            option.flag, dest=option.argument, type=option.kind, metavar=option.metavar, help=option.help
        )
    add_env_option(parser)
    parser.add_argument(
        "--without",
        metavar="LIMITS",
        help="limits that may be missing where this machine can't enforce them: cpus,pids",
    )


def add_env_option(parser: argparse.ArgumentParser) -> None:
    """Variables, as many as are wanted."""
    parser.add_argument(
        "--env", action="append", default=[], metavar="K=V", help="an environment variable; K alone takes yours"
    )


def box_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """What `Sandbox.create` is called with.

    Raises: InvalidRequest.
    """
    given = {option.argument: getattr(args, option.argument) for option in BOX_OPTIONS}
    chosen = {name: value for name, value in given.items() if value is not None}
    if "workspace" in chosen:
        chosen["workspace"] = _absolute(chosen["workspace"])
    without = [name.strip() for name in (args.without or "").split(",") if name.strip()]
    return {**chosen, "env": read_env(args.env), "without": without}


def _absolute(workspace: str) -> str:
    """It is absolute to the library, and to people relative to where they are."""
    if workspace in ("", ":ro", ":rw"):
        raise InvalidRequest(f"--workspace is {workspace!r}, which names no folder; . is the one that you are in")
    try:
        return os.path.abspath(workspace)
    except FileNotFoundError:
        raise InvalidRequest(
            f"--workspace is {workspace!r}, and the folder that this was called in is gone; name a whole path"
        ) from None


def read_env(pairs: Iterable[str]) -> dict[str, str]:
    """`K=V` as it is, `K` as it is in our own environment.

    Raises: InvalidRequest.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, is_given, value = pair.partition("=")
        if not is_given and name not in os.environ:
            raise InvalidRequest(f"--env {pair!r}: K=V was expected, or the name of a variable that is set here")
        found[name] = value if is_given else os.environ[name]
    return found
