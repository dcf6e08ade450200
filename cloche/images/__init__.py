"""Root file systems with names: this machine itself, and imported archives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cloche.images.archives import find_image, import_archive, list_images, remove_image
    from cloche.images.base import Bind, Image
    from cloche.images.host import find_host_image
    from cloche.images.runtimes import Runtime, resolve

__all__ = [
    "Bind",
    "Image",
    "Runtime",
    "find_host_image",
    "find_image",
    "import_archive",
    "list_images",
    "remove_image",
    "resolve",
]

_PLACES: Final = {
    "Bind": "base",
    "Image": "base",
    "Runtime": "runtimes",
    "find_host_image": "host",
    "find_image": "archives",
    "import_archive": "archives",
    "list_images": "archives",
    "remove_image": "archives",
    "resolve": "runtimes",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, and no more: most boxes stand on the host image."""
    if name not in _PLACES:
        raise AttributeError(f"module 'cloche.images' has no attribute {name!r}")
    return getattr(import_module(f"cloche.images.{_PLACES[name]}"), name)
