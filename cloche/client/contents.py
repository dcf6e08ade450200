"""What a file is written from, in pieces that fit in a frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any, Final, cast

from cloche.errors import InvalidRequest
from cloche.link.frames import MAX_PAYLOAD

PIECE: Final = 512 << 10


def pieces_of(content: str | bytes | IO[bytes] | IO[str] | Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """Octets in pieces; text is UTF-8, where surrogate escapes stand for any octet.

    Raises: InvalidRequest.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogateescape")
    if isinstance(content, bytes | bytearray | memoryview):
        view = memoryview(content).cast("B")
        return (view[start : start + MAX_PAYLOAD] for start in range(0, len(view), MAX_PAYLOAD))
    if hasattr(content, "read"):
        return _read(cast("IO[Any]", content))
    if isinstance(content, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        return _split(cast("Iterable[bytes]", content))
    raise InvalidRequest(
        f"content is {type(content).__name__}; str, bytes, a file or an iterable of bytes was expected"
    )


def _read(file: IO[Any]) -> Iterator[bytes | memoryview]:
    while piece := file.read(PIECE):
        yield from pieces_of(piece)


def _split(pieces: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    for piece in pieces:
        yield from pieces_of(piece)
