"""Root file systems with names: this machine itself, and imported archives."""

from __future__ import annotations

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
