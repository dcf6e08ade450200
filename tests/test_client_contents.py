"""What a file can be written from."""

from __future__ import annotations

import io
from typing import Any

import pytest

from cloche.client.contents import pieces_of
from cloche.errors import InvalidRequest
from cloche.link.frames import MAX_PAYLOAD


@pytest.mark.parametrize(
    ("content", "octets"),
    [
        ("grün\udcff", "grün".encode() + b"\xff"),
        (b"x" * (MAX_PAYLOAD + 1), b"x" * (MAX_PAYLOAD + 1)),
        (bytearray(b"a"), b"a"),
        (io.BytesIO(b"file"), b"file"),
        (io.StringIO("text"), b"text"),
        ([b"a", b"", b"b"], b"ab"),
        (b"", b""),
    ],
)
def test_it_becomes_octets_in_pieces_that_fit(content: Any, octets: bytes) -> None:
    pieces = list(pieces_of(content))
    assert b"".join(pieces) == octets
    assert all(len(piece) <= MAX_PAYLOAD for piece in pieces)


@pytest.mark.parametrize("content", [None, 5, [5]])
def test_what_is_no_content_is_refused(content: Any) -> None:
    with pytest.raises(InvalidRequest, match="bytes"):
        list(pieces_of(content))
