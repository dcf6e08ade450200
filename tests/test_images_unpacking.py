from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from cloche.errors import EngineError, InvalidRequest
from cloche.images.unpacking import unpack_archive
from tests.registry import pack
from tests.test_images_members import FOLDER, member

if TYPE_CHECKING:
    from pathlib import Path


def unpack(archive: Path, folder: Path) -> object:
    with archive.open("rb") as file:
        return unpack_archive("this", file, folder, is_package=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


def test_a_package_is_unpacked_as_it_is(tmp_path: Path, folder: Path) -> None:
    archive = tmp_path / "a.tgz"
    archive.write_bytes(pack(member("package/a", mode=0o600), member("package/d", FOLDER), content=b"x"))
    assert unpack(archive, folder) == {}
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) == ["package", "package/a", "package/d"]
    assert (folder / "package/a").stat().st_mode & 0o777 == 0o644


def test_a_package_that_grows_without_end_is_refused(tmp_path: Path, folder: Path) -> None:
    archive = tmp_path / "a.tgz"
    archive.write_bytes(gzip.compress(member("package/zeros", size=400 << 20).tobuf() + bytes(100 << 20)))
    with pytest.raises(InvalidRequest, match="this is refused: it grows to more than 200 times its size"):
        unpack(archive, folder)


def test_a_package_of_more_than_a_gibibyte_is_refused(tmp_path: Path, folder: Path) -> None:
    archive = tmp_path / "a.tar"
    archive.write_bytes(member("package/large", size=2 << 30).tobuf())
    with pytest.raises(InvalidRequest, match="more than 1073741824 octets"):
        unpack(archive, folder)


def test_a_process_that_fails_is_told_of(tmp_path: Path) -> None:
    archive = tmp_path / "a.tgz"
    archive.write_bytes(pack(member("package/a")))
    with pytest.raises(EngineError, match="the process that unpacks it failed"):
        unpack(archive, tmp_path / "nowhere")
