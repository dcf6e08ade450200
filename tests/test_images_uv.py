"""Python by uv: the program itself, with a build that the test makes of a Python of this machine."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche.errors import EngineError, RuntimeNotFound
from cloche.images.scratch import Scratch, make_scratch
from cloche.images.uv import get

if TYPE_CHECKING:
    from collections.abc import Iterator

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
FULL = f"{MINOR}.77"
SYSCONFIG = f"_sysconfigdata__linux_{os.uname().machine}-linux-gnu.py"
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "test", "tests", "site-packages", "dist-packages", "config-*", "idlelib"
)


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What uv is told of the builds that there are: one, of this Python, in an archive laid out as uv's are."""
    folder = tmp_path_factory.mktemp("build")
    tree = folder / "python"
    source = Path(sys.base_prefix)
    (tree / "bin").mkdir(parents=True)
    shutil.copy(source / f"bin/python{MINOR}", tree / "bin")
    for name in ("python", "python3"):
        (tree / "bin" / name).symlink_to(f"python{MINOR}")
    shutil.copytree(source / f"lib/python{MINOR}", tree / f"lib/python{MINOR}", ignore=LEFT_OUT, symlinks=True)
    for library in (source / "lib").glob(f"libpython{MINOR}*.so*"):
        shutil.copy(library, tree / "lib")
    (variables,) = (tree / f"lib/python{MINOR}").glob("_sysconfigdata*.py")
    variables.unlink()
    # Where uv's builds say they are, until uv has put them somewhere.
    told = '# system configuration generated and used by the sysconfig module\nbuild_time_vars = {"LIBDIR": "/install/lib"}\n'
    variables.with_name(SYSCONFIG).write_text(told)
    archive = folder / "python.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(tree, "python")
    machine = os.uname().machine
    row = {
        "name": "cpython",
        "arch": {"family": machine, "variant": None},
        "os": "linux",
        "libc": "gnu",
        "major": sys.version_info.major,
        "minor": sys.version_info.minor,
        "patch": 77,
        "prerelease": "",
        "url": archive.as_uri(),
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "variant": None,
        "build": "20260101",
    }
    (folder / "builds.json").write_text(json.dumps({f"cpython-{FULL}-linux-{machine}-gnu": row}))
    return folder / "builds.json"


@pytest.fixture
def scratch(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scratch]:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with make_scratch(home) as scratch:
        yield scratch


def test_a_build_is_whole_and_names_the_folder_where_a_box_sees_it(
    build: Path, scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(build))
    monkeypatch.setenv("HOME", str(tmp_path))
    got = get(MINOR, scratch, print)
    assert got.name == f"python-{FULL}"
    command = [got.folder / "bin/python3", "-I", "-c", "import sys, json; print(sys.prefix)"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == f"{got.folder}\n"
    told = (got.folder / f"lib/python{MINOR}" / SYSCONFIG).read_text()
    assert f"/opt/cloche/runtimes/python-{FULL}/lib" in told
    assert str(scratch.folder) not in told
    # uv would put links to it there.
    assert not list(tmp_path.rglob("python*"))


def test_a_build_that_is_not_what_uv_was_promised_is_refused(
    build: Path, scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {name: {**row, "sha256": "0" * 64} for name, row in json.loads(build.read_text()).items()}
    (tmp_path / "builds.json").write_text(json.dumps(wrong))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(tmp_path / "builds.json"))
    with pytest.raises(EngineError, match=r"could not be fetched: uv failed .*[Hh]ash"):
        get(MINOR, scratch, print)


def test_builds_out_of_reach_are_told_with_what_was_tried_and_what_else_helps(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", "http://127.0.0.1:9/builds")
    with pytest.raises(EngineError) as refusal:
        get("3.12", scratch, print)
    first, second = refusal.value.message.splitlines()
    assert first.startswith("python 3.12 could not be fetched: its builds could not be reached (")
    assert "tried http://127.0.0.1:9/builds/" in first
    assert second.startswith("What else helps: UV_PYTHON_INSTALL_MIRROR")
    assert "pyenv install 3.12, apt-get install python3, or an image that has it" in second


@pytest.mark.parametrize(("version", "there"), [("3.99", "3.11, 3.12, 3.13"), ("3.12.99", "3.12.0, 3.12.1")])
def test_a_version_that_is_not_there_is_refused_with_those_that_are(scratch: Scratch, version: str, there: str) -> None:
    with pytest.raises(RuntimeNotFound, match=f"there is no python {version} to add; there are .*{there}"):
        get(version, scratch, print)


def test_what_uv_says_may_be_no_text(scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uv").write_text("#!/bin/sh\nprintf 'error: \\377 failed' >&2; exit 1\n")
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(EngineError, match="uv failed \\(� failed\\)"):
        get("3.12", scratch, print)


def test_without_uv_there_is_advice(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "prefix", "/nowhere")
    with pytest.raises(EngineError, match=r"uv is not installed.*; pip install uv, pyenv install 3.12"):
        get("3.12", scratch, print)
