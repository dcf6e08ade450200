"""Tar archives that come from anywhere and go to anyone."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from cloche.client.archives import ArchiveTarget, walk_archive
from cloche.errors import InvalidRequest, SandboxError

if TYPE_CHECKING:
    from pathlib import Path


def make_archive(path: Path, *members: tuple[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, type in members:
            info = tarfile.TarInfo(name)
            info.type = type
            info.linkname = "target"
            info.size = 4 if type == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(b"data"))
    return path


def test_files_folders_and_links_are_walked(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.tar", ("./d", tarfile.DIRTYPE), ("d/f", tarfile.REGTYPE), ("l", tarfile.SYMTYPE))
    found = list(walk_archive(path))
    assert [(entry.name, entry.kind) for entry in found] == [("d", "folder"), ("d/f", "file"), ("l", "link")]
    with found[1].open() as file:
        assert file.read() == b"data"


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("/etc/passwd", tarfile.REGTYPE),
        ("../up", tarfile.REGTYPE),
        ("a/../../up", tarfile.REGTYPE),
        ("n" * 256, tarfile.REGTYPE),
        ("device", tarfile.CHRTYPE),
        ("pipe", tarfile.FIFOTYPE),
    ],
)
def test_a_member_that_could_lead_elsewhere_is_refused(tmp_path: Path, name: str, type: bytes) -> None:
    with pytest.raises(InvalidRequest, match="member"):
        list(walk_archive(make_archive(tmp_path / "a.tar", (name, type))))


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08garbage"])
def test_what_is_no_archive_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(InvalidRequest, match="can't be read as a tar archive"):
        list(walk_archive(tmp_path / "a.tar"))


def test_a_name_is_packed_only_once() -> None:
    with ArchiveTarget(io.BytesIO()) as archive:
        archive.make_link((b"a",), b"/etc")
        with pytest.raises(SandboxError, match="twice"):
            archive.make_folder((b"a",))


def test_names_that_are_no_text_are_packed() -> None:
    file = io.BytesIO()
    with ArchiveTarget(file) as archive, archive.open_file((b"\xff",), 0o644) as member:
        member.write(b"12345")
    file.seek(0)
    with tarfile.open(fileobj=file) as archive:
        [info] = archive.getmembers()
    assert (info.name, info.size) == ("\udcff", 5)
