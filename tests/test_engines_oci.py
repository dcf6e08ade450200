"""The embedded engine on this machine's OCI runtimes."""

from __future__ import annotations

import os
import secrets
import string
from typing import TYPE_CHECKING

import pytest

from cloche.engines import oci
from cloche.engines.oci import RUN, OciEngine, default_engine
from cloche.errors import EngineError, InvalidRequest
from cloche.images.base import Image
from cloche.models import Limits, SandboxSpec

if TYPE_CHECKING:
    from pathlib import Path

RUNTIMES = ("crun", "runc")


def new_box(home: Path) -> tuple[str, Path]:
    id = "".join(secrets.choice(string.ascii_lowercase) for _ in range(20))
    folder = home / "boxes" / id
    folder.mkdir(parents=True)
    return id, folder


def empty_image(home: Path) -> Image:
    rootfs = home / "rootfs"
    rootfs.mkdir(exist_ok=True)
    return Image(name="empty", rootfs=rootfs)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_box_is_alive_until_it_is_deleted_and_then_nothing_of_it_is_left(home: Path, runtime: str) -> None:
    engine = OciEngine(runtime)
    id, folder = new_box(home)
    box = engine.create(id, folder, SandboxSpec(limits=Limits(disk_mb=16, inodes=1024)), empty_image(home))
    assert engine.is_alive(box)
    engine.delete(box)
    assert not engine.is_alive(box)
    assert list(folder.iterdir()) == []
    assert not (RUN / runtime / id).exists()
    assert id not in {os.readlink(path) for path in (RUN / "ids").iterdir() if path.is_symlink()}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_deleting_twice_is_fine(home: Path, runtime: str) -> None:
    engine = OciEngine(runtime)
    id, folder = new_box(home)
    box = engine.create(id, folder, SandboxSpec(), empty_image(home))
    engine.delete(box)
    engine.delete(box)


def test_a_runtime_that_fails_is_told_in_its_own_words_and_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home / "runtime"
    program.write_text("#!/bin/sh\necho 'no such luck' >&2\nexit 3\n")
    program.chmod(0o755)

    def find_that(_: str) -> str:
        return str(program)

    monkeypatch.setattr(oci, "find_program", find_that)
    id, folder = new_box(home)
    with pytest.raises(EngineError, match="no such luck"):
        OciEngine("crun").create(id, folder, SandboxSpec(), empty_image(home))
    assert list(folder.iterdir()) == []


def test_a_missing_runtime_is_told_with_the_command_that_installs_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_none(_: str) -> None: ...

    monkeypatch.setattr(oci, "find_program", find_none)
    id, folder = new_box(home)
    with pytest.raises(EngineError, match="apt-get install crun"):
        OciEngine("crun").create(id, folder, SandboxSpec(), empty_image(home))
    with pytest.raises(EngineError, match="runc is not installed"):
        default_engine()


def test_the_default_is_the_fastest_that_works() -> None:
    assert default_engine().name == "embedded:crun"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_fact_about_this_machine_is_in_order(home: Path, runtime: str) -> None:
    facts = OciEngine(runtime).check()
    assert [fact for fact in facts if not fact.ok] == []
    assert facts[-1].found == f"{runtime} starts one"


def test_a_workspace_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="an existing folder"):
        OciEngine("crun").refuse(SandboxSpec(workspace="/not/there", workspace_access="ro"))


def test_a_workspace_that_cannot_be_id_mapped_is_refused_with_what_helps(home: Path) -> None:
    id, folder = new_box(home)
    spec = SandboxSpec(workspace="/proc/sys", workspace_access="ro")
    with pytest.raises(EngineError, match=r"/proc/sys lies on a file system without id-mapped mounts.*; move it to"):
        OciEngine("crun").create(id, folder, spec, empty_image(home))
