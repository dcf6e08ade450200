"""`cloche ls`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cloche.cli.tables import age, print_json, print_table

if TYPE_CHECKING:
    import argparse

    from cloche.sandboxes.records import Record

EXAMPLE = "cloche ls --quiet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print ids only, one a line")


def run(args: argparse.Namespace) -> int:
    """Lists them, the oldest first."""
    from cloche.sandboxes import finding

    found = finding.all_boxes()
    if args.quiet:
        print("".join(f"{record.box.id}\n" for record in found), end="")
    elif args.json:
        print_json([_describe(record) for record in found])
    else:
        rows = [
            (
                record.box.id,
                record.spec.name or "",
                record.runtime.name,
                record.box.engine,
                age(time.time() - record.created),
            )
            for record in found
        ]
        print_table(("ID", "NAME", "RUNTIME", "ENGINE", "AGE"), rows)
    return 0


def _describe(record: Record) -> dict[str, object]:
    return {
        "id": record.box.id,
        "name": record.spec.name,
        "runtime": record.runtime.name,
        "engine": record.box.engine,
        "image": record.spec.image,
        "created": record.created,
    }
