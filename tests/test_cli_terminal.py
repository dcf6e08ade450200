from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloche.cli.terminal import BELL, RESTORED, TerminalFilter, clean
from tests.screen import Screen


def shown(*pieces: bytes, screen: bool = False) -> str:
    found = TerminalFilter(screen=screen)
    return "".join(map(found.feed, pieces)) + found.finish().removesuffix(RESTORED if screen else "\x1b[0m")


@pytest.mark.parametrize("text", ["plain", "übergröße", "日本", "a b"])
def test_what_is_harmless_stays(text: str) -> None:
    assert clean(text) == text
    assert shown(text.encode()) == text


@pytest.mark.parametrize(
    "text", ["\x1b", "\x07", "\n", "\r", "\x9b", "\u202e", "\u2066", "\u200f", "\udc9b", "\u2028", "\x7f"]
)
def test_what_moves_or_hides_is_replaced(text: str) -> None:
    assert clean(f"a{text}b") == "a�b"


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"\x1b[1;31mred\x1b[0m\tcell\n", "\x1b[1;31mred\x1b[0m\tcell\n"),
        (b"10%\r20%\r\nend", "10%\n20%\nend"),
        (b"a\x1b[2J\x1b[1;1Hb", "ab"),
        (b"a\x1b]0;title\x07b\x1b]52;c;QQ==\x1b\\c", "abc"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bPq#0\x1b\\a\x1b^x\x1b\\b\x1b_y\x1b\\c\x1bXz\x1b\\", "abc"),
        (b"a\x1b]0;never ended\nb", "a\nb"),
        (b"\x1bcreset\x1b7\x1b(0\x0eq", "reset�q"),
        (b"\x9b2Ja\xc2\x9b2Jb", "�2Ja�2Jb"),
        ("a\u202eb\u2066c\u200bd\ufeff".encode(), "a�b�c�d�"),
        (b"\x1b[6n\x1b[c\x1b[>q\x1b[21t\x1b[5i", ""),
        (b"\xff\xfe\xc3", "���"),
        (f"{BELL} cloche: all is well".encode(), "� cloche: all is well"),
        ("👩\u200d🚀".encode(), "👩\u200d🚀"),
    ],
)
def test_of_output_a_terminal_gets_lines_and_colours_only(octets: bytes, text: str) -> None:
    assert shown(octets) == text
    # The same comes out however it is cut.
    assert shown(*(octets[at : at + 1] for at in range(len(octets)))) == text


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"\x1b[?1049h\x1b[2J\x1b[H\x1b[10;3Hx\x08\x1b[K", "\x1b[?1049h\x1b[2J\x1b[H\x1b[10;3Hx\x08\x1b[K"),
        (b"\x1b(0lqk\x1b(B\x1b7\x1b8\x1bM\x0e\x0f\r\n", "\x1b(0lqk\x1b(B\x1b7\x1b8\x1bM\x0e\x0f\r\n"),
        (b"\x1b[?1002;1006h\x1b[?2004h", "\x1b[?1002;1006h\x1b[?2004h"),
        (b"\x1b[6n\x1b[c\x1b[?6n\x1b[>c\x1b[=c\x1b[21t\x1b[5i\x1b[?996n\x1b[x\x1b[?1$p\x1bZ", ""),
        (b"\x1b]2;title\x07\x1b]52;c;?\x07\x1bP+q544e\x1b\\\x1b_G\x1b\\\x1bc\x1b[!p\x1b[?3h", ""),
        (b"\x1b[99999b", ""),
    ],
)
def test_a_program_with_the_screen_may_draw_and_not_ask(octets: bytes, text: str) -> None:
    assert shown(octets, screen=True) == text


def test_colours_and_modes_end_with_the_output() -> None:
    colours, screen = TerminalFilter(), TerminalFilter(screen=True)
    colours.feed(b"\x1b[31m")
    assert colours.finish() == "\x1b[0m"
    assert "\x1b[?1049l" in screen.finish()
    assert TerminalFilter().finish() == ""


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"\x1b", b"\x1b[", b"\x1b]", b"m", b"\x9b", b"\\", b"2J"])))
def test_whatever_comes_no_sequence_but_a_colour_is_left(pieces: list[bytes]) -> None:
    text = shown(*pieces)
    for at, char in enumerate(text):
        assert char in "\n\t" or char.isprintable() or char == "\x1b" or ord(char) > 0x9F
        if char == "\x1b":
            assert text[at + 1] == "["
            assert text[at + 2 :].lstrip("0123456789;:").startswith("m")


def test_a_sequence_without_end_is_not_kept_for_ever() -> None:
    found = TerminalFilter()
    for _ in range(1000):
        found.feed(b"\x1b]" + b"x" * 100)
    assert len(found.finish()) < 10_000
    assert shown(b"\x1b[" + b"1" * 100_000, b"J end").endswith("J end")


def test_our_own_messages_begin_on_a_terminal_as_no_output_can() -> None:
    code = "from cloche.cli.terminal import say; say('a\\x1b[2Jb')"
    with Screen([sys.executable, "-c", code]) as screen:
        assert screen.wait() == 0
    assert screen.seen == f"{BELL} cloche: a�[2Jb\r\n"
