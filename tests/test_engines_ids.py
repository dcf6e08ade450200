"""Ranges of ids: each to one box at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from cloche.engines import ids

if TYPE_CHECKING:
    from pathlib import Path


def test_two_boxes_never_have_the_same_range(tmp_path: Path) -> None:
    names = [f"{number:020}" for number in range(0, 200 * ids.COUNT, ids.COUNT)]
    with ThreadPoolExecutor(16) as threads:
        firsts = list(threads.map(partial(ids.lease, tmp_path), names))
    assert len(set(firsts)) == len(names)
    assert all(first >= ids.FIRST and (first - ids.FIRST) % ids.SIZE == 0 for first in firsts)
    assert max(firsts) + ids.SIZE <= 1 << 31


def test_a_range_can_be_had_again_once_it_is_released(tmp_path: Path) -> None:
    first = ids.lease(tmp_path, "a" * 20)
    ids.release(tmp_path, "a" * 20)
    assert ids.lease(tmp_path, "a" * 20) == first


def test_a_box_cannot_release_the_range_of_another(tmp_path: Path) -> None:
    first = ids.lease(tmp_path, "a" * 20)
    ids.release(tmp_path, "b" * 20)
    assert ids.lease(tmp_path, "a" * 20) != first


def test_a_range_is_found_by_its_box_wherever_it_lies(tmp_path: Path) -> None:
    first = ids.lease(tmp_path, "a" * 20)
    assert ids.lease(tmp_path, "a" * 20) != first
    ids.release(tmp_path, "a" * 20)
    ids.release(tmp_path, "a" * 20)
    assert not list(tmp_path.iterdir())
