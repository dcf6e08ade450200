from __future__ import annotations

import pytest

from cloche.cli.terminal import clean


@pytest.mark.parametrize("text", ["plain", "übergröße", "日本", "a b"])
def test_what_is_harmless_stays(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    "text", ["\x1b", "\x07", "\n", "\r", "\x9b", "\u202e", "\u2066", "\u200f", "\udc9b", "\u2028", "\x7f"]
)
def test_what_moves_or_hides_is_replaced(text: str) -> None:
    assert clean(f"a{text}b") == "a�b"
