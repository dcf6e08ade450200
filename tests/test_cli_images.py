"""`cloche images`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.cli.completion import candidates
from cloche.cli.main import main
from tests.test_sandboxes_removals import archive

if TYPE_CHECKING:
    from pathlib import Path

# A fixture of another file.
__all__ = ["archive"]


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> Path:
    return home


def test_an_image_is_added_used_listed_and_removed(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["images", "add", "small", str(archive)]) == 0
    assert capsys.readouterr().out == "added small with bash: cloche run --image small …\n"
    with Sandbox.create(image="small") as box:
        assert box.commands.run("id -u").stdout == "1000\n"
    assert main(["images"]) == 0
    head, host, small = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head == ["NAME", "RUNTIMES", "SIZE", "WHEN"]
    assert (host[0], small[:2], small[3]) == ("host", ["small", "bash"], "MB")
    assert main(["images", "remove", "small"]) == 0
    assert candidates(["images", "remove", ""]) == []


def test_an_archive_comes_from_standard_input(archive: Path) -> None:
    with archive.open("rb") as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as cat:
        command = [sys.executable, "-m", "cloche", "images", "add", "small", "-", "--json"]
        done = subprocess.run(command, stdin=cat.stdout, capture_output=True, timeout=60)
    answer = json.loads(done.stdout)
    assert (answer["name"], answer["runtimes"]) == ("small", ["bash"])
    assert answer["size_bytes"] > 1_000_000


def test_what_standard_input_gives_is_refused_as_a_file_is(home: Path) -> None:
    command = [sys.executable, "-m", "cloche", "images", "add", "small", "-"]
    done = subprocess.run(command, input=b"no archive" * 1000, capture_output=True, timeout=60)
    assert (done.returncode, b"no whole tar archive" in done.stderr) == (125, True)
    assert os.listdir(home / "images") == os.listdir(home / "scratch") == []


def test_one_that_is_in_use_stays(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["images", "add", "small", str(archive)]) == 0
    with Sandbox.create(image="small") as box:
        assert main(["images", "remove", "small"]) == 125
        assert f"in use by {box.id}" in capsys.readouterr().err
        assert candidates(["images", "remove", ""]) == ["small"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["remove", "host"], "this machine itself and cannot be removed"),
        (["remove", "nothing"], "there is host. Add one from a tar archive"),
        (["add", "host", "/dev/null"], "cannot be called 'host'"),
        (["add", "mine", "/nowhere"], "there is no file '/nowhere'"),
    ],
)
def test_what_makes_no_sense_is_told(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert main(["images", *words]) == 125
    assert message in capsys.readouterr().err


def test_an_image_that_is_not_there_leads_to_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--image", "mine", "-c", "1"]) == 125
    assert "cloche images add mine ARCHIVE" in capfd.readouterr().err
