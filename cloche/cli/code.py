"""`cloche code`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloche.cli.find import add_id, find_sandbox
from cloche.cli.options import add_env_option, read_env
from cloche.cli.outlet import add_output_options, refuse_too_much
from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    import argparse

    from cloche.client._sync.sandbox import Sandbox
    from cloche.displays import CodeResult

EXAMPLE: Final = "cloche code tests -c 'import math; math.pi'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_id(parser)
    parser.add_argument("file", metavar="FILE | -", nargs="?", help="a file with the code, or - for standard input")
    parser.add_argument("-c", dest="code", metavar="CODE", help="the code itself; without any a console is opened")
    parser.add_argument("--language", metavar="L", help="python, javascript, typescript or bash, also with a version")
    parser.add_argument("--context", metavar="C", help="id of a context (default: the default one of its language)")
    parser.add_argument("--contexts", action="store_true", help="list the contexts of the sandbox")
    parser.add_argument("--restart", action="store_true", help="begin anew: the context forgets what it knows")
    parser.add_argument("--cwd", metavar="DIR", help="folder to go to first")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds, 0 for no limit (default: the sandbox's)")
    parser.add_argument("--save", metavar="DIR", help="keep pictures and documents that are shown, in a folder here")
    add_env_option(parser)
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Runs a piece of code in a context, or opens a console; the status is 1 where the code raised something."""
    box = find_sandbox(args.id)
    if args.contexts:
        return _list(box, as_json=args.json)
    if args.restart:
        box.contexts.restart(args.context or _default_of(args.language, box.runtime.name))
    options: dict[str, Any] = {
        "language": args.language,
        "context": args.context,
        "env": read_env(args.env),
        "cwd": args.cwd,
        "timeout": args.timeout,
    }
    if args.json:
        refuse_too_much(box.limits.output_bytes)
    code = _read(args)
    if code is not None:
        return _status(_run(box, code, options, args))
    if args.restart:
        return 0
    if not sys.stdin.isatty() or args.json:
        raise InvalidRequest("there is no code; expected a file, - for standard input, or -c CODE")
    from cloche.cli.console import Console
    from cloche.cli.signals import repeated_interrupts
    from cloche.cli.terminal import say

    console = Console(args.language or box.runtime.name, args.context)
    with repeated_interrupts():
        for piece in console:
            try:
                console.count(_run(box, piece, options, args))
            except KeyboardInterrupt:
                # Whoever leaves in the middle interrupts what runs there.
                say("interrupted")
            options["cwd"] = None
    return 0


def _default_of(language: str | None, own: str) -> str:
    from cloche.client.languages import choose_language, default_id

    return default_id(choose_language(language, own), own)


def _read(args: argparse.Namespace) -> str | None:
    if args.code is not None and args.file is not None:
        raise InvalidRequest(f"both -c and the file {args.file!r} are given; one of them was expected")
    if args.file is None:
        return args.code
    return sys.stdin.read() if args.file == "-" else Path(args.file).read_text(encoding="utf-8")


def _run(box: Sandbox, code: str, options: dict[str, Any], args: argparse.Namespace) -> CodeResult:
    from cloche.cli.showing import Showing, to_json

    if args.json:
        from cloche.cli.tables import print_json

        result = box.run_code(code, **options)
        print_json(to_json(result))
        return result
    showing = Showing(save=args.save, raw=args.raw)
    result = box.run_code(
        code, **options, on_stdout=showing.stdout, on_stderr=showing.stderr, on_result=showing.display
    )
    showing.end(result)
    return result


def _status(result: CodeResult) -> int:
    if result.exit_code:
        return min(result.exit_code, 255)
    return int(not result.ok)


def _list(box: Sandbox, *, as_json: bool) -> int:
    from cloche.cli.tables import print_json, print_table

    found = box.contexts.list()
    if as_json:
        print_json([{"id": it.id, "language": it.language, "runtime": it.runtime, "cwd": it.cwd} for it in found])
    else:
        print_table(("ID", "LANGUAGE", "RUNTIME", "FOLDER"), [(it.id, it.language, it.runtime, it.cwd) for it in found])
    return 0
