"""READ, WRITE, STAT, LIST, MAKE, MOVE, REMOVE and WATCH, as an ordinary user in a box."""

from __future__ import annotations

import errno
import os
import struct
from typing import TYPE_CHECKING

import pytest

from tests.keeper.wire import DATA, EVENT, OK, WRITE, Client, KeeperError, frame, octets, request, wait_until

if TYPE_CHECKING:
    from tests.keeper.conftest import Keeper

APPEND, PARENTS, EXCLUSIVE = 1, 2, 4
RECURSIVE = NOFOLLOW = 1
NAMES = [b"a\nb", b"\xff\xfe", b"x" * 255, b" ", b"-rf", b"\xe2\x80\xae"]


def test_a_file_comes_back_as_it_was_written(user: Client, folder: bytes) -> None:
    data = os.urandom(5 << 20)
    chunks = [data[at : at + (1 << 20)] for at in range(0, len(data), 1 << 20)]
    assert user.write(folder + b"/file", *chunks) == len(data)
    assert user.read(folder + b"/file") == data
    assert user.read(folder + b"/file", 1000, 10) == data[1000:1010]


def test_writing_replaces_appends_or_refuses(user: Client, folder: bytes) -> None:
    path = folder + b"/file"
    user.write(path, b"a longer first")
    user.write(path, b"one")
    user.write(path, b" two", flags=APPEND)
    assert user.read(path) == b"one two"
    with pytest.raises(KeeperError) as error:
        user.write(path, b"x", flags=EXCLUSIVE)
    assert error.value.code == errno.EEXIST


def test_folders_are_made_on_the_way(user: Client, folder: bytes) -> None:
    user.write(folder + b"/a/b/c", b"x", flags=PARENTS, mode=0o600)
    user.make(folder + b"/d/e", flags=PARENTS, mode=0o2770)
    assert oct(user.stat(folder + b"/a/b/c").mode) == "0o100600"
    assert oct(user.stat(folder + b"/d/e").mode) == "0o42770"
    assert user.make(folder + b"/d/e", flags=PARENTS) == 0


@pytest.mark.parametrize("name", NAMES)
def test_any_name_that_the_kernel_allows_will_do(user: Client, folder: bytes, name: bytes) -> None:
    path = folder + b"/" + name
    user.write(path, b"here")
    assert [entry.name for entry in user.list(folder)] == [name]
    user.move(path, path[:-1] + b"!")
    user.remove(path[:-1] + b"!")
    assert user.list(folder) == []


def test_a_name_of_256_octets_is_refused(user: Client, folder: bytes) -> None:
    with pytest.raises(KeeperError) as error:
        user.write(folder + b"/" + b"x" * 256, b"")
    assert error.value.code == errno.ENAMETOOLONG


REFUSED = [(b"/dev/zero", errno.EINVAL), (b"/usr", errno.EISDIR), (b"/no/such", errno.ENOENT), (b"", errno.ENOENT)]


@pytest.mark.parametrize(("path", "code"), REFUSED)
def test_only_regular_files_are_read(user: Client, path: bytes, code: int) -> None:
    with pytest.raises(KeeperError) as error:
        user.read(path)
    assert error.value.code == code


def test_a_fifo_is_refused_and_not_waited_for(user: Client, folder: bytes) -> None:
    user.run("mkfifo", folder + b"/fifo")
    for attempt in (lambda: user.read(folder + b"/fifo"), lambda: user.write(folder + b"/fifo", b"x")):
        with pytest.raises(KeeperError) as error:
            attempt()
        assert error.value.code == errno.EINVAL
    assert user.stat(folder + b"/fifo").kind == "p"


def test_links_dangle_loop_and_are_told_apart(user: Client, folder: bytes) -> None:
    user.make(folder + b"/loop", 2, folder + b"/loop")
    user.make(folder + b"/dangling", 2, b"nowhere\xff")
    assert user.stat(folder + b"/dangling", NOFOLLOW).target == b"nowhere\xff"
    for name, code in ((b"/loop", errno.ELOOP), (b"/dangling", errno.ENOENT)):
        with pytest.raises(KeeperError) as error:
            user.read(folder + name)
        assert error.value.code == code


def test_files_of_proc_are_read(user: Client) -> None:
    assert b"Uid:\t1000\t1000\t1000\t1000" in user.read(b"/proc/self/status")


def test_a_user_cannot_do_what_the_kernel_does_not_let_it(user: Client) -> None:
    attempts = (
        lambda: user.write(b"/etc/cloche-test", b"x" * 3_000_000),
        lambda: user.read(b"/etc/shadow"),
        lambda: user.remove(b"/etc/passwd"),
    )
    for attempt in attempts:
        with pytest.raises(KeeperError) as error:
            attempt()
        assert error.value.code in (errno.EACCES, errno.EROFS)


