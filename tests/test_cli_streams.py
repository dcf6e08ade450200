"""Closed standard files, and encodings that know few characters."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox

if TYPE_CHECKING:
    from pathlib import Path

CLOCHE = f"{sys.executable} -m cloche"


def call(line: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["sh", "-c", f"{CLOCHE} {line}"], capture_output=True, timeout=60)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("ls >&-", 125),
        ("ls --json >&- <&-", 125),
        ("ls >&- 2>&- <&-", 125),
        ("--help >&-", 125),
        ("run --help >&-", 125),
        ("run -c 'print(1)' >&-", 125),
        ("run -c 'pass' >&-", 0),
        ("run -c 'print(1)' 2>&- <&-", 0),
        ("run - <&-", 0),
        ("rm nobody 2>&-", 125),
        ("nonsense 2>&-", 2),
    ],
)
def test_what_is_closed_is_no_reason_for_a_traceback(home: Path, line: str, status: int) -> None:
    done = call(line)
    assert (done.returncode, b"Traceback" in done.stderr) == (status, False)
    if status == 125 and "2>&-" not in line:
        assert b"standard output is closed, so there is nowhere to write the answer" in done.stderr
    assert list((home / "boxes").glob("*")) == []


def test_a_box_whose_id_nobody_would_know_is_not_left_behind(home: Path) -> None:
    for line in ("create >&-", "create --name c >&- 2>&- <&-", "create --json >/dev/full"):
        assert call(line).returncode == 125
    assert list((home / "boxes").iterdir()) == []
    assert Sandbox.list() == []


def test_what_is_opened_later_does_not_become_an_output(home: Path) -> None:
    with Sandbox.create(name="box") as box:
        box.files.write("file", b"text")
        assert call(f"cp box:file {home}/file >&- 2>&- <&-").returncode == 0
    assert (home / "file").read_bytes() == b"text"


def test_what_an_encoding_does_not_know_is_escaped(home: Path) -> None:
    del home
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for words in (["exec", "--help"], ["rm", "ü"]):
        command = [sys.executable, "-m", "cloche", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert "Traceback" not in done.stderr
        assert "\\u2026" in done.stdout or "\\xfc" in done.stderr
