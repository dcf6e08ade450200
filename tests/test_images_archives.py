from __future__ import annotations

import gzip
import io
import lzma
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cloche.errors import ImageNotFound, InvalidRequest
from cloche.images import find_image, import_archive, list_images, remove_image, resolve
from tests.test_images_members import FOLDER, HARD, HOSTILE, LINK, member

Pack = Callable[[bytes], bytes]


def make_archive(path: Path, *members: tarfile.TarInfo, format: int = tarfile.GNU_FORMAT) -> Path:
    with tarfile.open(path, "w", format=format) as tar:
        for each in members:
            tar.addfile(each, io.BytesIO(b"x" * each.size) if each.isreg() else None)
    return path


def machine(*more: tarfile.TarInfo) -> list[tarfile.TarInfo]:
    return [member("usr", FOLDER, mode=0o755), member("usr/bin", FOLDER, mode=0o755), *more]


def program(name: str) -> tarfile.TarInfo:
    return member(name, mode=0o755, size=8)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "root.tar"


def leaves_nothing(home: Path) -> bool:
    return not any(path for name in ("images", "scratch") for path in (home / name).glob("*"))


def test_an_image_has_the_files_owners_and_modes_of_its_archive(home: Path, archive: Path) -> None:
    make_archive(
        archive,
        *machine(
            member("usr/bin/a", size=5, mode=0o4750, uid=65_535, gid=42, mtime=1_000_000_000),
            member("usr/bin/b", HARD, linkname="usr/bin/a"),
            member("bin", LINK, linkname="usr/bin", uid=7),
        ),
    )
    rootfs = import_archive(home, "mine", archive).rootfs
    found = (rootfs / "usr/bin/a").stat()
    assert (found.st_mode & 0o7777, found.st_uid, found.st_gid) == (0o750, 65_535, 42)
    assert (found.st_size, found.st_mtime, found.st_nlink) == (5, 1_000_000_000, 2)
    assert (rootfs / "bin").readlink() == Path("usr/bin")
    assert (rootfs / "bin").lstat().st_uid == 7


