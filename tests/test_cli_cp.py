from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.cli.main import main
from tests.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a file, a folder and a link in it."""
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / "inner" / "file").write_bytes(b"\0\xff")
    (tree / "link").symlink_to("/etc/shadow")
    return tree


def test_a_file_goes_in_and_comes_out(box: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\0\xff")
    assert main(["cp", f"{tmp_path}/file", "box:made"]) == 0
    assert main(["cp", f"{tmp_path}/file", f"{box.id}:/tmp"]) == 0
    assert box.files.read("made", "bytes") == box.files.read("/tmp/file", "bytes") == b"\0\xff"
    assert main(["cp", "box:/tmp/file", f"{tmp_path}/back"]) == 0
    assert main(["cp", "box:made", str(tmp_path)]) == 0
    assert (tmp_path / "back").read_bytes() == (tmp_path / "made").read_bytes() == b"\0\xff"


def test_a_folder_goes_with_all_that_is_in_it_and_no_link_is_followed(box: Sandbox, tree: Path) -> None:
    assert main(["cp", str(tree), "box:a/b"]) == 0
    assert main(["cp", str(tree), "box:a/b"]) == 0
    assert [entry.path for entry in box.files.list("a/b/tree", depth=2) if entry.kind == "file"] == [
        "/home/user/a/b/tree/inner/file"
    ]
    assert main(["cp", "box:a/b/tree", str(tree.parent / "back")]) == 0
    assert (tree.parent / "back" / "inner" / "file").read_bytes() == b"\0\xff"
    assert str((tree.parent / "back" / "link").readlink()) == "/etc/shadow"


def test_from_one_box_to_another(box: Sandbox, tree: Path) -> None:
    with Sandbox.create(name="other") as other:
        box.files.write("file", b"\0\xff")
        box.files.upload(tree, "tree")
        assert main(["cp", "box:file", "other:"]) == 0
        assert main(["cp", "box:tree", "other:there"]) == 0
        assert other.files.read("file", "bytes") == other.files.read("there/inner/file", "bytes") == b"\0\xff"


def test_standard_streams_are_ends_as_well(box: Sandbox, tree: Path) -> None:
    def call(*words: str, input: bytes = b"") -> bytes:
        command = [sys.executable, "-m", "cloche", "cp", *words]
        return subprocess.run(command, input=input, capture_output=True, check=True).stdout

    call("-", "box:file", input=b"\0\xff")
    assert call("box:file", "-") == b"\0\xff"
    box.files.upload(tree, "tree")
    archive = call("box:tree", "-")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert set(tar.getnames()) == {"inner", "inner/file", "link"}
    call("--unpack", "-", "box:unpacked", input=archive)
    assert box.files.read("unpacked/inner/file", "bytes") == b"\0\xff"


def test_a_device_stays_one_and_our_own_output_is_an_end_as_well(box: Sandbox, tmp_path: Path) -> None:
    device = tmp_path / "null"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    box.files.write("file", b"text")
    assert main(["cp", "box:file", str(device)]) == 0
    assert stat.S_ISCHR(device.stat().st_mode)
    command = [sys.executable, "-m", "cloche", "cp", "box:file", "/dev/stdout"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"text"


def test_a_terminal_shows_a_file_filtered_whatever_it_is_called(box: Sandbox) -> None:
    box.files.write("file", b"\x1b[2Jtext")
    command = [sys.executable, "-m", "cloche", "cp", "box:file"]
    with Screen([*command, "/dev/stdout"]) as screen:
        assert screen.wait() == 0
    assert screen.seen == "text"
    with Screen([*command, "/dev/tty"]) as screen:
        assert screen.wait() == 125
    assert "'/dev/tty' is a terminal; - shows it" in screen.seen
    with Screen([*command, "/dev/tty", "--raw"]) as screen:
        assert screen.wait() == 0
    assert screen.seen == "\x1b[2Jtext"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b"], "expected ID:path for one"),
        (["box:nothing", "."], "'/home/user/nothing': No such file"),
        (["box:pipe", "x"], "'/home/user/pipe' is a pipe; a file or a folder was expected"),
        (["box:pipe", "-"], "'pipe' is a pipe; a file or a folder was expected"),
        (["box:pipe", "box:x"], "'pipe' is a pipe; a file or a folder was expected"),
        (["box:/dev/null", "x"], "'/dev/null' is a device"),
        (["box:/etc/ssl", "x", "--max-entries", "0"], "entries; --max-entries is 0"),
        (["box:/etc/passwd", "x", "--max-bytes", "3"], "takes more than --max-bytes allows; raise it"),
        (["./nothing", "box:x"], "'./nothing' can't be read"),
        (["box:/", "."], "name the whole target"),
        (["nobody:x", "."], "there is no sandbox 'nobody'"),
        (["box:.bashrc", "/nowhere/x"], "can't be written"),
        (["box:.bashrc", ""], "one of the two is ''; expected a path here, ID:path"),
        (["--unpack", "box:x", "."], "--unpack needs an archive here"),
    ],
)
def test_what_cannot_be_is_told(
    box: Sandbox,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    box.commands.run("touch .bashrc; mkfifo pipe").check()
    assert main(["cp", *words]) == 125
    assert message in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
