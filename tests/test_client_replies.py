"""What a driver says, and what the code says in its name."""

from __future__ import annotations

import json
import resource
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloche.client import replies
from cloche.client.replies import Message, Replies, count_values, parse_message
from cloche.displays import CodeError, Cut, Display
from cloche.errors import ProtocolError


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (line(type="ready", version="3.12"), Message(kind="ready")),
        (line(type="begun", id=7, count=3), Message(kind="begun", id=7, count=3)),
        (line(type="done", id=7), Message(kind="done", id=7)),
        (line(type="done", id=7, exit_code=3), Message(kind="done", id=7, exit_code=3)),
        (
            line(type="error", id=7, name="E", value="v", traceback="t"),
            Message(kind="error", id=7, error=CodeError(name="E", value="v", traceback="t")),
        ),
        (
            line(type="result", id=7, main=True, data={"text/plain": "1", "application/json": {"a": [1]}}),
            Message(
                kind="result",
                id=7,
                display=Display(main=True, data={"text/plain": "1", "application/json": {"a": [1]}}),
            ),
        ),
        (
            line(type="result", id=7, main=False, data={}, cut={"text/html": {"size": 9, "path": "/tmp/x"}}),
            Message(kind="result", id=7, display=Display(data={}, cut={"text/html": Cut(size=9, path="/tmp/x")})),
        ),
        (
            line(type="result", id=7, main=False, data={}, cut={"text/html": {"size": 9, "path": None}}),
            Message(kind="result", id=7, display=Display(data={}, cut={"text/html": Cut(size=9, path=None)})),
        ),
    ],
)
def test_a_message_is_read(said: bytes, message: Message) -> None:
    assert parse_message(said) == message


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"nonsense",
        b"\xff",
        b"[]",
        b"3",
        b"[" * 100_000,
        b'{"id": ' + b"9" * 5000 + b"}",
        line(),
        line(type="ready\0", id=1),
        line(type="begun", id=1),
        line(type="begun", id="1", count=1),
        line(type="begun", id=1, count=-1),
        line(type="begun", id=1, count=0),
        line(type="begun", id=True, count=1),
        line(type="begun", id=1 << 64, count=1),
        line(type="done", id=1, exit_code="0"),
        line(type="error", id=1, name="a", value=1, traceback=""),
        line(type="error", id=1, name="a", value="b"),
        line(type="result", id=1, main=True, data=[]),
        line(type="result", id=1, data={}),
        line(type="result", id=1, main=True, data={"text/plain": 1}),
        line(type="result", id=1, main=True, data={"image/png": {"a": 1}}),
        line(type="result", id=1, main=True, data={"m" * 300: ""}),
        line(type="result", id=1, main=True, data={"a/b\n": ""}),
        line(type="result", id=1, main=True, data={"\u00e4/b": ""}),
        line(type="result", id=1, main=True, data={"application/json": float("nan")}),
        b'{"type":"result","id":1,"main":true,"data":{"application/json":1e999}}',
        line(type="result", id=1, main=True, data={}, cut={"text/html": {"size": 9, "path": "x" * 5000}}),
        line(type="result", id=1, main=True, data={f"m/{n}": "" for n in range(100)}),
        line(type="result", id=1, main=True, data={}, cut={"text/html": {"size": 9}}),
        line(type="result", id=1, main=True, data={}, cut={"text/html": {"size": "9", "path": "/"}}),
        line(type="result", id=1, main=True, data={}, cut=3),
    ],
)
def test_nonsense_is_told_apart(said: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_message(said)


@pytest.mark.parametrize(
    ("said", "count"),
    [
        (b"{}", 1),
        (line(a="," * 1000), 1),
        (line(a=[1] * 1000), 1001),
        (line(a=['"\\,' * 5] * 1000), 1001),
        (line(a=[{}] * 1000), 2001),
    ],
)
def test_values_are_counted_and_not_what_is_in_text(said: bytes, count: int) -> None:
    assert count_values(said) == count if count < 100 and b'",' not in said else abs(count_values(said) - count) <= 2


@pytest.mark.parametrize("text", ["x,", "\\n,", '",', "\\"])
def test_a_long_text_takes_no_memory_to_be_looked_through(text: str) -> None:
    whole = line(a=text * (8_000_000 // len(text)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert count_values(whole) == 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_what_is_nested_too_deeply_is_not_read() -> None:
    with pytest.raises(ProtocolError, match="levels"):
        count_values(b"[" * 900 + b"]" * 900)
    assert count_values(b"[" * 90 + b"]" * 90) == 90


@given(st.binary(max_size=200))
def test_any_octets_are_a_message_or_an_error(said: bytes) -> None:
    try:
        parse_message(said)
    except ProtocolError:
        return


@given(st.lists(st.integers(1, 50), max_size=40))
def test_pieces_of_any_size_make_the_same_messages(sizes: list[int]) -> None:
    whole = b"".join(line(type="begun", id=number, count=number) + b"\n" for number in range(1, 21))
    reader, at = Replies(), 0
    found: list[Message] = []
    for size in [*sizes, len(whole)]:
        found += reader.feed(whole[at : at + size])
        at += size
    assert [message.count for message in found] == list(range(1, 21))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("LONGEST", b"x" * 101),
        ("MOST_OCTETS", line(type="done", id=1, more="x" * 100) + b"\n"),
        ("MOST_MESSAGES", (line(type="done", id=1) + b"\n") * 101),
    ],
)
def test_there_is_an_end_to_it(monkeypatch: pytest.MonkeyPatch, name: str, said: bytes) -> None:
    monkeypatch.setattr(replies, name, 100)
    with pytest.raises(ProtocolError, match="are possible"):
        Replies().feed(said)
