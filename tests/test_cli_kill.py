from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche.cli.main import main

if TYPE_CHECKING:
    from cloche import Sandbox


def test_a_signal_reaches_a_process(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    patient = box.commands.run(
        "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done", background=True
    )
    assert next(patient.output(follow=True)).data == b"ready\n"
    assert main(["kill", "box", str(patient.pid), "--signal", "int"]) == 0
    assert patient.wait().exit_code == 5
    other = box.commands.run("sleep 60 & sleep 60", background=True)
    assert main(["kill", "box", str(other.pid)]) == 0
    assert other.wait().signal == 9
    assert main(["kill", "box", "4000"]) == 125
    assert "`cloche ps box` lists them" in capfd.readouterr().err
    assert main(["kill", "box", str(other.pid), "-s", "NONSENSE"]) == 125


@pytest.mark.parametrize("signal", ["²", "0", "65", "99999999999999999999", "-5", "KILLED", ""])
def test_a_signal_that_there_is_not_is_refused(box: Sandbox, capfd: pytest.CaptureFixture[str], signal: str) -> None:
    del box
    assert main(["kill", "box", "2", f"--signal={signal}"]) == 125
    assert "a name like 'SIGINT' was expected" in capfd.readouterr().err


@pytest.mark.parametrize("pid", ["-1", "0", str(1 << 32), "99999999999999999999", "two"])
def test_a_number_that_no_process_has_is_refused(box: Sandbox, capfd: pytest.CaptureFixture[str], pid: str) -> None:
    del box
    assert main(["kill", "box", "--", pid]) == 2
    assert "a number of 1 to 4194304 was expected" in capfd.readouterr().err
