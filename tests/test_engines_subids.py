"""The ids of an ordinary user, as text and as maps."""

from __future__ import annotations

import pytest

from cloche.engines.subids import LAST, NOBODY, SLICE, USER, make_map, make_rows, parse_ranges

TEXT = "alice:100000:65536\nbob:165536:65536\n1001:300000:2048\nalice:x:1\nbroken\n\n"


def test_the_ranges_of_one_user_are_found_by_name_and_by_number() -> None:
    assert parse_ranges(TEXT, ["alice", "1001"]) == [(100000, 65536), (300000, 2048)]
    assert parse_ranges(TEXT, ["carol", "1002"]) == []


@pytest.mark.parametrize("is_user", [True, False])
def test_every_id_of_the_slice_is_used_once_and_none_beyond(is_user: bool) -> None:
    rows = make_rows(100_000, 1001, is_user=is_user)
    outside = [number for _, first, count in rows for number in range(first, first + count) if first != 1001]
    inside = [number for first, _, count in rows for number in range(first, first + count)]
    assert len(set(outside)) == len(outside)
    assert set(outside) <= set(range(100_000, 100_000 + SLICE))
    assert inside == [*range(LAST + 1), NOBODY]


@pytest.mark.parametrize(("is_user", "who"), [(True, USER), (False, 0)])
def test_the_caller_is_one_of_them(is_user: bool, who: int) -> None:
    assert (who, 1001, 1) in make_rows(100_000, 1001, is_user=is_user)


def test_a_map_is_words_for_newuidmap() -> None:
    assert make_map([(0, 1001, 1), (1, 100_000, 2046)]) == "0 1001 1 1 100000 2046"
