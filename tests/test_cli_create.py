from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cloche import Sandbox
from cloche.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_create_prints_the_id_of_a_box_that_stays(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--name", "mine", "--memory", "64", "--idle-timeout", "0", "--env", "A=1", "--runtime", "bash"]
    assert main(["create", *words]) == 0
    box = Sandbox.connect(capfd.readouterr().out.strip())
    assert (box.name, box.limits.memory_mb, box.runtime.name) == ("mine", 64, "bash")
    assert box.commands.run("echo $A").stdout == "1\n"
    assert main(["create", "--name", "mine"]) == 125
    assert f"which the sandbox {box.id} has" in capfd.readouterr().err
    assert main(["rm", "mine"]) == 0
    assert not list((home / "boxes").iterdir())


def test_an_init_script_runs_first_and_must_succeed(
    home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "init.sh"
    script.write_text("echo from init > made")
    assert main(["create", "--json", "--init-script", str(script)]) == 0
    assert Sandbox.connect(json.loads(capfd.readouterr().out)["id"]).files.read("made") == "from init\n"
    script.write_text("echo oh no; exit 3")
    assert main(["create", "--init-script", str(script)]) == 125
    assert "oh no" in capfd.readouterr().err
    assert main(["create", "--init-script", "/nowhere"]) == 125
    assert main(["rm", "--all"]) == 0
    assert not list((home / "boxes").iterdir())
