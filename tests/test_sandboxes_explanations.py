"""What is told of a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.sandboxes import boxes
from cloche.sandboxes.explanations import explain

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("engine", "isolated", "reason"),
    [
        (None, True, "is the first that makes boxes on this machine"),
        ("embedded:runc", True, "was asked for by name"),
        ("host", False, "nothing isolates what runs there"),
    ],
)
def test_where_it_runs_has_a_reason(home: Path, engine: str | None, isolated: bool, reason: str) -> None:
    del home
    with Sandbox.create(engine=engine, lifetime=60) as box:
        found = explain(boxes.find(box.id))
        assert found.isolated is isolated
        assert len(found.why) == 1
        assert reason in found.why[0]
        assert bool(found.mounts) is isolated
        assert found.ends_at == found.created + 60


def test_of_one_that_has_ended_no_mounts_are_told(home: Path) -> None:
    del home
    with Sandbox.create() as box:
        record = boxes.find(box.id)
        boxes.delete(record)
        assert explain(record).mounts == ()
