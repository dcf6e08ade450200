from __future__ import annotations

import pytest

from cloche.images.sources import either, list_versions

THERE = {(3, 11, 2), (3, 9, 10), (3, 9, 9), (22, 1, 0)}


@pytest.mark.parametrize(
    ("wanted", "parts", "listed"),
    [
        ("3.9.77", 2, "3.9.9, 3.9.10"),
        ("3.14", 2, "3.9, 3.11, 22.1"),
        ("22.9", 1, "22.1.0"),
        ("5", 1, "3, 22"),
        ("3", 2, "3.9, 3.11, 22.1"),
    ],
)
def test_versions_near_the_wanted_one_are_listed_in_full_and_else_all_in_short(
    wanted: str, parts: int, listed: str
) -> None:
    assert list_versions(THERE, wanted, parts) == listed


def test_nothing_is_told_as_such() -> None:
    assert list_versions([], "3", 1) == "none at all"


def test_a_choice_is_told_in_words() -> None:
    assert either("a") == "a"
    assert either("a", "b", "c") == "a, b, or c"
