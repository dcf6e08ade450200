"""`cloche exec`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cloche.cli.arguments import Rest, UsageError
from cloche.cli.find import add_id, find_sandbox
from cloche.cli.options import add_env_option, read_env
from cloche.cli.outlet import add_output_options, collect, follow, limits_of, refuse_too_much
from cloche.cli.tables import print_json

if TYPE_CHECKING:
    import argparse

    from cloche.client._sync.sandbox import Sandbox

EXAMPLE: Final = "cloche exec tests --cwd /tmp -- python -c 'print(6 * 7)'"
REST: Final = Rest(
    "[--] CMD …",
    "the command, and all that follows is its own; a single word goes to the shell where it is more than a "
    "program's name",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_id(parser)
    parser.add_argument("-i", "--interactive", action="store_true", help="give it our standard input")
    parser.add_argument("-t", "--tty", action="store_true", help="give it a terminal, and our keyboard")
    parser.add_argument("-b", "--background", action="store_true", help="let it run, and print its number")
    parser.add_argument("--user", metavar="U", help="user or root (default: the sandbox's)")
    parser.add_argument("--cwd", metavar="DIR", help="folder to start in (default: /workspace, else the home)")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds, 0 for no limit (default: the sandbox's)")
    parser.add_argument(
        "--output", dest="output_bytes", type=int, metavar="BYTES", help="output, 0 for all (default: the sandbox's)"
    )
    add_env_option(parser)
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it, and ends with its exit code."""
    words: list[str] = args.rest
    if not words:
        raise UsageError("there is no command; expected: cloche exec ID [options] -- CMD…")
    command = words[0] if len(words) == 1 else words
    box = find_sandbox(args.id)
    options: dict[str, Any] = {
        "user": args.user,
        "cwd": args.cwd,
        "env": read_env(args.env),
        "timeout": args.timeout,
    }
    if args.tty:
        from cloche.cli.attach import attach

        return attach(box, command, raw=args.raw, **options)
    options["output_bytes"] = args.output_bytes
    if args.background:
        return _start(box, command, options, as_json=args.json)
    limits = limits_of(box.limits, args)
    if args.json:
        refuse_too_much(limits.output_bytes)
    with box.commands.start(command, stdin=args.interactive, **options) as execution:
        if not args.json:
            return follow(execution, limits, raw=args.raw, stdin=args.interactive)
        answer = collect(execution, limits, stdin=args.interactive)
    print_json(answer)
    return answer["exit_code"]


def _start(box: Sandbox, command: str | list[str], options: dict[str, Any], *, as_json: bool) -> int:
    started = box.commands.run(command, background=True, **options)
    if as_json:
        print_json({"id": box.id, "pid": started.pid})
    else:
        print(started.pid)
    return 0
