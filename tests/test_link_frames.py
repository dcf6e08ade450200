"""The codec against docs/protocol.md, against itself, and against garbage."""

from __future__ import annotations

import json
import os
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloche.errors import InvalidRequest, ProtocolError
from cloche.link import frames

PAGE = Path(__file__).parents[1] / "docs" / "protocol.md"
MUTATIONS = int(os.environ.get("CLOCHE_FUZZ", "50000"))
NUMBERS = {"B": (0, 8), "H": (0, 16), "I": (0, 32), "Q": (0, 64), "i": (-31, 31), "q": (-63, 63)}


def read_vectors() -> list[tuple[str, bytes, dict[str, Any]]]:
    block = PAGE.read_text(encoding="utf-8").split("```vectors\n")[1].split("```")[0]
    lines = [line.split(" ", 2) for line in block.splitlines()]
    return [(name, bytes.fromhex(octets), json.loads(fields)) for name, octets, fields in lines]


VECTORS = read_vectors()
CLASSES = {cls.NAME: cls for cls in frames.BY_TYPE.values()}


def make_frame(name: str, fields: dict[str, Any]) -> frames.Frame:
    def octets(value: Any) -> Any:
        if isinstance(value, str):
            return value.encode("latin-1")
        return tuple(map(octets, value)) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    return CLASSES[name](**{key: octets(value) for key, value in fields.items()})


def read_all(
    data: bytes, chunk: int = 1 << 20, accept: frozenset[int] = frozenset(frames.BY_TYPE)
) -> list[frames.Frame]:
    """Every frame in the octets, with what is streamed put together again."""
    reader, found = frames.Reader(accept), list[frames.Frame]()
    for start in range(0, len(data), chunk):
        piece = data[start : start + chunk]
        while piece:
            space = reader.space()
            count = min(len(space), len(piece))
            space[:count] = piece[:count]
            reader.filled(count)
            piece = piece[count:]
            while (frame := reader.next()) is not None:
                if isinstance(frame, frames.Stdout | frames.Stderr | frames.Data):
                    frame.data = bytes(frame.data)
                found.append(frame)
    return found


def test_every_frame_of_the_page_has_a_vector() -> None:
    assert {name for name, _, _ in VECTORS} == set(CLASSES)


@pytest.mark.parametrize(("name", "octets", "fields"), VECTORS)
def test_a_vector_is_encoded_as_the_page_says(name: str, octets: bytes, fields: dict[str, Any]) -> None:
    assert frames.encode(make_frame(name, fields)) == octets


@pytest.mark.parametrize(("name", "octets", "fields"), VECTORS)
def test_a_vector_is_decoded_as_the_page_says(name: str, octets: bytes, fields: dict[str, Any]) -> None:
    assert frames.decode(octets[4], octets[5:]) == make_frame(name, fields)


@pytest.mark.parametrize("chunk", [1, 2, 5, 7, 64])
def test_frames_come_through_however_they_are_cut(chunk: int) -> None:
    whole = [vector for vector in VECTORS if vector[0] not in ("STDOUT", "STDERR", "DATA")]
    data = b"".join(octets for _, octets, _ in whole)
    assert read_all(data, chunk) == [make_frame(name, fields) for name, _, fields in whole]


@pytest.mark.parametrize(
    ("name", "octets"), [vector[:2] for vector in VECTORS if vector[0] not in ("STDIN", "STDOUT", "STDERR", "DATA")]
)
def test_a_payload_that_is_too_long_or_too_short_is_refused(name: str, octets: bytes) -> None:
    with pytest.raises(ProtocolError, match=name):
        frames.decode(octets[4], octets[5:] + b"\0")
    if len(octets) > 5:
        with pytest.raises(ProtocolError):
            frames.decode(octets[4], octets[5:-1])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (frames.HEADER.pack(frames.MAX_PAYLOAD + 1, 65), "at most"),
        (frames.HEADER.pack(0, 1), "does not belong here"),
        (frames.HEADER.pack(0, 200), "does not belong here"),
        (frames.HEADER.pack(5, 76) + b"\x05\0\0\0\0", "not that many"),
        (frames.HEADER.pack(9, 70) + b"\0\0\0\0\xff\xff\xff\xff\0", "not that many"),
    ],
)
def test_a_reply_that_lies_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        read_all(data, accept=frames.REPLIES)


