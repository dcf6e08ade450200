"""Files both ways (product line 7)."""

from __future__ import annotations

import errno
import io
import os
from typing import TYPE_CHECKING

import pytest

from cloche.errors import FileError, InvalidRequest

if TYPE_CHECKING:
    from cloche import Sandbox


@pytest.mark.parametrize("content", ["hello", "", "ü€𝄞\n", b"\0\xff" * 1000])
def test_what_is_written_is_read(sandbox: Sandbox, content: str | bytes) -> None:
    octets = content.encode() if isinstance(content, str) else content
    assert sandbox.files.write("some/new/folder/file", content) == len(octets)
    assert sandbox.files.read("some/new/folder/file", "bytes") == octets


def test_text_comes_as_text(sandbox: Sandbox) -> None:
    sandbox.files.write("text", "grüße")
    assert sandbox.files.read("text") == "grüße"
    sandbox.files.write("octets", b"\xff")
    with pytest.raises(InvalidRequest, match="format='bytes'"):
        sandbox.files.read("octets")


def test_large_files_stream_both_ways(sandbox: Sandbox) -> None:
    pieces = [os.urandom(1 << 20) for _ in range(4)]
    assert sandbox.files.write("large", (piece for piece in pieces * 8)) == 32 << 20
    sizes = 0
    for piece in sandbox.files.read("large", "stream"):
        sizes += len(piece)
    assert sizes == 32 << 20
    assert sandbox.files.read("large", "bytes")[: 4 << 20] == b"".join(pieces)


def test_a_file_object_can_be_written_from(sandbox: Sandbox) -> None:
    assert sandbox.files.write("object", io.BytesIO(b"x" * 3_000_000)) == 3_000_000
    assert sandbox.files.write("object", io.StringIO("text")) == 4
    assert sandbox.files.read("object") == "text"


def test_appending_adds(sandbox: Sandbox) -> None:
    sandbox.files.write("log", "one ")
    sandbox.files.append("log", "two")
    assert sandbox.files.read("log") == "one two"


def test_an_exclusive_write_does_not_replace(sandbox: Sandbox) -> None:
    sandbox.files.write("once", "1", exclusive=True)
    with pytest.raises(FileError) as caught:
        sandbox.files.write("once", "2", exclusive=True)
    assert caught.value.errno == errno.EEXIST


def test_a_new_file_has_the_mode_asked_for(sandbox: Sandbox) -> None:
    sandbox.files.write("script", "#!/bin/sh\necho ran\n", mode=0o755)
    assert sandbox.files.stat("script").mode == 0o755
    assert sandbox.commands.run(["./script"]).stdout == "ran\n"


def test_files_belong_to_the_user_of_commands(sandbox: Sandbox) -> None:
    sandbox.files.write("mine", "x")
    assert sandbox.commands.run("test -O mine && echo mine").stdout == "mine\n"


def test_a_folder_is_listed_down_to_a_depth(sandbox: Sandbox) -> None:
    sandbox.files.write("tree/a/b/file", "12345")
    sandbox.commands.run("ln -s /etc tree/link").check()
    assert {entry.name for entry in sandbox.files.list("tree")} == {"a", "link"}
    found = {entry.path.partition("/tree/")[2]: entry for entry in sandbox.files.list("tree", depth=9)}
    assert {name: entry.kind for name, entry in found.items()} == {
        "a": "folder",
        "a/b": "folder",
        "a/b/file": "file",
        "link": "link",
    }
    assert found["link"].target == "/etc"
    assert found["a/b/file"].size == 5


def test_stat_follows_links_or_not(sandbox: Sandbox) -> None:
    sandbox.commands.run("ln -sf /usr usr-link").check()
    assert sandbox.files.stat("usr-link").kind == "folder"
    assert sandbox.files.stat("usr-link", follow=False).kind == "link"
    assert sandbox.files.stat("usr-link").name == "usr-link"


def test_existence_is_told(sandbox: Sandbox) -> None:
    sandbox.files.write("here", "")
    assert sandbox.files.exists("here")
    assert not sandbox.files.exists("not here")
    assert not sandbox.files.exists("here/below")


