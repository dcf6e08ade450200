"""Finding sandboxes for people and programs: also those of which nothing but their folder is known any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche.errors import SandboxNotFound
from cloche.sandboxes import boxes
from cloche.sandboxes.sweep import sweep_now_and_then

if TYPE_CHECKING:
    from cloche.sandboxes.records import Record


def find(word: str) -> Record:
    """The sandbox with that id, or else with that name.

    Raises: SandboxNotFound.
    """
    try:
        return boxes.find(word)
    except SandboxNotFound:
        if not sweep_now_and_then():
            raise
        return boxes.find(word)


def all_boxes() -> list[Record]:
    """Every sandbox of this machine that can be used, the oldest first."""
    sweep_now_and_then()
    return boxes.all_boxes()