def test_a_folder_stands_before_what_is_in_it(user: Client, folder: bytes) -> None:
    user.write(folder + b"/a/b/c", b"x", flags=PARENTS)
    user.make(folder + b"/a/up", 2, b"..")
    names = [entry.name for entry in user.list(folder, 9)]
    assert sorted(names) == [b"a", b"a/b", b"a/b/c", b"a/up"]
    assert names.index(b"a") < names.index(b"a/b") < names.index(b"a/b/c")
    assert [entry.name for entry in user.list(folder, 1)] == [b"a"]


def test_a_tree_of_1000_levels_is_listed_and_removed(user: Client, folder: bytes) -> None:
    user.run("python3", "-c", "import os\nfor _ in range(1000): os.mkdir('d'*100); os.chdir('d'*100)", cwd=folder)
    assert len(user.list(folder, 2**32 - 1)) == 1000
    user.remove(folder + b"/" + b"d" * 100, RECURSIVE)
    assert user.list(folder) == []


def test_removing_never_follows_a_link(user: Client, folder: bytes) -> None:
    user.write(folder + b"/kept/file", b"x", flags=PARENTS)
    user.make(folder + b"/tree/link", 2, folder + b"/kept", flags=PARENTS)
    user.make(folder + b"/link", 2, folder + b"/kept")
    user.remove(folder + b"/tree", RECURSIVE)
    user.remove(folder + b"/link///", RECURSIVE)
    assert [entry.name for entry in user.list(folder, 2)] == [b"kept", b"kept/file"]


def test_a_full_folder_is_removed_only_on_request(user: Client, folder: bytes) -> None:
    user.write(folder + b"/a/b", b"x", flags=PARENTS)
    with pytest.raises(KeeperError) as error:
        user.remove(folder + b"/a")
    assert error.value.code == errno.ENOTEMPTY
    user.shell("chmod 0 a", cwd=folder)
    user.remove(folder + b"/a", RECURSIVE)
    assert user.list(folder) == []


def test_the_root_is_not_removed(user: Client) -> None:
    with pytest.raises(KeeperError) as error:
        user.remove(b"///", RECURSIVE)
    assert error.value.code == errno.EBUSY


def test_a_move_replaces_a_file(user: Client, folder: bytes) -> None:
    user.write(folder + b"/a", b"new")
    user.write(folder + b"/b/c", b"old", flags=PARENTS)
    user.move(folder + b"/a", folder + b"/b/c")
    assert user.read(folder + b"/b/c") == b"new"


def test_what_has_arrived_stays_when_a_writer_goes_away(user: Client, folder: bytes) -> None:
    payload = struct.pack("<I", 0) + user.user + struct.pack("<I", 0) + octets(folder + b"/part")
    with user.open(request(WRITE, payload) + frame(DATA, b"x" * 500_000)) as writer:
        writer.send(frame(DATA, b"y" * 500_000))
    wait_until(
        lambda: os.path.exists(folder + b"/part") and os.path.getsize(folder + b"/part") == 1_000_000, "it is stored"
    )


def test_changes_are_told_as_they_come(user: Client, folder: bytes) -> None:
    with user.watch(folder) as watch:
        user.write(folder + b"/file", b"x")
        user.move(folder + b"/file", folder + b"/other")
        user.remove(folder + b"/other")
        found = [watch.expect(EVENT) for _ in range(5)]
    assert [(event[0], event[5:]) for event in found] == [
        (1, b"file"), (2, b"file"), (4, b"file"), (5, b"other"), (3, b"other"),
    ]  # fmt: skip


def test_a_recursive_watch_sees_into_folders_that_are_made(user: Client, folder: bytes) -> None:
    with user.watch(folder, RECURSIVE) as watch:
        user.write(folder + b"/a/b/c", b"x", flags=PARENTS)
        seen = set[tuple[int, bytes]]()
        while (1, b"a/b/c") not in seen:
            event = watch.expect(EVENT)
            seen.add((event[0], event[5:]))
        assert {(1, b"a"), (1, b"a/b")} <= seen


def test_a_watched_folder_must_be_one(user: Client) -> None:
    for path, code in ((b"/etc/passwd", errno.ENOTDIR), (b"/no/such", errno.ENOENT)):
        with pytest.raises(KeeperError) as error, user.watch(path):
            pass
        assert error.value.code == code


def test_a_hundred_operations_at_once_are_all_done(boxed: Keeper, user: Client, folder: bytes) -> None:
    payload = struct.pack("<I", 0) + user.user + struct.pack("<I", 0)
    writers = [user.open(request(WRITE, payload + octets(folder + b"/%d" % i))) for i in range(100)]
    for writer in writers:
        writer.send(frame(DATA, b"x") + frame(72))
    for writer in writers:
        writer.expect(OK)
        writer.socket.close()
    assert len(user.list(folder)) == 100
    wait_until(lambda: boxed.descriptors() < 30, "nothing is left open")
