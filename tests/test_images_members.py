from __future__ import annotations

import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloche.images.members import Caps, Members, Refused


def member(name: str, type: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = type
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def decide(*members: tarfile.TarInfo, caps: Caps | None = None) -> Members:
    following = Members(caps or Caps())
    for each in members:
        following.decide(each)
    return following


LINK, HARD, FOLDER = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE

HOSTILE = {
    "absolute": ([member("/etc/passwd")], "is absolute"),
    "upwards": ([member("a/../../b")], "leads upwards"),
    "upwards, as a folder": ([member("..", FOLDER)], "leads upwards"),
    "through a link": ([member("a", LINK, linkname="/"), member("a/b")], "lies below 'a', which is a link"),
    "through a link to a folder": ([member("a", LINK, linkname="b"), member("b", FOLDER), member("a/c")], "lies below"),
    "link in place of a folder": ([member("a", FOLDER), member("a", LINK, linkname="/etc")], "twice"),
    "file in place of a link": ([member("a", LINK, linkname="/etc/passwd"), member("a")], "twice"),
    "folder in place of a link": ([member("a", LINK, linkname="/etc"), member("a", FOLDER)], "twice"),
    "below a file": ([member("a"), member("a/b")], "lies below 'a', which is a file"),
    "hard link outside": ([member("a", HARD, linkname="../etc/shadow")], "leads upwards"),
    "hard link to an absolute path": ([member("a", HARD, linkname="/etc/shadow")], "is absolute"),
    "hard link to nothing": ([member("a", HARD, linkname="b")], "no file before it"),
    "hard link to a link": ([member("a", LINK, linkname="/x"), member("b", HARD, linkname="a")], "no file before it"),
    "hard link through a link": ([member("a", LINK, linkname="/"), member("b", HARD, linkname="a/etc")], "no file"),
    "device": ([member("dev/sda", tarfile.BLKTYPE)], "'dev/sda' is a device"),
    "character device": ([member("dev/mem", tarfile.CHRTYPE)], "is a device"),
    "pipe": ([member("a", tarfile.FIFOTYPE)], "is a named pipe"),
    "sparse": ([member("a", tarfile.GNUTYPE_SPARSE)], "is a sparse file"),
    "sparse by pax": ([member("a", pax_headers={"GNU.sparse.major": "1"})], "is a sparse file"),
    "unknown type": ([member("a", b"Z")], "unknown type"),
    "NUL": ([member("a\0b")], "holds a NUL"),
    "NUL in a link": ([member("a", LINK, linkname="b\0")], "which no link can hold"),
    "empty link": ([member("a", LINK, linkname="")], "which no link can hold"),
    "long name": ([member("a" * 256)], "longer than 255"),
    "long name in octets": ([member("ö" * 128)], "longer than 255"),
    "long path": ([member("/".join(["a" * 200] * 30))], "at most 4000 in 64"),
    "deep path": ([member("a/" * 65)], "at most 4000 in 64"),
    "negative size": ([member("a", size=-512)], "has the size -512"),
    "foreign owner": ([member("a", uid=65_536)], "belongs to id 65536"),
    "negative group": ([member("a", gid=-1)], "belongs to id -1"),
    "root that is a link": ([member(".", LINK, linkname="/")], "no folder"),
}


@pytest.mark.parametrize("shape", HOSTILE)
def test_a_hostile_member_is_refused_by_name(shape: str) -> None:
    members, reason = HOSTILE[shape]
    with pytest.raises(Refused, match=reason):
        decide(*members)


def test_too_many_entries_and_too_many_octets_are_refused() -> None:
    with pytest.raises(Refused, match="more than 1 entries"):
        decide(member("a"), member("b"), caps=Caps(entries=1))
    with pytest.raises(Refused, match="more than 10 octets, with 'b'"):
        decide(member("a", size=6), member("b", size=6), caps=Caps(total_bytes=10))


def test_setuid_and_setgid_are_stripped_and_the_rest_of_the_mode_is_kept() -> None:
    step = Members().decide(member("su", mode=0o6755))
    assert step is not None
    assert step.mode == 0o755
    folder = Members().decide(member("tmp", FOLDER, mode=0o7777))
    assert folder is not None
    assert folder.mode == 0o1777


def test_a_root_file_system_as_tar_writes_it_is_taken() -> None:
    seen = decide(
        member("./", FOLDER),
        member("./usr", FOLDER),
        member("./usr", FOLDER),
        member("./usr/a", uid=65_535, gid=1000, mode=0o644),
        member("./usr/b", HARD, linkname="./usr/a"),
        member("./usr/c", HARD, linkname="usr/b"),
        member("./bin", LINK, linkname="usr/bin"),
        member("./up", LINK, linkname="../../etc"),
        member("./usr/d\\x2d\udcff"),
    ).seen
    assert seen["usr/c"] == "hardlink"
    assert seen["up"] == "link"


def test_a_time_out_of_range_is_brought_into_it() -> None:
    for mtime in (-1e300, 1e300):
        step = Members().decide(member("a", mtime=mtime))
        assert step is not None
        assert 0 <= step.mtime <= 1 << 33


@given(
    st.lists(
        st.builds(
            member,
            st.text("a./\0ö", max_size=8),
            st.sampled_from([tarfile.REGTYPE, FOLDER, LINK, HARD]),
            linkname=st.text("a./", max_size=5),
        ),
        max_size=8,
    )
)
def test_whatever_comes_every_path_stays_inside_and_below_folders(members: list[tarfile.TarInfo]) -> None:
    following = Members()
    for each in members:
        try:
            step = following.decide(each)
        except Refused:
            break
        if step is None:
            continue
        parts = step.path.split("/")
        assert not step.path.startswith("/")
        assert not {"", ".", ".."} & set(parts)
        for end in range(1, len(parts)):
            assert following.seen["/".join(parts[:end])] == "folder"
