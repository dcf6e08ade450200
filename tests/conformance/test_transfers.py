"""Whole files and folders, there and back (product line 7; security.md F)."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

import pytest

from cloche.errors import InvalidRequest, SandboxError

if TYPE_CHECKING:
    from pathlib import Path

    from cloche import Sandbox


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "folder"
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "file").write_text("one")
    (root / "sub" / "script").write_text("two")
    (root / "sub" / "script").chmod(0o755)
    (root / "sub" / "link").symlink_to("../file")
    (tmp_path / "secret").write_text("not to be sent")
    (root / "out").symlink_to("../secret")
    return root


def test_a_file_is_uploaded_and_downloaded(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "local").write_bytes(b"x" * 2_000_000)
    assert sandbox.files.upload(tmp_path / "local", "up/remote") == 2_000_000
    assert sandbox.files.download("up/remote", tmp_path / "back") == 2_000_000
    assert (tmp_path / "back").read_bytes() == b"x" * 2_000_000


def test_a_folder_goes_there_and_back(sandbox: Sandbox, folder: Path, tmp_path: Path) -> None:
    sandbox.files.upload(folder, "sent")
    assert sandbox.files.stat("sent/out", follow=False).target == "../secret"
    sandbox.files.download("sent", tmp_path / "back")
    back = tmp_path / "back"
    assert (back / "sub" / "script").read_text() == "two"
    assert (back / "sub" / "script").stat().st_mode & 0o777 == 0o755
    assert (back / "sub" / "link").readlink().name == "file"
    assert (back / "sub" / "empty").is_dir()


def test_a_folder_is_downloaded_as_an_archive_and_uploaded_from_it(
    sandbox: Sandbox, folder: Path, tmp_path: Path
) -> None:
    sandbox.files.upload(folder, "packed")
    sandbox.files.download("packed", tmp_path / "folder.tar")
    with tarfile.open(tmp_path / "folder.tar") as archive:
        assert {"file", "sub/script", "sub/link", "sub/empty", "out"} <= set(archive.getnames())
    sandbox.files.upload(tmp_path / "folder.tar", "unpacked", unpack=True)
    assert sandbox.files.read("unpacked/sub/script") == "two"
    assert sandbox.files.stat("unpacked/sub/link", follow=False).target == "../file"


def test_a_download_is_bounded_and_leaves_nothing_half(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.commands.run("mkdir big && truncate -s 64M big/sparse").check()
    with pytest.raises(SandboxError, match="max_bytes"):
        sandbox.files.download("big/sparse", tmp_path / "file", max_bytes=1 << 20)
    with pytest.raises(SandboxError, match="max_bytes"):
        sandbox.files.download("big", tmp_path / "big", max_bytes=1 << 20)
    with pytest.raises(SandboxError, match="max_entries"):
        sandbox.files.download("/usr/bin", tmp_path / "many", max_entries=10)
    assert not (tmp_path / "file").exists()


def test_a_download_goes_only_where_nothing_is_in_the_way(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.files.write("some/file", "x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(InvalidRequest, match="not empty"):
        sandbox.files.download("some", tmp_path / "full")
    assert (tmp_path / "full" / "file").read_text() == "mine"
    (tmp_path / "link").symlink_to("full")
    with pytest.raises(InvalidRequest, match="no folder that can be opened"):
        sandbox.files.download("some", tmp_path / "link")