def test_moving_makes_missing_folders(sandbox: Sandbox) -> None:
    sandbox.files.write("from", "x")
    sandbox.files.move("from", "far/away/to")
    assert sandbox.files.read("far/away/to") == "x"
    assert not sandbox.files.exists("from")


def test_a_folder_is_removed_only_when_told_so(sandbox: Sandbox) -> None:
    sandbox.files.write("full/file", "x")
    with pytest.raises(FileError) as caught:
        sandbox.files.remove("full")
    assert caught.value.errno == errno.ENOTEMPTY
    sandbox.files.remove("full", recursive=True)
    assert not sandbox.files.exists("full")


def test_removing_does_not_follow_links(sandbox: Sandbox) -> None:
    sandbox.files.write("kept/file", "x")
    sandbox.commands.run("mkdir gone && ln -s ../kept gone/link").check()
    sandbox.files.remove("gone", recursive=True)
    assert sandbox.files.read("kept/file") == "x"


def test_making_a_folder_twice_is_fine(sandbox: Sandbox) -> None:
    sandbox.files.make_dir("new/deep/folder")
    sandbox.files.make_dir("new/deep/folder")
    assert sandbox.files.stat("new/deep/folder").kind == "folder"


@pytest.mark.parametrize(
    ("method", "arguments", "code"),
    [
        ("read", ("nowhere",), errno.ENOENT),
        ("read", ("/usr",), errno.EISDIR),
        (
            "write",
            (
                "/usr",
                "x",
            ),
            errno.EISDIR,
        ),
        ("list", ("a-file",), errno.ENOTDIR),
        ("list", ("nowhere",), errno.ENOENT),
        ("stat", ("a-file/below",), errno.ENOTDIR),
        ("remove", ("nowhere",), errno.ENOENT),
        (
            "move",
            (
                "nowhere",
                "x",
            ),
            errno.ENOENT,
        ),
        (
            "write",
            (
                "n" * 256,
                "x",
            ),
            errno.ENAMETOOLONG,
        ),
        ("read", ("loop",), errno.ELOOP),
    ],
)
def test_what_the_kernel_refuses_is_told_with_its_number(
    sandbox: Sandbox, method: str, arguments: tuple[str, ...], code: int
) -> None:
    sandbox.files.write("a-file", "")
    sandbox.commands.run("ln -sf loop loop")
    with pytest.raises(FileError) as caught:
        getattr(sandbox.files, method)(*arguments)
    assert caught.value.errno == code
    assert isinstance(caught.value, OSError)


def test_a_pipe_is_not_waited_for(sandbox: Sandbox) -> None:
    sandbox.commands.run("mkfifo pipe").check()
    with pytest.raises(FileError):
        sandbox.files.read("pipe")


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_a_path_that_makes_no_sense_is_refused(sandbox: Sandbox, path: str) -> None:
    with pytest.raises(InvalidRequest):
        sandbox.files.read(path)


@pytest.mark.parametrize("name", ["new\nline", "\udcff\udcfe", "n" * 255, "-rf", "a b", "ü", "'\"$`\\", " ", "..."])
def test_any_name_that_the_kernel_allows_works(sandbox: Sandbox, name: str) -> None:
    sandbox.files.write(f"names/{name}", "content")
    assert [entry.name for entry in sandbox.files.list("names")] == [name]
    assert sandbox.files.read(f"names/{name}") == "content"
    sandbox.files.remove(f"names/{name}")


def test_changes_are_watched(sandbox: Sandbox) -> None:
    sandbox.files.make_dir("watched")
    with sandbox.files.watch("watched") as watch:
        sandbox.files.write("watched/file", "x")
        assert (watch.next(timeout=10).kind, watch.next(timeout=10).kind) == ("made", "written")
        sandbox.files.remove("watched/file")
        while (event := watch.next(timeout=10)).kind != "removed":
            assert event.kind in ("written", "attributes")
        assert event.name == "file"
        with pytest.raises(TimeoutError):
            watch.next(timeout=0.05)


def test_changes_further_down_are_watched_too(sandbox: Sandbox) -> None:
    sandbox.files.make_dir("deep/er")
    with sandbox.files.watch("deep", recursive=True) as watch:
        sandbox.files.write("deep/er/file", "x")
        assert watch.next(timeout=10).name == "er/file"
