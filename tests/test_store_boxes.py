"""The rows of sandboxes: who may change which."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cloche.errors import InvalidRequest
from cloche.store.boxes import Boxes
from cloche.store.database import Database

if TYPE_CHECKING:
    from pathlib import Path

ID, OTHER = "a" * 20, "b" * 20


@pytest.fixture
def rows(tmp_path: Path) -> Boxes:
    return Boxes(Database(tmp_path))


def state(rows: Boxes, id: str = ID) -> str | None:
    row = rows.get(id)
    return row and row.state


def test_a_box_goes_through_its_states(rows: Boxes) -> None:
    rows.intend(ID, engine="host", name="one", is_bound=False)
    assert state(rows) == "creating"
    assert rows.mark_running(ID)
    assert [row.id for row in rows.present()] == [ID]
    assert rows.begin_delete(ID, "idle")
    assert state(rows) == "deleting"
    rows.mark_ended(ID)
    row = rows.get(ID)
    assert row is not None
    assert (row.state, row.reason, rows.present()) == ("ended", "idle", [])


def test_one_that_is_being_deleted_does_not_come_back(rows: Boxes) -> None:
    rows.intend(ID, engine="host", name=None, is_bound=False)
    rows.begin_delete(ID, "deleted")
    assert not rows.mark_running(ID)


def test_of_many_that_delete_it_one_is_told_that_it_did(rows: Boxes) -> None:
    rows.intend(ID, engine="host", name=None, is_bound=False)
    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(rows.begin_delete, [ID] * 8, ["deleted"] * 8))
    assert sum(told) == 1


def test_a_name_is_one_boxs_until_that_has_ended(rows: Boxes) -> None:
    rows.intend(ID, engine="host", name="one", is_bound=False)
    with pytest.raises(InvalidRequest, match=f"which the sandbox {ID} has"):
        rows.intend(OTHER, engine="host", name="one", is_bound=False)
    rows.begin_delete(ID, "deleted")
    rows.mark_ended(ID)
    rows.intend(OTHER, engine="host", name="one", is_bound=False)
    found = rows.named("one")
    assert found is not None
    assert found.id == OTHER


def test_one_without_a_row_gets_one_and_no_name_of_another(rows: Boxes) -> None:
    rows.intend(ID, engine="host", name="one", is_bound=False)
    row = rows.get(ID)
    assert row is not None
    rows.put(replace(row, id=OTHER))
    rows.put(replace(row, state="deleting"))
    assert [(row.id, row.name, row.state) for row in sorted(rows.present(), key=lambda row: row.id)] == [
        (ID, "one", "creating"),
        (OTHER, None, "creating"),
    ]


def test_what_ended_long_ago_is_forgotten(rows: Boxes, monkeypatch: pytest.MonkeyPatch) -> None:
    for id in (ID, OTHER):
        rows.intend(id, engine="host", name=None, is_bound=False)
        rows.mark_ended(id)
    rows.forget_old()
    assert state(rows) == "ended"
    monkeypatch.setattr("cloche.store.boxes.KEPT_ROWS", 1)
    rows.forget_old()
    assert [state(rows, id) for id in (ID, OTHER)].count(None) == 1
    later = time.time() + 40 * 86400
    monkeypatch.setattr(time, "time", lambda: later)
    rows.forget_old()
    assert [state(rows, id) for id in (ID, OTHER)] == [None, None]
