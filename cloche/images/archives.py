"""Images made from an archive of a root file system, kept by name below CLOCHE_HOME."""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from cloche.errors import EngineError, ImageNotFound, InvalidRequest
from cloche.images import host
from cloche.images.base import Image
from cloche.images.environment import make_environment
from cloche.images.records import ROOTFS, load_image, save_image
from cloche.images.runtimes import FOUND

if TYPE_CHECKING:
    from collections.abc import Generator

IMAGE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def import_archive(home: Path, name: str, archive: Path | IO[bytes]) -> Image:
    """The image `name`, unpacked from a tar archive (plain, or packed with gzip or xz): a file, or what a stream gives.

    Raises: InvalidRequest (the message names the member that is refused), Unsupported, EngineError.
    """
    # Here and below: most starts of Cloche import nothing, and need not pay for this.
    from cloche.images.scratch import make_scratch
    from cloche.images.unpacking import unpack_archive

    folder = _free_folder(home, name)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.parent.chmod(0o700)  # what is in an image may be writable for everyone, and is so in boxes only
        with make_scratch(home) as scratch, _opened(archive, scratch.folder) as file:
            made = scratch.folder / "image"
            rootfs = made / ROOTFS
            for new in (made, rootfs):
                new.mkdir()
                new.chmod(0o755)
            interpreters = _checked(unpack_archive(f"image {name!r}", file, rootfs))
            image = Image(name=name, rootfs=rootfs, env=make_environment(interpreters), interpreters=interpreters)
            save_image(made, image)
            _put(made, folder, name)
    except OSError as error:
        raise EngineError(f"image {name!r} could not be made: {error}") from error
    return find_image(home, name)


def find_image(home: Path, name: str) -> Image:
    """The image by that name; the host image is made where it is not there.

    Raises: ImageNotFound.
    """
    if name == host.NAME:
        return host.find_host_image(home)
    image = load_image(home / "images" / name, name) if _is_name(name) else None
    if image is None:
        there = ", ".join([host.NAME, *image_names(home)])
        wanted = name if _is_name(name) else "NAME"
        raise ImageNotFound(
            f"there is no image {name!r}; there is {there}. "
            f"Add one from a tar archive of a root file system: cloche images add {wanted} ARCHIVE"
        )
    return image


def list_images(home: Path) -> list[Image]:
    """The host image, then the imported ones by name."""
    return [find_image(home, name) for name in (host.NAME, *image_names(home))]


def image_names(home: Path) -> list[str]:
    """Those of the imported ones."""
    folder = home / "images"
    if not folder.is_dir():
        return []
    return [name for name in sorted(os.listdir(folder)) if _is_name(name) and load_image(folder / name, name)]


def remove_image(home: Path, name: str) -> None:
    """Removes an imported image; the caller knows that no box stands on it.

    Raises: ImageNotFound, InvalidRequest, EngineError.
    """
    from cloche.images.scratch import make_scratch

    if name == host.NAME:
        raise InvalidRequest("the image 'host' is this machine itself and cannot be removed")
    folder = home / "images" / name
    # One that this version of Cloche can't read may be removed as well.
    if not (_is_name(name) and folder.is_dir()):
        find_image(home, name)
    try:
        with make_scratch(home) as scratch:
            # Out of sight as one step: what is half removed must not be found.
            folder.rename(scratch.folder / name)
    except OSError as error:
        raise EngineError(f"image {name!r} could not be removed: {error}") from error


def _free_folder(home: Path, name: str) -> Path:
    if not _is_name(name):
        raise InvalidRequest(
            f"an image cannot be called {name!r}; expected 1 to 63 of a-z, 0-9, '.', '_' and '-', "
            f"beginning with a letter or digit, and not {host.NAME!r} or {host.NAME}-…"
        )
    folder = home / "images" / name
    if folder.exists():
        raise InvalidRequest(f"there is an image {name!r} already; remove it first, or take another name")
    return folder


@contextmanager
def _opened(archive: Path | IO[bytes], folder: Path) -> Generator[IO[bytes]]:
    """As a file: how far it may grow is told by its size."""
    if not isinstance(archive, Path):
        import shutil
        import tempfile

        with tempfile.TemporaryFile(dir=folder) as file:
            shutil.copyfileobj(archive, file, 1 << 20)
            file.seek(0)
            yield file
        return
    if not archive.is_file():
        raise InvalidRequest(f"there is no file {str(archive)!r}; expected a tar archive of a root file system")
    with archive.open("rb") as file:
        yield file


def _put(made: Path, folder: Path, name: str) -> None:
    try:
        made.rename(folder)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        raise InvalidRequest(f"image {name!r} was made by someone else meanwhile") from error


def _is_name(name: str) -> bool:
    is_host = name == host.NAME or name.startswith(f"{host.NAME}-")
    return IMAGE_NAME.fullmatch(name) is not None and not is_host


def _checked(interpreters: Any) -> dict[str, str]:
    """What the unpacking process says may be the archive's own words, should it have been taken over."""
    if not isinstance(interpreters, dict):
        raise EngineError(f"the unpacking process named interpreters {interpreters!r}; expected an object")
    for runtime, path in cast("dict[Any, Any]", interpreters).items():
        if not (FOUND.fullmatch(str(runtime)) and re.fullmatch(r"(/[\w.+-]+)+", str(path), re.ASCII)):
            raise EngineError(f"the unpacking process named an interpreter {runtime!r} at {path!r}")
    return cast("dict[str, str]", interpreters)
