"""What becomes of a sandbox that is found: pure, by what its row says and what is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cloche.store.boxes import State

REASONS: Final = {
    "deleted": "it was deleted",
    "idle": "nobody used it for as long as its idle limit says",
    "end_of_life": "it reached the end of its life",
    "out_of_memory": "it was out of memory",
    "killed": "it was killed from outside",
    "maker_died": "the process that made it, or that it belonged to, died",
    "host_restarted": "the machine was restarted",
    "failed": "it could not be made",
    "broken": "its keeper broke the protocol",
}
"""Why a sandbox ended: what programs read, and what people do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is the case with one sandbox."""

    state: State
    is_bound: bool
    same_boot: bool
    maker_is_alive: bool
    keeper_is_alive: bool
    mark: str
    """How the engine says that it ended: a reason, where the keeper is gone."""
    reason: str | None = None
    """What the row says already."""


def judge(found: Found) -> str | None:
    """The reason to end it and remove what is left; None: it stays as it is."""
    if found.state == "ended":
        return None
    if not found.same_boot:
        return found.reason or "host_restarted"
    if found.state in ("creating", "deleting"):
        return None if found.maker_is_alive else found.reason or "maker_died"
    if found.is_bound and not found.maker_is_alive:
        return "maker_died"
    return None if found.keeper_is_alive else found.mark
