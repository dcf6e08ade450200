"""The file systems of boxes: formatted once for each size, and copied a few ahead of need.

Putting a file on a loop device makes the kernel write it out first; a copy that has been
written out before costs nothing there.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

from cloche.engines.machine import SYSTEM_PATH, find_program
from cloche.errors import EngineError

# Folder in the box's layer, owner, mode.
FOLDERS = (
    ("", 0, 0o755),
    (".cloche", 0, 0o755),
    ("dev", 0, 0o755),
    ("home", 0, 0o755),
    ("home/user", 1000, 0o755),
    ("proc", 0, 0o755),
    ("tmp", 0, 0o1777),
)


# Copies kept ready of each size; one takes 200 KB until a box writes to it.
STOCK = 8


class Disks:
    """The templates and the stock of one data folder; several processes may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._refilling: dict[str, threading.Thread] = {}

    def take(self, target: Path, *, disk_mb: int, inodes: int) -> None:
        """Put an empty disk of that size at `target`."""
        name = f"{disk_mb}-{inodes}"
        stock = self._folder / name
        if any(_claim(stock / ready, target) for ready in _list(stock)):
            return
        template = self._find_template(name, disk_mb, inodes)
        descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _copy(template, descriptor)
        finally:
            os.close(descriptor)

    def _find_template(self, name: str, disk_mb: int, inodes: int) -> Path:
        template = self._folder / f"{name}.ext4"
        if not template.exists():
            _make_template(template, disk_mb=disk_mb, inodes=inodes)
        return template

    def refill(self, *, disk_mb: int, inodes: int) -> None:
        """Have copies made in the background, where fewer than half are left."""
        name = f"{disk_mb}-{inodes}"
        with self._lock:
            if name in self._refilling or len(_list(self._folder / name)) > STOCK // 2:
                return
            thread = threading.Thread(target=self._refill, args=(name, disk_mb, inodes), daemon=True)
            self._refilling[name] = thread
            thread.start()

    def drop(self, *, disk_mb: int, inodes: int) -> None:
        """Remove what is kept of a size that nobody asks for again."""
        name = f"{disk_mb}-{inodes}"
        with self._lock:
            thread = self._refilling.get(name)
        if thread:
            thread.join()
        (self._folder / f"{name}.ext4").unlink(missing_ok=True)
        for ready in _list(self._folder / name):
            (self._folder / name / ready).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            (self._folder / name).rmdir()

    def _refill(self, name: str, disk_mb: int, inodes: int) -> None:
        stock = self._folder / name
        try:
            # A full disk is told to whoever takes one, not here.
            with suppress(OSError, EngineError):
                template = self._find_template(name, disk_mb, inodes)
                stock.mkdir(mode=0o700, exist_ok=True)
                while len(_list(stock)) < STOCK:
                    _add_copy(template, stock)
        finally:
            with self._lock:
                self._refilling.pop(name, None)


def _list(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _claim(ready: Path, target: Path) -> bool:
    """True for the one that was first: a rename moves a file once."""
    try:
        os.rename(ready, target)
    except FileNotFoundError:
        return False
    return True


def _add_copy(template: Path, stock: Path) -> None:
    """It has no name before it is whole, so that nothing is left of one that was cut short."""
    folder = os.open(stock, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    descriptor = os.open(stock, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    try:
        _copy(template, descriptor)
        os.fsync(descriptor)
        # Only with a folder's descriptor does Python follow the link to the nameless file.
        os.link(f"/proc/self/fd/{descriptor}", os.urandom(8).hex(), dst_dir_fd=folder)
    finally:
        os.close(descriptor)
        os.close(folder)


def _copy(template: Path, target: int) -> None:
    """Copy what is data, leave holes as holes."""
    source = os.open(template, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(source).st_size
        os.ftruncate(target, size)
        end = 0
        while end < size:
            try:
                start = os.lseek(source, end, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:  # nothing but a hole up to the end
                    raise
                return
            end = os.lseek(source, start, os.SEEK_HOLE)
            while start < end:
                start += os.copy_file_range(source, target, end - start, start, start)
    finally:
        os.close(source)


def _make_template(template: Path, *, disk_mb: int, inodes: int) -> None:
    import tempfile

    template.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=template.parent) as scratch:
        tree = Path(scratch, "tree")
        _make_tree(tree)
        image = Path(scratch, "image")
        with image.open("wb") as file:
            file.truncate(disk_mb << 20)
        _format(image, tree, inodes=inodes)
        os.replace(image, template)


def _make_tree(tree: Path) -> None:
    """`upper` and `work` of an overlay, the first with what every box has."""
    (tree / "work").mkdir(parents=True)
    (tree / "work").chmod(0o755)
    for name, owner, mode in FOLDERS:
        folder = tree / "upper" / name
        folder.mkdir()
        folder.chmod(mode)
        os.chown(folder, owner, owner)
    (tree / "upper" / ".cloche" / "keeper").touch()


def _format(image: Path, tree: Path, *, inodes: int) -> None:
    program = find_program("mkfs.ext4")
    if program is None:
        raise EngineError("mkfs.ext4 is not installed; install it: apt-get install e2fsprogs")
    # No journal and no reserved blocks: a box's disk does not outlive a crash of the machine.
    command = [program, "-q", "-F", "-b", "4096", "-I", "256", "-m", "0", "-N", str(inodes)]
    command += [
        "-O",
        "^has_journal,^resize_inode",
        "-E",
        "lazy_itable_init=1,nodiscard,root_owner=0:0",
        "-d",
        str(tree),
        str(image),
    ]
    import subprocess

    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": SYSTEM_PATH})
    if done.returncode:
        raise EngineError(f"cannot format a disk of {image.stat().st_size >> 20} MB: {done.stderr.strip()}")
