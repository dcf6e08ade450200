from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from cloche import first_run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def run(**env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cloche.first_run"]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def test_the_first_run_shows_code_output_times_and_what_holds_it(home: Path) -> None:
    done = run(CLOCHE_HOME=str(home), PATH="/usr/bin:/bin", COLUMNS="100")
    assert done.returncode == 0, done.stderr
    assert "running as uid 1000." in done.stdout
    assert "Processes that I can see: 2" in done.stdout
    assert "Network interfaces: lo\n" in done.stdout
    assert "to make the first box" in done.stdout
    assert f"{first_run.MARKS['kernel']} memory_mb" in done.stdout
    assert done.stdout.count("\n") <= 50


def test_where_no_box_can_be_made_it_says_why_and_fails(tmp_path: Path) -> None:
    done = run(CLOCHE_HOME=str(tmp_path), CLOCHE_KEEPER="/nowhere/keeper", PATH="/usr/bin:/bin")
    assert done.returncode == 1
    assert done.stderr.startswith("Cloche cannot run code here yet: ")
    assert "Traceback" not in done.stderr


def test_nothing_is_coloured_where_nobody_sees_it(capsys: pytest.CaptureFixture[str]) -> None:
    first_run.show_heading("It took")
    assert capsys.readouterr().out == "\nIt took\n"
