"""The process that unpacks an archive: `python -m cloche.images.unpack FOLDER [--package] < ARCHIVE`.

The archive is one of a root file system, which is completed, or a package. It roots itself in the folder and gives up its privileges before it reads the first octet of the archive.
Prints one line of JSON: {"interpreters": …} (none of a package's) or {"refused": …}.
"""

from __future__ import annotations

import codecs
import ctypes
import gzip
import io
import json
import lzma
import mmap
import os
import re
import resource
import struct
import sys
import tarfile
import zlib
from functools import cache
from typing import TYPE_CHECKING

from cloche.images.interpreters import SHARED_FOLDERS, SHIMS, Interpreter, add_shims, choose, find_interpreters
from cloche.images.members import PACKAGE, Caps, Members, Refused, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOUNT_POINTS = ("proc", "sys", "dev", "run", "etc", "root", "home", "opt", "var")
OPEN_FOLDERS = ("tmp", "var/tmp")
HOME = "home/user"
USER_ID = 1000
ETC = {"hostname": "", "hosts": "", "resolv.conf": ""}
"""Made where the archive has a link or nothing: the engine puts its own over them."""
MEMORY_BYTES = 512 << 20
CPU_SECONDS = 1800
LARGEST_RATIO = 200
FREE_OF_RATIO_BYTES = 64 << 20
CHUNK = 1 << 20
_END_MARK: type[tarfile.HeaderError] = tarfile.EOFHeaderError  # pyright: ignore - the type stubs leave it out

# linux/capability.h, linux/prctl.h, linux/sched.h
CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID = 0, 1, 3, 6, 7
KEPT = (CHOWN, DAC_OVERRIDE, FOWNER)
CAPABILITIES_VERSION = 0x20080522
KEEP_CAPABILITIES = 8
NO_NEW_PRIVILEGES = 38
NEW_IPC = 0x08000000
NEW_NETWORK = 0x40000000
NOBODY = 65_534
NODE_URL = re.compile(rb"nodejs\.org/download/release/v(\d{1,3}\.\d{1,3}\.\d{1,3})/")
NODE_HEADER = re.compile(r"#define NODE_MAJOR_VERSION (\d{1,3})\b")


