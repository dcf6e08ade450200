"""`cloche rm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloche.cli.arguments import UsageError
from cloche.cli.find import ID_HELP, find_record
from cloche.cli.terminal import say
from cloche.errors import ClocheError

if TYPE_CHECKING:
    import argparse

EXAMPLE: Final = "cloche rm tests"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("id", metavar="ID", nargs="*", help=ID_HELP)
    parser.add_argument("-a", "--all", action="store_true", help="all sandboxes of this machine that are yours")


def run(args: argparse.Namespace) -> int:
    """Ends them, prints their ids, and tells of those that it could not end; the status is 125 where there is one."""
    from cloche.sandboxes import boxes

    if bool(args.id) == args.all:
        raise UsageError("expected the ids of sandboxes, or --all")
    words = [record.box.id for record in boxes.all_boxes()] if args.all else args.id
    removed: list[str] = []
    failed: list[ClocheError] = []
    for word in words:
        try:
            record = find_record(word)
            boxes.delete(record)
            removed.append(record.box.id)
        except ClocheError as error:
            failed.append(error)
    if args.json:
        from cloche.cli.tables import print_json

        print_json({"removed": removed, "errors": [{"code": error.code, "message": error.message} for error in failed]})
    else:
        print("".join(f"{id}\n" for id in removed), end="", flush=True)
        for error in failed:
            say(error.message)
    return 125 if failed else 0
