"""Removes images and runtimes, which no sandbox may stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche import settings
from cloche.errors import InvalidRequest
from cloche.images import additions, archives, host
from cloche.images.holds import take
from cloche.sandboxes import boxes
from cloche.sandboxes.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Sequence


def remove_image(name: str) -> None:
    """Raises: ImageNotFound, InvalidRequest (the message names the sandboxes that stand on it), EngineError."""
    home = settings.home()
    # Those that have ended stand on nothing.
    sweep()
    with take(home, name):
        _refuse_use(f"the image {name!r}", [box.box.id for box in boxes.all_boxes() if box.spec.image == name])
        archives.remove_image(home, name)


def remove_runtime(name: str) -> str:
    """Removes one that was added to Cloche; gives its language with the full version.

    One that a sandbox was made for is kept. All others see it as well, and lose it.

    Raises: RuntimeNotFound, InvalidRequest (the message names the sandboxes), EngineError.
    """
    home = settings.home()
    sweep()
    with take(home, host.NAME):
        found = additions.find_added(home, name)
        places = (f"{additions.inside(found)}/", f"{home / additions.ADDED / found}/")
        _refuse_use(found, [box.box.id for box in boxes.all_boxes() if box.runtime.path.startswith(places)])
        additions.remove_added(home, found)
    return found


def _refuse_use(what: str, ids: Sequence[str]) -> None:
    if ids:
        raise InvalidRequest(f"{what} is in use by {', '.join(ids)}; end them first: cloche rm {' '.join(ids)}")
