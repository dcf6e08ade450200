from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cloche import Sandbox
from cloche.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_box_is_listed_for_people_and_for_programs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del home
    with Sandbox.create(engine="host", name="one") as box:
        assert main(["ls"]) == 0
        assert f"{box.id}  one" in capsys.readouterr().out
        assert main(["ls", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["id"] == box.id
        assert main(["ls", "-q"]) == 0
        assert capsys.readouterr().out == f"{box.id}\n"
    assert main(["ls", "-q"]) == 0
    assert capsys.readouterr().out == ""
