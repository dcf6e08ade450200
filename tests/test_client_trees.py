"""What a sandbox says may lead nowhere else on this machine, and what is sent to it comes from nowhere else."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from cloche.client.trees import TargetFolder, find_source, split_name, walk_source
from cloche.errors import InvalidRequest, SandboxError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "name", [b"", b"/etc/passwd", b"..", b"a/../b", b"./a", b"a//b", b"a/", b"a\0b", b"n" * 256, b"d/" * 128 + b"f"]
)
def test_a_name_that_could_lead_elsewhere_is_refused(name: bytes) -> None:
    with pytest.raises(SandboxError):
        split_name(name)


def fill(target: TargetFolder) -> None:
    target.make_folder((b"inner",))
    with target.open_file((b"inner", b"file"), 0o644) as file:
        file.write(b"text")


def fill_twice(target: TargetFolder) -> None:
    fill(target)
    fill(target)


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    with TargetFolder(tmp_path / "target") as target:
        target.make_link((b"link",), os.fsencode(tmp_path))
        with pytest.raises(SandboxError):
            target.open_file((b"link", b"file"), 0o644)
        with pytest.raises(SandboxError):
            target.open_file((b"link",), 0o644)
        with pytest.raises(SandboxError):
            target.make_folder((b"link", b"folder"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["target"]


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    with TargetFolder(tmp_path / "target") as target:
        target.open_file((b"file",), 0o644).close()
        with pytest.raises(SandboxError, match="File exists"):
            target.open_file((b"file",), 0o644)


def test_only_permission_bits_are_taken_over(tmp_path: Path) -> None:
    with TargetFolder(tmp_path / "target") as target:
        target.open_file((b"file",), 0o106777).close()
    assert (tmp_path / "target" / "file").stat().st_mode == 0o100755


def test_all_of_a_folder_is_there_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "target"
    with pytest.raises(SandboxError), TargetFolder(path) as target:
        fill_twice(target)
    assert list(tmp_path.iterdir()) == []
    with TargetFolder(path) as target:
        fill(target)
    assert [found.name for found in tmp_path.iterdir()] == ["target"]
    assert (path / "inner" / "file").read_bytes() == b"text"
    assert path.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_is_there_stays_the_same_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o710)
    before = tmp_path.stat()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SandboxError), TargetFolder(".") as target:
        fill_twice(target)
    assert list(tmp_path.iterdir()) == []
    with TargetFolder(".") as target:
        fill(target)
    assert [found.name for found in tmp_path.iterdir()] == ["inner"]
    assert (tmp_path.stat().st_ino, tmp_path.stat().st_mode) == (before.st_ino, before.st_mode)


def put_something(path: Path) -> None:
    path.mkdir(exist_ok=True)
    (path / "mine").touch()


@pytest.mark.parametrize("is_there", [True, False])
def test_what_came_there_meanwhile_is_not_replaced(tmp_path: Path, is_there: bool) -> None:
    path = tmp_path / "target"
    if is_there:
        path.mkdir()
    with pytest.raises(InvalidRequest, match="not empty"), TargetFolder(path) as _:
        put_something(path)
    assert [found.name for found in path.iterdir()] == ["mine"]
    assert [found.name for found in tmp_path.iterdir()] == ["target"]


def test_no_folder_can_be_made_without_a_name_or_in_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("", tmp_path / "file", tmp_path / "none" / "target"):
        with pytest.raises(InvalidRequest):
            TargetFolder(path).__enter__()
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRequest, match="not empty"):
        TargetFolder(tmp_path).__enter__()


def test_walking_names_links_and_does_not_follow_them(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "file").write_text("x")
    (root / "up").symlink_to("..")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
        found = {entry.name: entry for entry in walk_source(root)}
    for entry in found.values():
        if entry.kind == "file":
            entry.open().close()
    assert {name: entry.kind for name, entry in found.items()} == {"sub": "folder", "sub/file": "file", "up": "link"}
    assert found["up"].target == ".."


@pytest.mark.parametrize("is_folder", [True, False])
def test_what_cannot_be_read_is_refused_by_its_path(home: Path, is_folder: bool) -> None:
    (home / "source").mkdir()
    closed = home / "source" / "closed"
    if is_folder:
        closed.mkdir(0o700)
    else:
        closed.touch(0o600)
    os.seteuid(65534)
    try:
        with pytest.raises(InvalidRequest) as refusal:
            list(walk_source(home / "source"))
    finally:
        os.seteuid(0)
    assert refusal.value.message == f"'{closed}' can't be read: Permission denied"


def test_what_is_neither_file_nor_folder_is_not_sent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidRequest, match="neither a file nor a folder"):
        find_source(tmp_path / "pipe")
    with pytest.raises(InvalidRequest, match="No such file"):
        find_source(tmp_path / "none")
