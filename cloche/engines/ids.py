"""Ranges of user ids on this machine: each box has one of its own for as long as it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

# Above what systemd gives to its containers (524288 to 1879048191), below 2^31.
FIRST = 1_879_048_192
SIZE = 65_536
COUNT = 4_000


def lease(folder: Path, id: str) -> int:
    """The first id of a range that no other box on this machine has."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    start = int(id, 36) % COUNT
    for step in range(COUNT):
        number = (start + step) % COUNT
        try:
            with (folder / str(number)).open("x") as file:
                file.write(id)
        except FileExistsError:
            continue
        return FIRST + number * SIZE
    raise EngineError(f"all {COUNT} ranges of user ids are in use; delete sandboxes that are not needed")


def release(folder: Path, id: str, first_id: int) -> None:
    """Give a range back, if it is that box's."""
    path = folder / str((first_id - FIRST) // SIZE)
    try:
        owner = path.read_text()
    except FileNotFoundError:
        return
    if owner == id:
        path.unlink(missing_ok=True)
