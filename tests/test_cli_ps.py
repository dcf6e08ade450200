from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cloche.cli.main import main

if TYPE_CHECKING:
    import pytest

    from cloche import Sandbox


def test_processes_are_listed_with_their_commands(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    command = box.commands.run(["python3", "-c", "import time; time.sleep(60)  # \x1b[2J"], background=True)
    ended = box.commands.run(["sleep", "0"], background=True)
    ended.wait()
    assert main(["ps", "box", "--json"]) == 0
    assert command.pid in [process["pid"] for process in json.loads(capfd.readouterr().out)]
    assert main(["ps", "box", "--all"]) == 0
    shown = capfd.readouterr().out
    assert "exit 0, background" in shown
    assert "\x1b" not in shown


def test_a_long_command_is_shortened_for_people_alone(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    box.commands.run(["sh", "-c", "sleep 60; :" + "x" * 100_000], background=True)
    assert main(["ps", "box", "--all"]) == 0
    assert "xxx… (100019 characters)" in capfd.readouterr().out
    assert main(["ps", "box", "--json"]) == 0
    assert "x" * 50_000 in capfd.readouterr().out
