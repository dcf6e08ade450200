"""Tar archives that come from anywhere and go to anyone."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
from typing import TYPE_CHECKING

import pytest

from cloche.client.archives import ArchiveTarget, walk_archive
from cloche.errors import InvalidRequest, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable
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


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("content", [b"", b"no archive", *(pack(b"x") for pack in PACKINGS.values())])
def test_what_is_no_archive_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(InvalidRequest) as refusal:
        list(walk_archive(tmp_path / "a.tar"))
    assert refusal.value.message == f"'{tmp_path}/a.tar' is no tar archive, plain or packed with gzip, bzip2 or xz"


def read_all(path: Path) -> None:
    for entry in walk_archive(path):
        entry.open().close()


@pytest.mark.parametrize("packing", ["plain", "gzip", "xz"])
def test_half_an_archive_is_damaged(tmp_path: Path, packing: str) -> None:
    path = make_archive(tmp_path / "a.tar", *[(f"{number}", tarfile.REGTYPE) for number in range(300)])
    packed = PACKINGS[packing](path.read_bytes())
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InvalidRequest, match=r"a.tar' is damaged: \w+"):
        read_all(path)


@pytest.mark.parametrize("length", [1024, 1025, 1536, 1600, 2047])
def test_one_that_stops_anywhere_is_damaged(tmp_path: Path, length: int) -> None:
    path = make_archive(tmp_path / "a.tar", ("one", tarfile.REGTYPE), ("two", tarfile.REGTYPE))
    os.truncate(path, length)
    with pytest.raises(InvalidRequest, match=r"a.tar' is damaged: \w+"):
        read_all(path)


def test_an_archive_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"a.tar' can't be read: No such file or directory\Z"):
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
