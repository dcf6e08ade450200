"""Output as it comes in."""

from __future__ import annotations

import pytest

from cloche.client.output import Output
from cloche.errors import ProtocolError
from cloche.link import frames


def test_a_character_in_two_pieces_is_one() -> None:
    seen: list[str] = []
    output = Output(0, seen.append)
    for piece in (b"a\xe2", b"\x82", b"\xacb"):
        output.add(frames.Stdout(memoryview(piece)))
    assert output.finish() == ("a€b", "")
    assert "".join(seen) == "a€b"


def test_half_a_character_at_the_end_is_shown_as_such() -> None:
    output = Output(0)
    output.add(frames.Stderr(b"x\xe2"))
    assert output.finish() == ("", "x�")


def test_a_gap_stands_where_the_octets_are_missing() -> None:
    output = Output(100)
    for frame in (frames.Stderr(b"head"), frames.Gap(5), frames.Stderr(b"tail")):
        output.add(frame)
    assert output.finish()[1] == "head\n[... 5 bytes of output are missing here ...]\ntail"


def test_a_keeper_that_sends_more_than_the_limit_breaks_the_protocol() -> None:
    output = Output(1024)
    output.add(frames.Stdout(bytes(1 << 20)))
    with pytest.raises(ProtocolError, match="the limit is 1024"):
        output.add(frames.Stdout(bytes(1 << 20)))


def test_other_frames_have_no_place_here() -> None:
    with pytest.raises(ProtocolError, match="OK was not expected"):
        Output(0).add(frames.Ok(0))