def test_a_list_may_not_be_longer_than_the_bound() -> None:
    argv = frames._COUNT.pack(frames.MAX_ITEMS + 1) + bytes(4) * (frames.MAX_ITEMS + 1)  # pyright: ignore[reportPrivateUsage]
    payload = frames.encode(make_frame("PROCESS", next(v[2] for v in VECTORS if v[0] == "PROCESS")))[5:]
    head = payload[: payload.index(b"\x03\0\0\0tag") + 7]
    with pytest.raises(ProtocolError, match="list of 4097"):
        frames.decode(75, head + argv)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (frames.Stat(0, 0, 0, b"a\0b"), "NUL"),
        (frames.Run(0, 0, 0, 0, 0, 0, 0, b"", b"", (b"a\0",), ()), "NUL"),
        (frames.Connect(70000), "does not fit"),
        (frames.Stdin(b"x" * (frames.MAX_PAYLOAD + 1)), "at most"),
        (frames.Run(0, 0, 0, 0, 0, 0, 0, b"", b"", (b"",) * 4097, ()), "at most 4096"),
    ],
)
def test_what_no_frame_can_hold_is_the_callers_error(frame: frames.Frame, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        frames.encode(frame)


def test_long_output_comes_in_pieces_as_it_arrives() -> None:
    data = os.urandom(frames.MAX_PAYLOAD)
    pieces = read_all(frames.encode(frames.Stdout(data)), 60_000)
    assert len(pieces) > 1
    assert b"".join(bytes(piece.data) for piece in pieces if isinstance(piece, frames.Stdout)) == data


def test_a_large_reply_that_is_not_output_comes_whole() -> None:
    error = frames.Error(5, b"x" * 900_000)
    assert read_all(frames.encode(error), 1000) == [error]


def test_what_follows_the_frames_can_be_taken() -> None:
    reader = frames.Reader()
    data = frames.encode(frames.Ok(0)) + b"raw octets"
    reader.space()[: len(data)] = data
    reader.filled(len(data))
    assert reader.next() == frames.Ok(0)
    assert reader.take() == b"raw octets"


def values_of(field: Any) -> st.SearchStrategy[Any]:
    if field.code in NUMBERS:
        low, high = NUMBERS[field.code]
        number = st.integers(-(1 << -low) if low else 0, (1 << high) - 1)
        return st.sampled_from(sorted(field.allowed)) if field.allowed else number
    if field.allowed:
        return st.sampled_from(sorted(field.allowed)).flatmap(lambda size: st.binary(min_size=size, max_size=size))
    string = st.binary(max_size=40).map(lambda value: value.replace(b"\0", b"?"))
    return {"strings": st.lists(string, max_size=5).map(tuple), "string": string}.get(
        field.code, st.binary(max_size=40)
    )


ANY_FRAME = st.sampled_from(sorted(CLASSES.values(), key=lambda cls: cls.TYPE)).flatmap(
    lambda cls: st.builds(
        cls, **{key: values_of(hint.__metadata__[0]) for key, hint in vars(cls).get("__annotations__", {}).items()}
    )
)


@given(ANY_FRAME)
def test_any_frame_survives_the_way_there_and_back(frame: frames.Frame) -> None:
    data = frames.encode(frame)
    assert frames.decode(data[4], data[5:]) == frame


def mutate(random: random.Random, octets: bytes) -> bytes:
    data = bytearray(octets)
    for _ in range(random.randint(1, 4)):
        where = random.randrange(len(data)) if data else 0
        match random.randrange(5):
            case 0 if data:
                data[where] = random.randrange(256)
            case 1 if data:
                data[where : where + 4] = random.choice(
                    [b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\x10\0", b"\0\0\0\x80"]
                )
            case 2:
                del data[where : where + random.randint(1, 9)]
            case 3:
                data[where:where] = random.randbytes(random.randint(1, 9))
            case _:
                data += random.choice(VECTORS)[1]
    return bytes(data)


def test_mutated_frames_are_refused_or_decoded_and_nothing_else() -> None:
    chance = random.Random(7)
    refused = 0
    tracemalloc.start()
    for _ in range(MUTATIONS):
        data = mutate(chance, chance.choice(VECTORS)[1])
        try:
            read_all(data)
        except ProtocolError:
            refused += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused > MUTATIONS // 4
    assert peak < 16 << 20
