from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cloche.cli.main import main

if TYPE_CHECKING:
    import pytest

    from cloche import Sandbox


def test_boxes_are_removed_and_what_is_not_there_is_told(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["rm", "nobody", "box"]) == 125
    captured = capfd.readouterr()
    assert captured.out == f"{box.id}\n"
    assert "there is no sandbox 'nobody'" in captured.err
    assert main(["rm"]) == main(["rm", "box", "--all"]) == 2
    assert main(["rm", "--all", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"removed": [], "errors": []}
