"""Mounts, told from the kernel's table."""

from __future__ import annotations

import os
import subprocess

import pytest

from cloche.engines.mountinfo import parse_mounts
from cloche.engines.mounts import mounts_of, tell_mounts

OWN = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 8:1 /srv /data rw,relatime - xfs /dev/sda1 rw
41 27 8:1 /srv/deep /deep rw,relatime - xfs /dev/sda1 rw
"""


@pytest.mark.parametrize(
    ("line", "path", "access", "what", "options"),
    [
        ("1 0 254:0 /usr /usr ro,nosuid,nodev - ext4 /dev/vda rw", "/usr", "ro", "this machine's /usr", ["nosuid", "nodev"]),
        ("1 0 254:0 / /all rw - ext4 /dev/vda ro", "/all", "ro", "this machine's /", []),
        ("1 0 8:1 /srv/deep/x /w rw - xfs /dev/sda1 rw", "/w", "rw", "this machine's /deep/x", []),
        ("1 0 8:1 /srv/deeper /w rw - xfs /dev/sda1 rw", "/w", "rw", "this machine's /data/deeper", []),
        ("1 0 8:1 /elsewhere /w rw - xfs /dev/sda1 rw", "/w", "rw", "xfs", []),
        ("1 0 0:9 / / rw,relatime - overlay overlay rw,lowerdir=a", "/", "rw", "a disk of its own over the image", []),
        ("1 0 0:9 / /dev/shm rw,noexec - tmpfs tmpfs rw,size=64k", "/dev/shm", "rw", "tmpfs, 64k", ["noexec"]),
        (r"1 0 254:0 /a\040b /c\134d rw - ext4 /dev/vda rw", "/c\\d", "rw", "this machine's /a b", []),
        ("1 0 254:0 /u/x//deleted /w ro - ext4 /dev/vda rw", "/w", "ro", "this machine's /u/x (deleted)", []),
        ("1 0 254:0 /deleted /w ro - ext4 /dev/vda rw", "/w", "ro", "this machine's /deleted", []),
        ("1 0 254:0 /u /u rw shared:1 master:2 - ext4 /dev/vda rw", "/u", "rw", "this machine's /u", []),
    ],
)  # fmt: skip
def test_a_mount_is_told_in_paths_of_this_machine(
    line: str, path: str, access: str, what: str, options: list[str]
) -> None:
    (found,) = tell_mounts(parse_mounts(line), parse_mounts(OWN))
    assert (found.path, found.access, found.what, list(found.options)) == (path, access, what, options)


def test_of_two_at_one_place_the_upper_one_is_seen() -> None:
    lines = "1 0 0:8 / /a rw - proc proc rw\n2 0 0:9 / /a ro - tmpfs tmpfs rw\n"
    assert [mount.what for mount in tell_mounts(parse_mounts(lines), parse_mounts(OWN))] == ["tmpfs"]


def test_a_process_that_has_ended_sees_none() -> None:
    assert {mount.path for mount in mounts_of(os.getpid())} >= {"/", "/proc"}
    assert mounts_of(2**22) == []


def test_a_process_that_is_a_zombie_sees_none() -> None:
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert mounts_of(ended.pid) == []
