"""What a box of the host image finds in /etc: files of its own, and copies of what programs in /usr need."""

from __future__ import annotations

import glob
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

COPIED = (
    "alternatives",
    "bindresvport.blacklist",
    "ca-certificates.conf",
    "debian_version",
    "dpkg/origins",
    "fonts",
    "gai.conf",
    "ghostscript",
    "glvnd",
    "groff",
    "host.conf",
    "ImageMagick-*",
    "inputrc",
    "java-*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "magic.mime",
    "mailcap",
    "mime.types",
    "mke2fs.conf",
    "networks",
    "os-release",
    "papersize",
    "perl",
    "pki/ca-trust/extracted",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "protocols",
    "python2*",
    "python3*",
    "redhat-release",
    "rpc",
    "R",
    "services",
    "sgml",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "texmf",
    "timezone",
    "vim",
    "xml",
)
"""Patterns below /etc. Only what everyone may read is copied, no key, and no link that leads elsewhere than /usr."""

WATCHED = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/pki/ca-trust/extracted",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
"""What changes by itself; all else comes with a package, which changes the library cache or /usr/bin."""

OWN = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    "user:x:1000:1000:user:/home/user:/bin/bash\n",
    "group": "root:x:0:\ntty:x:5:\nnogroup:x:65534:\nuser:x:1000:\n",
    "hostname": "cloche\n",
    "hosts": "127.0.0.1\tlocalhost cloche\n::1\tlocalhost cloche\n",
    "resolv.conf": "# Filled in where the sandbox has a network.\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
    "protocols: files\nservices: files\nrpc: files\n",
    "shells": "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n",
    # A login shell keeps the PATH that the sandbox was given.
    "profile": "PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}\nexport PATH\nPS1='\\w\\$ '\n",
}

LARGEST_FILE_BYTES = 8 << 20
KEY = b"PRIVATE KEY-----"


def fill_etc(etc: Path, *, copied_from: str = "/etc") -> None:
    """Makes the box's /etc in the empty folder `etc`."""
    for pattern in COPIED:
        for source in sorted(glob.glob(f"{copied_from}/{pattern}")):
            _copy(source, etc / os.path.relpath(source, copied_from))
    for name, text in OWN.items():
        (etc / name).write_text(text, encoding="ascii")


def _copy(source: str, target: Path) -> None:
    try:
        found = os.lstat(source)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        _copy_link(source, target)
    elif stat.S_ISDIR(found.st_mode) and found.st_mode & 0o005 == 0o005:
        target.mkdir(parents=True)
        for name in sorted(os.listdir(source)):
            _copy(f"{source}/{name}", target / name)
    elif stat.S_ISREG(found.st_mode) and found.st_mode & 0o004 and found.st_size <= LARGEST_FILE_BYTES:
        _copy_file(source, target)


def _copy_link(source: str, target: Path) -> None:
    leads_to = os.path.realpath(source)
    is_manual = leads_to.endswith(".gz")
    if leads_to.startswith(("/usr/", "/etc/")) and not is_manual:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(os.readlink(source))


def _copy_file(source: str, target: Path) -> None:
    # What it is was decided before it was opened: a link put there in between must not be followed.
    with open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        data = file.read(LARGEST_FILE_BYTES)
    if KEY not in data:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
