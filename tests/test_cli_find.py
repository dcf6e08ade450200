from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cloche.cli.find import find_record
from cloche.errors import InvalidRequest, SandboxNotFound
from cloche.sandboxes import boxes
from cloche.sandboxes.specs import make_spec
from cloche.sandboxes.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cloche.sandboxes.records import Record


@pytest.fixture
def record(home: Path) -> Iterator[Record]:
    del home
    record = boxes.create(make_spec(limits={}, engine="host", name="mine"))
    yield record
    boxes.delete(record)


def test_an_id_its_beginning_and_a_name_all_find_it(record: Record) -> None:
    for word in (record.box.id, record.box.id[:8], "mine"):
        assert find_record(word) == record


def test_a_beginning_that_two_have_is_refused_with_both(record: Record) -> None:
    row = boxes.rows().get(record.box.id)
    assert row
    twin = row.id[:4] + "0" * 16
    sweep()  # the next one would remove the twin, which is nothing but a row
    boxes.rows().put(replace(row, id=twin, created=row.created + 1))
    with pytest.raises(InvalidRequest, match=f"2 ids: {row.id}, {twin}"):
        find_record(row.id[:4])


@pytest.mark.parametrize("word", ["", "nobody", "..", "../x", "a" * 20])
def test_what_is_not_there_is_told_with_the_next_step(record: Record, word: str) -> None:
    del record
    with pytest.raises(SandboxNotFound, match="`cloche ls` lists"):
        find_record(word)
