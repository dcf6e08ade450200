"""Finding sandboxes again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.errors import SandboxNotFound
from cloche.sandboxes import boxes, finding
from cloche.store.database import FILE, database_in

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("loss", ["removed", "broken"])
def test_without_the_database_sandboxes_are_found_at_once(home: Path, loss: str) -> None:
    box = Sandbox.create(name="mine")
    other = Sandbox.create()
    database_in(home).close()
    for path in home.glob(f"{FILE}*"):
        path.unlink()
    if loss == "broken":
        (home / FILE).write_bytes(b"nonsense" * 1000)
    assert finding.find("mine").box.id == box.id
    assert {record.box.id for record in finding.all_boxes()} == {box.id, other.id}
    assert box.kill()
    assert other.kill()


def test_one_that_has_ended_is_not_listed(home: Path) -> None:
    del home
    box = Sandbox.create(idle_timeout=0.1)
    deadline = time.monotonic() + 10
    while finding.all_boxes():
        assert time.monotonic() < deadline, "it is listed for ever"
        time.sleep(0.01)
    assert boxes.rows().get(box.id) is not None
    box.kill()


def test_what_never_was_is_not_found(home: Path) -> None:
    del home
    with pytest.raises(SandboxNotFound, match="never was"):
        finding.find("nothing")
