"""The few devices of a box are this machine's own: code may use them, and change nothing of them (promise 1)."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.security.lab import run_python

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche import Sandbox

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
CHANGE = """
import json, os, stat
done = []
for name in sorted(os.listdir("/dev")):
    path = "/dev/" + name
    found = os.lstat(path)
    if not stat.S_ISCHR(found.st_mode): continue
    for change in ("chmod", "chown", "utime", "setxattr", "rename", "unlink"):
        try:
            if change == "chmod": os.chmod(path, stat.S_IMODE(found.st_mode))
            if change == "chown": os.chown(path, found.st_uid, found.st_gid)
            if change == "utime": os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
            if change == "setxattr": os.setxattr(path, "user.x", b"x")
            if change == "rename": os.rename(path, path + "x")
            if change == "unlink": os.unlink(path)
        except OSError: continue
        done.append([path, change])
print(json.dumps(done))
"""


def owners() -> dict[str, tuple[int, int, int]]:
    return {path: (found.st_uid, found.st_gid, found.st_mode) for path in DEVICES for found in [os.stat(path)]}


@pytest.mark.promise("isolation")
@pytest.mark.parametrize("user", ["user", "root"])
def test_no_device_of_this_machine_can_be_changed(make: Callable[..., Sandbox], user: str) -> None:
    before = owners()
    box = make(user=user)
    assert json.loads(run_python(box, CHANGE).stdout) == []
    assert owners() == before