def test_an_image_gets_the_user_a_home_and_the_places_that_a_box_needs(home: Path, archive: Path) -> None:
    make_archive(archive, *machine(member("etc/resolv.conf", LINK, linkname="/run/x"), member("etc/passwd", size=3)))
    rootfs = import_archive(home, "mine", archive).rootfs
    assert (rootfs / "home/user").stat().st_uid == 1000
    assert (rootfs / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert (rootfs / "etc/passwd").read_text() == "xxx\nuser:x:1000:1000:user:/home/user:/bin/sh\n"
    assert (rootfs / "etc/resolv.conf").is_file()
    assert all((rootfs / name).is_dir() for name in ("proc", "sys", "dev", "run", "root"))


def test_folders_that_the_archive_leaves_out_belong_to_root(home: Path, archive: Path) -> None:
    make_archive(archive, member("usr/bin/python3.12", mode=0o755, size=8))
    rootfs = import_archive(home, "mine", archive).rootfs
    for name in ("usr", "usr/bin", "proc", "etc/hosts", "opt/cloche/python3.12/pip"):
        assert ((rootfs / name).stat().st_uid, (rootfs / name).stat().st_gid) == (0, 0)


def test_a_passwd_that_knows_uid_1000_is_left_alone(home: Path, archive: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "usr").mkdir()
    (root / "etc/passwd").write_text("node:x:1000:1000::/home/node:/bin/sh\n")
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    image = import_archive(home, "mine", archive)
    assert (image.rootfs / "etc/passwd").read_text() == "node:x:1000:1000::/home/node:/bin/sh\n"


def test_interpreters_in_an_archive_are_found_and_answer_to_their_names(home: Path, archive: Path) -> None:
    names = ("usr/bin/python3.11", "opt/go/bin/go", "usr/local/bin/python3.12", "bin/bash")
    image = import_archive(home, "mine", make_archive(archive, *machine(*map(program, names))))
    assert list(image.interpreters) == ["python3.12", "python3.11", "bash"]
    assert resolve(None, image).path_prefix == "/opt/cloche/python3.12"
    assert (image.rootfs / "opt/cloche/python3.12/python").readlink() == Path("/usr/local/bin/python3.12")


def test_an_interpreter_that_is_a_link_out_of_the_archive_is_none(home: Path, archive: Path) -> None:
    out = member("usr/bin/python3.11", LINK, linkname="../../../../../../usr/bin/python3.11")
    assert import_archive(home, "mine", make_archive(archive, *machine(out))).interpreters == {}


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_compressed_archive_is_taken_too(home: Path, archive: Path, pack: Pack) -> None:
    make_archive(archive, *machine(program("usr/bin/python3.12")))
    archive.write_bytes(pack(archive.read_bytes()))
    assert list(import_archive(home, "mine", archive).interpreters) == ["python3.12"]


@pytest.mark.parametrize("shape", [shape for shape in HOSTILE if "NUL" not in shape and "negative" not in shape])
def test_a_hostile_archive_is_refused_and_leaves_nothing(home: Path, archive: Path, shape: str) -> None:
    members, _ = HOSTILE[shape]
    make_archive(archive, *machine(*members), format=tarfile.PAX_FORMAT)
    with pytest.raises(InvalidRequest, match="image 'mine' is refused"):
        import_archive(home, "mine", archive)
    assert leaves_nothing(home)


def test_nothing_is_written_outside_by_any_hostile_archive(home: Path, archive: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in (str(outside / "a"), "../" * 40 + str(outside / "a")[1:]):
        with pytest.raises(InvalidRequest):
            import_archive(home, "mine", make_archive(archive, *machine(member(name, size=1))))
    link = member("l", LINK, linkname=str(outside))
    make_archive(archive, *machine(link, member("l/a", size=1)))
    with pytest.raises(InvalidRequest):
        import_archive(home, "mine", archive)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_bomb_is_refused_long_before_it_is_whole(home: Path, archive: Path, pack: Pack) -> None:
    zeros = member("usr/zeros", size=400 << 20)
    whole = zeros.tobuf() + bytes(100 << 20)
    archive.write_bytes(pack(whole))
    with pytest.raises(InvalidRequest, match="more than 200 times its size"):
        import_archive(home, "mine", archive)
    assert leaves_nothing(home)


DAMAGES: dict[str, Pack] = {
    "empty": lambda whole: b"",
    "no archive": lambda whole: b"no archive at all" * 100,
    "within a header": lambda whole: whole[:700],
    "after a header": lambda whole: whole[:512],
    "a header of rubbish": lambda whole: whole[:1024] + b"\xff" * 512 + whole[1536:],
    "cut short, compressed": lambda whole: gzip.compress(whole)[:-20],
    "no gzip": lambda whole: b"\x1f\x8b" + whole,
    "no xz": lambda whole: b"\xfd7zXZ\0" + whole,
    "zstd": lambda whole: b"\x28\xb5\x2f\xfd" + whole,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_archive_is_refused_and_leaves_nothing(home: Path, archive: Path, damage: str) -> None:
    make_archive(archive, *machine(member("usr/a", size=2000)))
    archive.write_bytes(DAMAGES[damage](archive.read_bytes()))
    with pytest.raises(InvalidRequest, match="image 'mine' is refused"):
        import_archive(home, "mine", archive)
    assert leaves_nothing(home)


def test_headers_upon_headers_are_refused(home: Path, archive: Path) -> None:
    long_name = member("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=2).tobuf() + b"a\0" + bytes(510)
    archive.write_bytes(long_name * 5000)
    with pytest.raises(InvalidRequest, match=r"headers upon headers|no whole tar archive"):
        import_archive(home, "mine", archive)


def test_a_name_that_takes_all_memory_is_refused(home: Path, archive: Path) -> None:
    archive.write_bytes(member("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=7 << 30).tobuf())
    os.truncate(archive, 1 << 30)
    with pytest.raises(InvalidRequest, match="memory"):
        import_archive(home, "mine", archive)


def test_an_archive_that_is_no_machine_is_refused(home: Path, archive: Path) -> None:
    with pytest.raises(InvalidRequest, match="neither /usr nor /bin"):
        import_archive(home, "mine", make_archive(archive, member("readme", size=3)))


@pytest.mark.parametrize("place", ["proc", "tmp", "home/user", "etc", "opt/cloche"])
def test_a_link_where_a_box_needs_a_folder_is_refused(home: Path, archive: Path, place: str) -> None:
    members = machine(program("usr/bin/python3.12"), member(place, LINK, linkname="/usr"))
    with pytest.raises(InvalidRequest, match="refused"):
        import_archive(home, "mine", make_archive(archive, *members))


@pytest.mark.parametrize("name", ["", "host", "host-1", ".hidden", "a/b", "..", "A", "x" * 64, "a\n", "ä"])
def test_a_name_that_is_none_is_refused(home: Path, archive: Path, name: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be called"):
        import_archive(home, name, archive)
    if name != "host":
        with pytest.raises(ImageNotFound):
            find_image(home, name)


def test_a_name_that_is_taken_or_a_file_that_is_not_there_is_refused(home: Path, archive: Path) -> None:
    with pytest.raises(InvalidRequest, match="there is no file"):
        import_archive(home, "mine", archive)
    import_archive(home, "mine", make_archive(archive, *machine()))
    with pytest.raises(InvalidRequest, match="already"):
        import_archive(home, "mine", archive)


def test_images_are_listed_found_and_removed(home: Path, archive: Path) -> None:
    image = import_archive(home, "mine", make_archive(archive, *machine()))
    assert [each.name for each in list_images(home)] == ["host", "mine"]
    assert find_image(home, "mine") == image
    remove_image(home, "mine")
    assert [each.name for each in list_images(home)] == ["host"]
    with pytest.raises(ImageNotFound, match=r"there is no image 'mine'; there is host\."):
        remove_image(home, "mine")


def test_the_host_image_cannot_be_removed(home: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be removed"):
        remove_image(home, "host")
