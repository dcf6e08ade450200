"""`cloche images`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloche.cli.arguments import add_action
from cloche.cli.tables import age, print_json, print_table
from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    import argparse

    from cloche.images.base import Image

EXAMPLE: Final = "cloche images add alpine alpine-rootfs.tar.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    add = add_action(actions, "add", "make an image from a tar archive of a root file system")
    add.add_argument("name", metavar="NAME", help="what it is to be called")
    add.add_argument("file", metavar="ARCHIVE", help="plain, or packed with gzip or xz; - for standard input")
    remove = add_action(actions, "remove", "remove images that no sandbox stands on")
    remove.add_argument("names", metavar="IMAGE", nargs="+", help="name of an image that was added")


def run(args: argparse.Namespace) -> int:
    """Lists, adds or removes."""
    if args.action == "add":
        return _add(args.name, args.file, as_json=args.json)
    if args.action == "remove":
        return _remove(args.names, as_json=args.json)
    return _list(as_json=args.json)


def _list(*, as_json: bool) -> int:
    from cloche import settings
    from cloche.images.archives import list_images

    there = list_images(settings.home())
    if as_json:
        print_json([_describe(image) for image in there])
        return 0
    print_table(
        ("NAME", "RUNTIMES", "SIZE", "WHEN"),
        [
            (image.name, ", ".join(image.interpreters) or "none", _in_words(_size(image)), f"{age(_age(image))} ago")
            for image in there
        ],
    )
    return 0


def _add(name: str, file: str, *, as_json: bool) -> int:
    from cloche import settings
    from cloche.images.archives import import_archive

    if file == "-" and sys.stdin.isatty():
        raise InvalidRequest("standard input is a terminal; expected a tar archive: docker export … | cloche images …")
    image = import_archive(settings.home(), name, sys.stdin.buffer if file == "-" else Path(file))
    if as_json:
        print_json(_describe(image))
    else:
        print(f"added {name} with {', '.join(image.interpreters) or 'no runtime'}: cloche run --image {name} …")
    return 0


def _remove(names: list[str], *, as_json: bool) -> int:
    from cloche.sandboxes.removals import remove_image

    for name in names:
        remove_image(name)
        if not as_json:
            print(f"removed {name}", flush=True)
    if as_json:
        print_json({"removed": names})
    return 0


def _describe(image: Image) -> dict[str, object]:
    return {
        "name": image.name,
        "runtimes": list(image.interpreters),
        "size_bytes": _size(image),
        "created": _folder(image).stat().st_mtime,
    }


def _folder(image: Image) -> Path:
    return image.rootfs.parent


def _age(image: Image) -> float:
    return time.time() - _folder(image).stat().st_mtime


def _size(image: Image) -> int:
    """On the disk; of the host image that is what was made for it, and not this machine's own files."""
    seen: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(_folder(image)):
        for path in (folder, *(f"{folder}/{name}" for name in names)):
            found = os.lstat(path)
            seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


def _in_words(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size // 1000} kB"
