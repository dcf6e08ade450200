"""The host image: this machine's own /usr and language runtimes, read-only, and nothing else of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from cloche.errors import EngineError
from cloche.images.base import Bind, Image
from cloche.images.environment import HOME, make_environment
from cloche.images.etc import WATCHED, fill_etc
from cloche.images.interpreters import SHARED_FOLDERS, SHIMS, add_shims
from cloche.images.records import ROOTFS, load_image, save_image
from cloche.images.toolchains import find_host_interpreters, find_toolchains, places_looked_at
from cloche.version import __version__

NAME = "host"
MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libo32")
"""Links into /usr where it is merged; folders of their own, and then bound, where it is not."""
FOLDERS = ("etc", "proc", "sys", "dev", "run", "root", "home", "home/user", "usr", "opt", "var", "mnt")
OPEN_FOLDERS = ("tmp", "var/tmp")
USER_ID = 1000
SOURCES = ("host", "etc", "environment", "interpreters", "runtimes", "toolchains")
LOOKED_AT = (
    *SHARED_FOLDERS,
    *WATCHED,
    *(f"{os.path.dirname(__file__)}/{name}.py" for name in SOURCES),
)


def find_host_image(home: Path) -> Image:
    """The host image below CLOCHE_HOME, made where there is none that fits this machine as it is.

    Raises: EngineError.
    """
    folder = home / "images" / f"{NAME}-{_fingerprint(home)}"
    return load_image(folder, NAME) or _make(home, folder)


def find_outside(image: Image, path: str) -> str:
    """Where this machine has what a box of that image sees at `path`."""
    for bind in image.binds:
        if path.startswith(f"{bind.target}/"):
            return f"{bind.source}{path.removeprefix(bind.target)}"
    return f"{image.rootfs}{path}" if path.startswith(f"{SHIMS}/") else path


def _fingerprint(home: Path) -> str:
    """Changes with what was looked at, with Cloche's version and with the code that makes the image."""
    digest = hashlib.blake2b(f"{__version__} {os.geteuid()}".encode(), digest_size=10)
    for path in (*LOOKED_AT, *places_looked_at(home)):
        try:
            found = os.lstat(path)
        except OSError:
            continue
        digest.update(b"%b\0%d %d\0" % (os.fsencode(path), found.st_mtime_ns, found.st_ino))
    return digest.hexdigest()


def _make(home: Path, folder: Path) -> Image:
    # Most starts of Cloche find the image made, and need not pay for this.
    import tempfile

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.parent.chmod(0o700)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=folder.parent) as place:
            made = Path(place)
            made.chmod(0o755)
            save_image(made, _build(home, made / ROOTFS))
            _put(made, folder)
    except OSError as error:
        raise EngineError(f"the host image could not be made in {folder}: {error}") from error
    image = load_image(folder, NAME)
    if image is None:
        raise EngineError(f"{folder} holds no image; delete that folder and try again")
    return image


def _put(made: Path, folder: Path) -> None:
    """Whoever comes second keeps what is there: it is the same."""
    if folder.exists() and load_image(folder, NAME) is None:
        # Cut short by a loss of power.
        import shutil

        shutil.rmtree(folder)
    try:
        made.rename(folder)
    except OSError:
        if load_image(folder, NAME) is None:
            raise


def _build(home: Path, rootfs: Path) -> Image:
    for name in (*FOLDERS, *OPEN_FOLDERS):
        (rootfs / name).mkdir(parents=True, exist_ok=True)
    fill_etc(rootfs / "etc")
    toolchains = find_toolchains(home)
    binds = [Bind(source=Path("/usr"), target="/usr"), *_link_or_bind(rootfs)]
    binds += [Bind(source=Path(toolchain.folder), target=toolchain.inside) for toolchain in toolchains]
    for bind in binds:
        (rootfs / bind.target.lstrip("/")).mkdir(parents=True, exist_ok=True)
    interpreters = add_shims(find_host_interpreters(toolchains), seen_from="", root=str(rootfs))
    _set_modes(rootfs)
    return Image(
        name=NAME,
        rootfs=rootfs,
        binds=tuple(binds),
        env=make_environment(interpreters),
        interpreters=interpreters,
    )


def _link_or_bind(rootfs: Path) -> list[Bind]:
    binds: list[Bind] = []
    for name in MERGED:
        path = Path("/", name)
        if path.is_symlink():
            (rootfs / name).symlink_to(path.readlink())
        elif path.is_dir():
            binds.append(Bind(source=path, target=f"/{name}"))
    return binds


def _set_modes(rootfs: Path) -> None:
    """The same modes whatever the umask; everything in it is for everyone to read."""
    for folder, _, files in os.walk(rootfs):
        os.chmod(folder, 0o755)
        for name in files:
            path = f"{folder}/{name}"
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.stat(path).st_mode & 0o100 else 0o644)
    for name in OPEN_FOLDERS:
        (rootfs / name).chmod(0o1777)
    if os.geteuid() == 0:
        os.chown(rootfs / HOME.lstrip("/"), USER_ID, USER_ID)
