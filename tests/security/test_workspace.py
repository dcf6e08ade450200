"""A folder of this machine that a box is shown: what it may do there, and nowhere else (checklist F)."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche.errors import ClocheError, InvalidRequest
from tests.security.lab import attack, run_python

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche import Sandbox

OWNER = 4321
STRANGER = 4322


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with files of theirs, one of a stranger, one of root, and links that lead out."""
    place = tmp_path / "work"
    place.mkdir()
    (place / "mine").write_text("mine")
    os.chown(place / "mine", OWNER, OWNER)
    for name, owner in (("stranger", STRANGER), ("root", 0)):
        (place / name).write_text("closed")
        (place / name).chmod(0o600)
        os.chown(place / name, owner, owner)
    (tmp_path / "outside").write_text("outside")
    (place / "link").symlink_to(tmp_path / "outside")
    (place / "up").symlink_to("../outside")
    (place / "shadow").symlink_to("/etc/shadow")
    os.chown(place, OWNER, OWNER)
    return place


@pytest.mark.promise("workspace")
@pytest.mark.parametrize("user", ["user", "root"])
def test_what_a_box_makes_belongs_to_the_folders_owner(make: Callable[..., Sandbox], folder: Path, user: str) -> None:
    box = make(workspace=f"{folder}:rw", user=user)
    box.commands.run("mkdir made && echo x > made/file && ln -s file made/link && mkfifo made/pipe").check()
    box.files.write("/workspace/made/by-keeper", "x")
    made = [folder / "made", *(folder / "made").iterdir()]
    assert len(made) == 5
    assert {(os.lstat(path).st_uid, os.lstat(path).st_gid) for path in made} == {(OWNER, OWNER)}


@pytest.mark.promise("workspace")
@pytest.mark.parametrize("user", ["user", "root"])
def test_files_of_others_stay_closed(make: Callable[..., Sandbox], folder: Path, user: str) -> None:
    box = make(workspace=f"{folder}:rw", user=user)
    assert box.files.read("/workspace/mine") == "mine"
    for name in ("stranger", "root"):
        result = box.commands.run(f"cat {name}; echo x >> {name}; chmod 777 {name}; chown 1000 {name}")
        assert "closed" not in result.stdout
        found = (folder / name).stat()
        assert (folder / name).read_text() == "closed"
        assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o600, STRANGER if name == "stranger" else 0)


@pytest.mark.parametrize("user", ["user", "root"])
def test_files_cannot_be_given_to_others(make: Callable[..., Sandbox], folder: Path, user: str) -> None:
    box = make(workspace=f"{folder}:rw", user=user)
    for owner in ("0", "1", "1001", "65534"):
        box.commands.run(f"cp mine gift; chown {owner}:{owner} gift; chgrp {owner} gift")
        if (folder / "gift").exists():
            assert ((folder / "gift").stat().st_uid, (folder / "gift").stat().st_gid) == (OWNER, OWNER)


@pytest.mark.promise("workspace")
@pytest.mark.parametrize("access", ["ro", "rw"])
def test_links_in_a_workspace_lead_nowhere_outside(make: Callable[..., Sandbox], folder: Path, access: str) -> None:
    box = make(workspace=f"{folder}:{access}")
    found = box.commands.run("cat link up shadow ../../outside; ls -d .. | head -3; cat /workspace/../outside")
    assert "outside" not in found.stdout
    assert "root:" not in found.stdout


@pytest.mark.promise("workspace")
def test_read_only_is_read_only(make: Callable[..., Sandbox], folder: Path) -> None:
    for user in ("user", "root"):
        box = make(workspace=f"{folder}:ro", user=user)
        before = {path.name: os.lstat(path) for path in folder.iterdir()}
        box.commands.run(
            "echo x > new; echo x >> mine; rm -f mine; mv mine moved; chmod 777 . mine; touch -d 1990-1-1 mine; ln mine hard; setfattr -n user.a -v b mine"
        )
        after = {path.name: os.lstat(path) for path in folder.iterdir()}
        assert {name: (s.st_mode, s.st_mtime_ns, s.st_nlink) for name, s in before.items()} == {
            name: (s.st_mode, s.st_mtime_ns, s.st_nlink) for name, s in after.items()
        }
        assert (folder / "mine").read_text() == "mine"


def test_without_a_workspace_there_is_none(sandbox: Sandbox) -> None:
    assert not sandbox.files.exists("/workspace")


@pytest.mark.promise("workspace")
@pytest.mark.parametrize("user", ["user", "root"])
def test_no_setuid_file_is_made_on_this_machine(make: Callable[..., Sandbox], folder: Path, user: str) -> None:
    box = make(workspace=f"{folder}:rw", user=user)
    result = attack(box, "set_id", "/workspace")
    assert result.check().stdout == ""
    for mode in (0o4755, 0o2755, 0o6777):
        for name in ("file", "folder"):
            try:
                box.files.write("/workspace/file", "x", mode=mode) if name == "file" else box.files.make_dir(
                    "/workspace/f", mode=mode
                )
            except ClocheError:
                continue
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert files
    assert [path for path in files if path.stat().st_mode & 0o6000] == []


def test_a_setuid_file_of_the_workspace_has_no_effect(make: Callable[..., Sandbox], folder: Path) -> None:
    program = folder / "id"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    os.chown(program, OWNER, OWNER)
    program.chmod(0o6755)
    box = make(workspace=f"{folder}:ro", user="root")
    assert "euid" not in box.commands.run(["/workspace/id"], user="user").check().stdout


def test_devices_of_the_workspace_cannot_be_used(make: Callable[..., Sandbox], folder: Path) -> None:
    os.mknod(folder / "node", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.chown(folder / "node", OWNER, OWNER)
    for access in ("ro", "rw"):
        assert make(workspace=f"{folder}:{access}").commands.run("head -c1 node").exit_code != 0


def test_what_is_mounted_below_the_workspace_is_not_shown(make: Callable[..., Sandbox], folder: Path) -> None:
    box = make(workspace=f"{folder}:rw")
    assert [line for line in box.files.read("/proc/self/mountinfo").splitlines() if " /workspace/" in line] == []


@pytest.mark.parametrize("place", ["/", "//", "/usr/..", "relative", "", "/etc/passwd", "/nowhere"])
def test_what_is_no_folder_to_show_is_refused(engine: str, place: str) -> None:
    from cloche import Sandbox

    with pytest.raises(InvalidRequest):
        Sandbox.create(engine=engine, workspace=place)


@pytest.mark.promise("workspace")
def test_a_link_that_a_box_swaps_in_is_not_followed(engine: str, folder: Path, tmp_path: Path) -> None:
    """Between the check of a path and its mount, whoever can write above it may put a link there."""
    from cloche.engines import engine_named
    from cloche.errors import EngineError
    from cloche.sandboxes import boxes
    from cloche.sandboxes.specs import make_spec

    (folder / "sub").mkdir()
    spec = make_spec(limits={}, engine=engine, workspace=f"{folder}/sub:rw")
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to("/root")
    assert engine_named(engine).refuse(spec) is None
    with pytest.raises(EngineError, match="sub"):
        boxes.create(spec)


def test_a_program_inside_cannot_tell_where_the_workspace_lies(make: Callable[..., Sandbox], folder: Path) -> None:
    box = make(workspace=f"{folder}:rw")
    source = "import os; print(os.path.realpath('/workspace'), os.readlink('/proc/self/cwd'))"
    assert run_python(box, source).check().stdout == "/workspace /workspace\n"
