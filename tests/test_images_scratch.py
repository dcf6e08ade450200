from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from cloche.images.scratch import make_scratch

if TYPE_CHECKING:
    from pathlib import Path

KILLED = """
import os, pathlib, signal, sys
from cloche.images.scratch import make_scratch
with make_scratch(pathlib.Path(sys.argv[1])) as scratch:
    (scratch.folder / "half").mkdir()
    (scratch.folder / "half/done").write_text("")
    if len(sys.argv) > 2:
        os.set_inheritable(scratch.lock, True)
        os.spawnlp(os.P_NOWAIT, "cat", "cat")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(home: Path) -> list[str]:
    return os.listdir(home / "scratch")


def test_it_is_for_its_owner_alone_and_gone_afterwards(tmp_path: Path) -> None:
    with make_scratch(tmp_path) as scratch:
        assert (tmp_path / "scratch").stat().st_mode & 0o777 == 0o700
        assert names(tmp_path) == [scratch.folder.name]
    assert names(tmp_path) == []


def test_what_a_kill_left_behind_is_swept_by_the_next_one_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, tmp_path])
    with make_scratch(tmp_path) as mine:
        (mine.folder / "mine").write_text("")
        with make_scratch(tmp_path) as other:
            assert set(names(tmp_path)) == {mine.folder.name, other.folder.name}
            assert (mine.folder / "mine").exists()


def test_it_is_in_use_while_a_child_of_who_was_killed_has_it_open(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, tmp_path, "with a child"], stdin=subprocess.PIPE) as process:
        process.wait()
        (left,) = names(tmp_path)
        with make_scratch(tmp_path):
            assert left in names(tmp_path)
        # The child ends with its input.
        assert process.stdin
        process.stdin.close()
    while left in names(tmp_path):
        with make_scratch(tmp_path):
            pass
