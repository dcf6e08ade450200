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


def test_what_is_neither_file_nor_folder_is_not_sent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidRequest, match="neither a file nor a folder"):
        find_source(tmp_path / "pipe")
    with pytest.raises(InvalidRequest, match="No such file"):
        find_source(tmp_path / "none")
