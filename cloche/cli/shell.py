"""`cloche shell`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloche.cli.find import add_id, find_sandbox
from cloche.cli.options import add_env_option, read_env
from cloche.cli.outlet import add_output_options

if TYPE_CHECKING:
    import argparse

EXAMPLE: Final = "cloche shell tests --user root"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_id(parser)
    parser.add_argument("--user", metavar="U", help="user or root (default: the sandbox's)")
    parser.add_argument("--cwd", metavar="DIR", help="folder to start in (default: /workspace, else the home)")
    add_env_option(parser)
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Lends our terminal to a shell in the sandbox, and ends with its exit code."""
    from cloche.cli.attach import attach

    env = read_env(args.env)
    return attach(find_sandbox(args.id), None, raw=args.raw, user=args.user, cwd=args.cwd, env=env)
