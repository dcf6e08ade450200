"""A table of mounts."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cloche.engines.mountinfo import MountRow, parse_mounts, read_mounts

if TYPE_CHECKING:
    from pathlib import Path

LINE = r"36 25 0:32 /a\040b /c\134d rw,nosuid shared:9 master:2 - ext4 /dev/x\011y rw,size=64k"


def test_a_line_is_read() -> None:
    assert parse_mounts(f"{LINE}\n") == [
        MountRow("0:32", "/a b", False, "/c\\d", ("rw", "nosuid"), "ext4", "/dev/x\ty", ("rw", "size=64k"))
    ]


@pytest.mark.parametrize("char", ["\f", "\v", "\r", "\x1c", "\x85", "\u2028", "\udcff"])
def test_a_path_may_hold_what_looks_like_the_end_of_a_line(char: str) -> None:
    assert [row.path for row in parse_mounts(f"1 0 0:9 / /a{char}b rw - tmpfs x rw\n{LINE}\n")] == [
        f"/a{char}b",
        "/c\\d",
    ]


def test_a_process_sees_its_own() -> None:
    assert "/proc" in {row.path for row in read_mounts()}
    with pytest.raises(FileNotFoundError):
        read_mounts(2**22)


@pytest.mark.parametrize("name", [b"a\x0cb", b"a\xffb"])
def test_a_box_is_made_where_a_mount_has_an_odd_name(home: Path, tmp_path: Path, name: bytes) -> None:
    del home
    folder = bytes(tmp_path) + b"/" + name
    script = 'mkdir "$1" && mount -t tmpfs none "$1" && exec "$2" -m cloche run --runtime bash -c "echo fine"'
    words = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", folder, sys.executable]
    assert subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout == b"fine\n"
