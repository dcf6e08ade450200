"""A context, as its process carries it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloche.client.tags import Context, find_contexts, how_ended, to_tag
from cloche.link import frames

CONTEXT = Context(id="python3.12", language="python", runtime="python3.12", cwd="/home/user", env={"A": "é\n"})


def process(**fields: Any) -> frames.Process:
    plain: dict[str, Any] = {
        "pid": 7,
        "parent": 1,
        "uid": 1000,
        "flags": frames.PROCESS_RUN,
        "state": ord("S"),
        "exit_code": 0,
        "signal": 0,
        "started_ns": 5,
        "cpu_us": 0,
        "memory_bytes": 0,
        "offset": 0,
        "tag": to_tag(CONTEXT).encode(),
        "argv": (b"python",),
    }
    return frames.Process(**{**plain, **fields})


def test_a_context_is_found_by_its_process() -> None:
    (found,) = find_contexts([process(tag=b"other"), process()])
    assert (found.context, found.pid, found.ended) == (CONTEXT, 7, None)


def test_of_several_the_newest_counts() -> None:
    ended = frames.PROCESS_RUN | frames.PROCESS_ENDED
    old = process(pid=3, flags=ended, exit_code=-1, signal=9, started_ns=1)
    assert [found.pid for found in find_contexts([process(), old])] == [7]
    assert [found.ended for found in find_contexts([old])] == ["was killed by signal 9"]
    asked_for = process(flags=ended | frames.PROCESS_KILLED, exit_code=-1, signal=9)
    assert [found.ended for found in find_contexts([asked_for])] == [""]


@pytest.mark.parametrize(
    ("exit_code", "signal", "words"),
    [(0, 0, "ended with exit code 0"), (3, 0, "ended with exit code 3"), (-1, 11, "was killed by signal 11")],
)
def test_an_end_is_told_in_words(exit_code: int, signal: int, words: str) -> None:
    assert how_ended(exit_code, signal) == words


@pytest.mark.parametrize(
    "tag",
    [
        b"",
        b"context",
        b"context ",
        b"context {",
        b"context []",
        b"context {}",
        b"context \xff",
        b"context " + b"[" * 10_000,
        to_tag(replace(CONTEXT, id="")).encode(),
        to_tag(replace(CONTEXT, id="../x")).encode(),
        to_tag(replace(CONTEXT, id="x" * 41)).encode(),
        to_tag(CONTEXT).encode().replace(b'"env":{', b'"env":[{').replace(b"}}", b"}]}"),
    ],
)
def test_a_tag_that_makes_no_sense_is_none(tag: bytes) -> None:
    assert find_contexts([process(tag=tag)]) == []


def test_what_was_not_started_from_outside_is_none() -> None:
    assert find_contexts([process(flags=0)]) == []
