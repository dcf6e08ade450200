"""`cloche setup`; tests/rootless does it for real."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cloche.cli.main import main

if TYPE_CHECKING:
    import pytest


def test_checking_changes_nothing_and_says_what_root_would_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "nobody", "--check"]) == 1
    said = capsys.readouterr().out
    assert "would be done by root: usermod --add-subuids" in said
    assert said.endswith("Once, as root: cloche setup nobody\n")


def test_a_program_gets_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "nobody", "--check", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["user"], answer["ready"]) == ("nobody", False)
    assert {"newuidmap", "user ids", "cgroups"} <= {step["name"] for step in answer["steps"]}


def test_root_needs_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "root"]) == 125
    assert "root needs no preparation" in capsys.readouterr().err
