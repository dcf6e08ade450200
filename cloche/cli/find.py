"""Which sandbox is meant: by its id, its name, or the beginning of its id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloche.cli.arguments import number_from
from cloche.errors import InvalidRequest, SandboxNotFound

if TYPE_CHECKING:
    import argparse

    from cloche.client._sync.sandbox import Sandbox
    from cloche.sandboxes.records import Record

PID: Final = number_from(1, 1 << 22)
"""The type of a process's number: as many as any Linux has."""
ID_HELP: Final = "id of the sandbox, its name, or the beginning of its id"


def add_id(parser: argparse.ArgumentParser) -> None:
    """The sandbox that a command is about."""
    parser.add_argument("id", metavar="ID", help=ID_HELP)


def find_sandbox(word: str) -> Sandbox:
    """The one that is meant.

    Raises: SandboxNotFound, InvalidRequest.
    """
    from cloche.client._sync.sandbox import Sandbox

    return Sandbox(find_record(word))


def find_record(word: str) -> Record:
    """All that is kept of it.

    Raises: SandboxNotFound, InvalidRequest.
    """
    from cloche.sandboxes import boxes, finding

    try:
        return finding.find(word)
    except SandboxNotFound as error:
        like = [row.id for row in boxes.rows().present() if word and row.id.startswith(word)]
        if not like:
            raise SandboxNotFound(f"{error.message}. `cloche ls` lists those that are there") from None
    if len(like) > 1:
        raise InvalidRequest(f"{word!r} is the beginning of {len(like)} ids: {', '.join(like)}; give more of it")
    return boxes.find(like[0])