def main() -> int:
    for name in ("ascii", "latin-1", "utf-8"):
        # Python looks them up on first use, on paths that are about to vanish.
        codecs.lookup(name)
    os.umask(0o022)
    is_package = sys.argv[2:] == ["--package"]
    caps = PACKAGE if is_package else Caps()
    archive = open(0, "rb")  # noqa: SIM115 - it lives as long as the process
    confine(sys.argv[1], caps)
    try:
        unpack(archive, caps)
        answer = {"interpreters": {} if is_package else complete()}
    except Refused as refusal:
        answer = {"refused": str(refusal)}
    except (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        answer = {"refused": f"it is no whole tar archive: {error}"}
    except MemoryError:
        answer = {"refused": f"reading it takes more than {MEMORY_BYTES >> 20} MiB of memory"}
    except RecursionError:
        answer = {"refused": "it has headers upon headers"}
    except (OSError, ValueError) as error:
        answer = {"refused": f"it cannot be unpacked: {error}"}
    print(json.dumps(answer))
    return 0


def confine(folder: str, caps: Caps) -> None:
    """From here on only what is below `folder` can be named, and only its owners and modes changed."""
    _has_one_owner()  # while there is a /proc to ask
    for name, limit in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, caps.total_bytes),
    ):
        resource.setrlimit(name, (limit, limit))
    libc = ctypes.CDLL(None, use_errno=True)
    _call(libc.unshare, NEW_NETWORK | NEW_IPC)
    os.chroot(folder)
    os.chdir("/")
    if _has_one_owner():
        _set_capabilities(libc, *KEPT)
        _call(libc.prctl, NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    else:
        _become_nobody(libc)


@cache
def _has_one_owner() -> bool:
    """True in the user namespace of an ordinary user, who is root there and alone: all files are that user's."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return file.read().split()[2] == "1"


def _own(path: str, uid: int, gid: int) -> None:
    if not _has_one_owner():
        os.chown(path, uid, gid, follow_symlinks=False)


def _become_nobody(libc: ctypes.CDLL) -> None:
    """Whose signals reach nobody; what it makes belongs to root all the same, by the ids for file systems."""
    os.setgroups([])
    _call(libc.prctl, KEEP_CAPABILITIES, 1, 0, 0, 0)
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    _set_capabilities(libc, *KEPT, SETUID, SETGID)
    libc.setfsgid(0)
    libc.setfsuid(0)
    _set_capabilities(libc, *KEPT)
    _call(libc.prctl, NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def _set_capabilities(libc: ctypes.CDLL, *bits: int) -> None:
    kept = sum(1 << bit for bit in bits)
    header = struct.pack("=Ii", CAPABILITIES_VERSION, 0)
    _call(libc.capset, header, struct.pack("=6I", kept, kept, 0, 0, 0, 0))


def _call(function: Callable[..., int], *arguments: object) -> None:
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "the privileges could not be given up")


def unpack(archive: io.BufferedReader, caps: Caps) -> None:
    """Makes all that the archive holds, in the root folder."""
    members = Members(caps)
    made: set[str] = set()
    with tarfile.open(fileobj=_Bounded(archive), mode="r|", bufsize=CHUNK) as tar:
        for member in _read_members(tar):
            step = members.decide(member)
            if step is not None:
                _make_parents(step.path, made)
                _make(step, tar, member, made)


def _read_members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Up to the archive's end mark; iterating over `tar` itself would take damage for the end."""
    member = tar.next()
    while member is not None:
        yield member
        tar.fileobj.seek(tar.offset)
        try:
            member = tarfile.TarInfo.fromtarfile(tar)
        except _END_MARK:
            return


def _make_parents(path: str, made: set[str]) -> None:
    parts = path.split("/")[:-1]
    for end in range(1, len(parts) + 1):
        above = "/".join(parts[:end])
        if above not in made:
            os.mkdir(f"/{above}", 0o755)
            made.add(above)


def _make(step: Step, tar: tarfile.TarFile, member: tarfile.TarInfo, made: set[str]) -> None:
    path = f"/{step.path}"
    if step.kind == "hardlink":
        os.link(f"/{step.target}", path, follow_symlinks=False)
        return
    if step.kind == "link":
        os.symlink(step.target, path)
        _own(path, step.uid, step.gid)
        return
    if step.kind == "folder":
        if step.path not in made:
            os.mkdir(path)
            made.add(step.path)
    else:
        _write(path, tar, member)
    _own(path, step.uid, step.gid)
    os.chmod(path, step.mode)
    os.utime(path, (step.mtime, step.mtime), follow_symlinks=False)


def _write(path: str, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise Refused(f"{member.name!r} has no content")
    written = 0
    with open(path, "xb", buffering=0) as file:
        while chunk := source.read(CHUNK):
            written += file.write(chunk)
    if written != member.size:
        raise Refused(f"the archive ends within {member.name!r}")


class _Bounded(io.RawIOBase):
    """The archive, decompressed; a bomb is refused by what it has grown to."""

    def __init__(self, archive: io.BufferedReader) -> None:
        self._plain = _decompressor(archive)
        self._size = max(os.fstat(archive.fileno()).st_size, 1)
        self._passed = 0

    def read(self, size: int = -1) -> bytes:
        data = self._plain.read(size)
        self._passed += len(data)
        if self._passed > FREE_OF_RATIO_BYTES and self._passed > LARGEST_RATIO * self._size:
            raise Refused(f"it grows to more than {LARGEST_RATIO} times its size")
        return data


def _decompressor(archive: io.BufferedReader) -> io.BufferedIOBase:
    magic = archive.peek(6)[:6]
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=archive, mode="rb")
    if magic.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(archive)
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        raise Refused("it is compressed with zstd; unpack it first: zstd -d, or make it a .tar.xz")
    return archive


def complete() -> dict[str, str]:
    """Adds what every box needs: mount points, the ordinary user and its home; gives the interpreters."""
    if not any(os.path.isdir(f"/{name}") for name in ("usr", "bin")):
        raise Refused("it has neither /usr nor /bin: it is no root file system")
    for name in (*MOUNT_POINTS, *OPEN_FOLDERS, HOME):
        if os.path.islink(f"/{name}") or not os.path.isdir(f"/{name}"):
            _make_folder(name)
    for name in OPEN_FOLDERS:
        os.chmod(f"/{name}", 0o1777)
    os.chmod("/", 0o755)
    _own("/", 0, 0)
    _own(f"/{HOME}", USER_ID, USER_ID)
    os.chmod(f"/{HOME}", 0o755)
    for name, text in ETC.items():
        path = f"/etc/{name}"
        if os.path.islink(path):
            os.unlink(path)
        if not os.path.exists(path):
            _append(path, text)
    for name, line in (("passwd", "user:x:1000:1000:user:/home/user:/bin/sh"), ("group", "user:x:1000:")):
        _add_user(f"/etc/{name}", line)
    return interpreters()


def _make_folder(name: str) -> None:
    try:
        os.mkdir(f"/{name}", 0o755)
    except FileExistsError:
        raise Refused(f"'{name}' is no folder; a box needs it as one") from None


def _add_user(path: str, line: str) -> None:
    if os.path.islink(path):
        raise Refused(f"'{path[1:]}' is a link; a box needs it as a file")
    text = b""
    if os.path.exists(path):
        with open(path, "rb") as file:
            text = file.read(CHUNK)
    if any(row.split(b":")[2:3] == [b"1000"] for row in text.splitlines()):
        return
    _append(path, ("\n" if text and not text.endswith(b"\n") else "") + line + "\n")


def _append(path: str, text: str) -> None:
    with open(path, "a", encoding="ascii") as file:
        file.write(text)


def interpreters() -> dict[str, str]:
    """Those in the usual places, found without running anything."""

    def all_of_them() -> Iterator[Interpreter]:
        for folder in SHARED_FOLDERS:
            yield from find_interpreters("", folder, read_node_version)
        for name in sorted(os.listdir("/opt")):
            if re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name, re.ASCII):
                yield from find_interpreters("", f"/opt/{name}/bin", read_node_version)

    if os.path.lexists(SHIMS):
        raise Refused(f"'{SHIMS[1:]}' is where Cloche puts the interpreters' names; leave it out")
    return add_shims(choose(all_of_them()), seen_from="", root="")


def read_node_version(program: str) -> str | None:
    """From the header beside it, else from the address of its source that is compiled in."""
    header = f"{os.path.dirname(program)}/../include/node/node_version.h"
    if os.path.isfile(header):
        with open(header, encoding="latin-1") as file:
            found = NODE_HEADER.search(file.read(CHUNK))
        if found:
            return found[1]
    with open(program, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as octets:
        url = NODE_URL.search(octets)
        return url[1].decode() if url else None


if __name__ == "__main__":
    sys.exit(main())
