"""Images made from an archive of a root file system, kept by name below CLOCHE_HOME."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, cast

from cloche import settings
from cloche.errors import EngineError, ImageNotFound, InvalidRequest
from cloche.images import host
from cloche.images.base import Image
from cloche.images.environment import make_environment
from cloche.images.records import ROOTFS, load_image, save_image
from cloche.images.runtimes import FOUND

IMAGE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
SECONDS = 3600.0
PACKAGE = Path(__file__).parents[2]


def import_archive(home: Path, name: str, path: Path) -> Image:
    """The image `name`, unpacked from the tar archive at `path` (plain, or packed with gzip or xz).

    Raises: InvalidRequest (the message names the member that is refused), Unsupported, EngineError.
    """
    # Here and below: most starts of Cloche import nothing, and need not pay for this.
    import tempfile

    folder = _free_folder(home, name)
    if not path.is_file():
        raise InvalidRequest(f"there is no file {str(path)!r}; expected a tar archive of a root file system")
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.chmod(0o700)  # what is in an image may be writable for everyone, and is so in boxes only
    with tempfile.TemporaryDirectory(prefix=".importing-", dir=folder.parent) as place:
        made = Path(place)
        made.chmod(0o755)
        rootfs = made / ROOTFS
        rootfs.mkdir()
        interpreters = _unpack(name, path, rootfs)
        image = Image(name=name, rootfs=rootfs, env=make_environment(interpreters), interpreters=interpreters)
        save_image(made, image)
        _put(made, folder, name)
    return find_image(home, name)


def find_image(home: Path, name: str) -> Image:
    """The image by that name; the host image is made where it is not there.

    Raises: ImageNotFound.
    """
    if name == host.NAME:
        return host.find_host_image(home)
    image = load_image(home / "images" / name, name) if _is_name(name) else None
    if image is None:
        there = ", ".join([host.NAME, *_names(home)])
        raise ImageNotFound(
            f"there is no image {name!r}; there is {there}. Import one from a tar archive: cloche.images.import_archive"
        )
    return image


def list_images(home: Path) -> list[Image]:
    """The host image, then the imported ones by name."""
    return [find_image(home, name) for name in (host.NAME, *_names(home))]


def remove_image(home: Path, name: str) -> None:
    """Removes an imported image; the caller knows that no box stands on it.

    Raises: ImageNotFound, InvalidRequest.
    """
    import shutil
    import tempfile

    if name == host.NAME:
        raise InvalidRequest("the image 'host' is this machine itself and cannot be removed")
    find_image(home, name)
    # First out of sight, as one step: what is half removed must not be found.
    gone = tempfile.mkdtemp(prefix=".removing-", dir=home / "images")
    (home / "images" / name).rename(Path(gone, name))
    shutil.rmtree(gone)


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


def _put(made: Path, folder: Path, name: str) -> None:
    try:
        made.rename(folder)
    except OSError as error:
        raise InvalidRequest(f"image {name!r} was made by someone else meanwhile: {error}") from error


def _names(home: Path) -> list[str]:
    folder = home / "images"
    if not folder.is_dir():
        return []
    return [name for name in sorted(os.listdir(folder)) if _is_name(name) and load_image(folder / name, name)]


def _is_name(name: str) -> bool:
    is_host = name == host.NAME or name.startswith(f"{host.NAME}-")
    return IMAGE_NAME.fullmatch(name) is not None and not is_host


def _unpack(name: str, path: Path, rootfs: Path) -> dict[str, str]:
    """In a process of its own, which cannot name anything but what is below `rootfs`."""
    import subprocess

    # An ordinary user is root in a namespace of their own; the owners of the files get lost there.
    enter = [] if os.geteuid() == 0 else [str(settings.launch_path()), "--map-only", "--"]
    command = [*enter, sys.executable, "-P", "-s", "-B", "-m", "cloche.images.unpack", str(rootfs)]
    with path.open("rb") as archive:
        try:
            done = subprocess.run(
                command,
                stdin=archive,
                capture_output=True,
                timeout=SECONDS,
                check=False,
                cwd="/",
                env={"PYTHONPATH": str(PACKAGE)},
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise InvalidRequest(f"image {name!r}: unpacking took more than {SECONDS:g} s") from None
    answer = _read_answer(done.stdout)
    if answer is None:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        detail = "".join(last) or f"it ended with {done.returncode}"
        raise EngineError(f"image {name!r}: the process that unpacks it failed: {detail}")
    if "refused" in answer:
        raise InvalidRequest(f"image {name!r} is refused: {answer['refused']}")
    return _checked(answer["interpreters"])


def _read_answer(line: bytes) -> dict[str, Any] | None:
    try:
        answer: object = json.loads(line)
    except ValueError:
        return None
    if not isinstance(answer, dict) or not ("refused" in answer or "interpreters" in answer):
        return None
    return cast("dict[str, Any]", answer)


def _checked(interpreters: Any) -> dict[str, str]:
    """What the unpacking process says may be the archive's own words, should it have been taken over."""
    if not isinstance(interpreters, dict):
        raise EngineError(f"the unpacking process named interpreters {interpreters!r}; expected an object")
    for runtime, path in cast("dict[Any, Any]", interpreters).items():
        if not (FOUND.fullmatch(str(runtime)) and re.fullmatch(r"(/[\w.+-]+)+", str(path), re.ASCII)):
            raise EngineError(f"the unpacking process named an interpreter {runtime!r} at {path!r}")
    return cast("dict[str, str]", interpreters)
