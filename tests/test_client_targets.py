"""A file that is written here: what stood there stays until all is there, and no device becomes a file."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from cloche.client.targets import open_target, own_descriptor
from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    from pathlib import Path


def put(path: Path | str, content: bytes = b"after") -> None:
    with open_target(path) as file:
        file.write(content)


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(TypeError), open_target(path) as file:
        file.writelines([b"half", None])  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert path.read_text() == "before"
    put(path)
    assert path.read_text() == "after"
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_who_may_read_it_and_whose_it_is_stays_and_setuid_does_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    os.chown(path, 1234, 5678)
    path.chmod(0o6750)
    put(path)
    found = path.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o750, 1234, 5678)


def test_a_device_is_written_to_and_stays_one(tmp_path: Path) -> None:
    device = tmp_path / "null"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    put(device)
    assert stat.S_ISCHR(device.stat().st_mode)
    full = tmp_path / "full"
    os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    with pytest.raises(OSError, match="No space left"):
        put(full)
    assert {found.name for found in tmp_path.iterdir()} == {"null", "full"}


def test_a_pipe_is_written_to_and_one_without_a_reader_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InvalidRequest, match="that nobody reads"):
        put(pipe)
    with open(os.open(pipe, os.O_RDWR), "rb") as reader:
        writer = Thread(target=put, args=(pipe, b"x" * 300_000))
        writer.start()
        assert reader.read(300_000) == b"x" * 300_000
        writer.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_our_own_output_is_written_to_where_it_stands(tmp_path: Path, name: str) -> None:
    before = os.lstat(name)
    code = f"from cloche.client.targets import open_target\nwith open_target({name!r}) as file: file.write(b'after')"
    with (tmp_path / "out").open("ab") as out:
        out.write(b"before ")
        out.flush()
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_bytes() == b"before after"
    assert os.lstat(name).st_mode == before.st_mode


def test_what_is_not_ours_has_no_number(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "out").symlink_to("/dev/stdout")
    names = ["/dev/null", "1", "/proc/1/fd/1", str(tmp_path / "loop"), str(tmp_path / "none"), ""]
    assert [own_descriptor(name) for name in names] == [None] * len(names)
    assert own_descriptor(str(tmp_path / "out")) == 1


@pytest.mark.parametrize("target", ["file", "none", "/dev/null"])
def test_a_link_is_neither_followed_nor_replaced(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("before")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(InvalidRequest, match=f"is a link to '{target}'"):
        put(tmp_path / "link")
    assert str((tmp_path / "link").readlink()) == target
    assert (tmp_path / "file").read_text() == "before"
    assert not (tmp_path / "none").exists()


def test_where_no_file_can_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, message in (
        (str(tmp_path), "is a folder"),
        (f"{tmp_path}/file/x", "Not a directory"),
        (f"{tmp_path}/none/x", "No such file"),
        ("", "the path of a file was expected"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            put(path)


def test_what_does_not_fit_is_told_to_the_last_octet(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, before[1]))
    try:
        # The kernel takes the first five, and says so; only the next attempt fails.
        with pytest.raises(OSError, match="too large"):
            put(tmp_path / "file", b"x" * 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []
