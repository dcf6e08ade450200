"""`cloche create`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloche.cli.options import add_box_options, box_arguments
from cloche.cli.terminal import say
from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    import argparse

    from cloche.client._sync.sandbox import Sandbox

EXAMPLE: Final = "cloche create --name tests --workspace .:rw --lifetime 3600"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_box_options(parser)
    parser.add_argument("--name", help="a name for people, which no other sandbox has at the same time")
    parser.add_argument(
        "--idle-timeout", type=float, metavar="S", help="seconds without use until it ends, 0 for never (default: 600)"
    )
    parser.add_argument(
        "--lifetime", type=float, metavar="S", help="seconds until it ends in any case, 0 for never (default: 30 days)"
    )
    parser.add_argument("--init-script", metavar="FILE", help="a script that runs in it first; it must succeed")


def run(args: argparse.Namespace) -> int:
    """Makes it, and prints its id."""
    from cloche.client._sync.sandbox import Sandbox

    box = Sandbox.create(
        **box_arguments(args),
        name=args.name,
        idle_timeout=args.idle_timeout,
        lifetime=args.lifetime,
        init_script=_read_script(args.init_script),
    )
    try:
        _tell(box, as_json=args.json)
    except BaseException:
        # Nobody would know that it is there.
        box.kill()
        raise
    return 0


def _tell(box: Sandbox, *, as_json: bool) -> None:
    if as_json:
        from cloche.cli.tables import print_json

        print_json({"id": box.id, "name": box.name, "runtime": box.runtime.name, "engine": box.engine})
    else:
        if box.runtime.note:
            say(box.runtime.note)
        print(box.id)
    sys.stdout.flush()


def _read_script(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the init script {path!r} can't be read: {error}") from error
