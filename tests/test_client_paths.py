"""Paths and entries of a sandbox."""

from __future__ import annotations

import pytest

from cloche.client.paths import absolute, to_entry, to_octets, to_text
from cloche.errors import InvalidRequest
from cloche.link import frames


def test_octets_that_are_no_text_come_and_go() -> None:
    assert to_octets(to_text(b"a\xff\n")) == b"a\xff\n"


@pytest.mark.parametrize(("path", "full"), [("a", "/home/user/a"), ("/a", "/a"), (".", "/home/user/.")])
def test_a_relative_path_is_below_where_work_starts(path: str, full: str) -> None:
    assert absolute(path, "/home/user") == full


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_a_path_that_makes_no_sense_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest):
        absolute(path, "/")


def test_a_character_that_no_name_has_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no file name has"):
        to_octets("\ud800")


def test_an_entry_is_put_in_words() -> None:
    frame = frames.Entry(ord("l"), 0o120777, 1, 2, 3, 1_500_000_000, 4, 1, b"sub/name", b"target")
    entry = to_entry(frame, "/home")
    assert (entry.name, entry.path, entry.kind, entry.mode) == ("name", "/home/sub/name", "link", 0o777)
    assert (entry.modified, entry.target) == (1.5, "target")
