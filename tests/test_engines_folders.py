"""A folder that a sandbox wrote to, removed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cloche.engines.folders import remove_folder

if TYPE_CHECKING:
    from pathlib import Path


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    gone = tmp_path / "gone"
    gone.mkdir()
    (gone / "to-folder").symlink_to("../kept")
    (gone / "to-file").symlink_to("../kept/file")
    (gone / "dangling").symlink_to("nowhere")
    os.mkfifo(gone / "pipe")
    remove_folder(gone)
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


@pytest.mark.parametrize("depth", [3, 3000])
def test_no_depth_is_too_deep(tmp_path: Path, depth: int) -> None:
    top = tmp_path / "top"
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=folder)
        os.close(os.open("file", os.O_CREAT, 0o000, dir_fd=folder))
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    remove_folder(top)
    assert not top.exists()


def test_rights_taken_away_do_not_keep_it(tmp_path: Path) -> None:
    (tmp_path / "top" / "locked" / "inner").mkdir(parents=True)
    (tmp_path / "top" / "locked" / "inner").chmod(0)
    (tmp_path / "top" / "locked").chmod(0)
    remove_folder(tmp_path / "top")
    assert not (tmp_path / "top").exists()


def test_one_that_is_gone_is_fine(tmp_path: Path) -> None:
    remove_folder(tmp_path / "none")
