"""Where a sandbox's output goes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.cli.main import main
from cloche.cli.outlet import MOST_COLLECTED
from tests.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

CLOCHE = [sys.executable, "-m", "cloche"]


def test_on_a_terminal_output_is_filtered_unless_it_is_wanted_raw(box: Sandbox) -> None:
    with Screen([*CLOCHE, "exec", box.id, "--", r"printf '\033[2Jtext\033[32m'"]) as screen:
        assert screen.wait() == 0
    assert screen.seen == "text\x1b[32m\x1b[0m"
    with Screen([*CLOCHE, "exec", box.id, "--raw", "--", r"printf '\033[2Jtext'"]) as screen:
        assert screen.wait() == 0
    assert screen.seen == "\x1b[2Jtext"


def test_elsewhere_each_octet_passes_also_where_the_reader_is_slow_and_never_blocks(box: Sandbox) -> None:
    command = [*CLOCHE, "exec", box.id, "--output", "0", "--", "head -c 3000000 /dev/zero | tr '\\0' '\\377'"]
    reading, writing = os.pipe2(os.O_NONBLOCK)
    with subprocess.Popen(command, stdout=writing) as process:
        os.close(writing)
        os.set_blocking(reading, True)
        with open(reading, "rb") as file:
            assert file.read() == b"\xff" * 3_000_000
        assert process.wait(20) == 0


@pytest.mark.parametrize("output", ["0", str(MOST_COLLECTED + 1)])
def test_json_never_holds_more_than_fits(home: Path, capfd: pytest.CaptureFixture[str], output: str) -> None:
    words = ["--output", output, "--json"]
    assert main(["run", *words, "-c", "while True: print('x' * 100000)"]) == 125
    assert f"set --output to {MOST_COLLECTED} at most, or leave out --json" in capfd.readouterr().err
    assert not list(home.glob("boxes/*"))
    with Sandbox.create(name="box", output_bytes=0):
        for own in (words, ["--json"]):
            assert main(["exec", "box", *own, "--", "yes"]) == 125
            assert "and JSON holds all of it at once" in capfd.readouterr().err
        assert main(["exec", "box", "--output", str(MOST_COLLECTED), "--json", "--", "echo x"]) == 0
