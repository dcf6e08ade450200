from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cloche.cli.tables import print_json, print_table

if TYPE_CHECKING:
    import pytest


def test_columns_are_as_wide_as_what_is_in_them_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A", "B"), [("1", "long\x1b[2Jer"), ("three", "")])
    assert capsys.readouterr().out == "A      B\n1      long�[2Jer\nthree\n"


def test_wide_characters_take_two_columns_and_marks_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A", "B"), [("日本", "1"), ("a\u0301e\u0301", "2"), ("ツ", "3"), ("three", "4")])
    assert capsys.readouterr().out.splitlines() == [
        "A      B",
        "日本   1",
        "a\u0301e\u0301     2",
        "ツ     3",
        "three  4",
    ]


def test_json_takes_what_it_does_not_know_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"path": frozenset((1,))})
    assert json.loads(capsys.readouterr().out) == {"path": "frozenset({1})"}
