"""What of a box is on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.doctor.traces import marked_processes, traces_of, wait_until_gone

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("engine", ["embedded:crun", "embedded:runc"])
def test_a_box_that_is_there_has_traces_of_every_kind_and_one_that_is_gone_has_none(home: Path, engine: str) -> None:
    with Sandbox.create(engine=engine) as box:
        found = " ".join(traces_of(box.id))
        assert all(kind in found for kind in ("cgroup /", "loop device loop", f"{home}/boxes/", "ids in /"))
        assert f"/run/cloche/{engine.partition(':')[2]}/{box.id}" in found
    assert wait_until_gone(lambda: traces_of(box.id)) == []


def test_what_stays_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloche.doctor.traces.SECONDS", 0.05)
    assert wait_until_gone(lambda: ["a file"]) == ["a file"]


def test_processes_are_found_by_a_word_on_their_command_line(box: Sandbox) -> None:
    assert marked_processes("a-word-of-its-own") == []
    command = box.commands.run(["sh", "-c", "read line; :", "a-word-of-its-own"], background=True, stdin=True)
    found = wait_until_gone(lambda: [] if marked_processes("a-word-of-its-own") else ["not yet"])
    assert found == []
    command.kill()
