"""Which limit it was."""

from __future__ import annotations

import pytest

from cloche.client.results import make_result
from cloche.engines.base import Events
from cloche.errors import ProtocolError
from cloche.link import frames
from cloche.models import CommandResult, Limits


def result_of(
    *, code: int = 0, signal: int = 0, flags: int = 0, dropped: int = 0, after: Events | None = None
) -> CommandResult:
    ended = frames.Exit(code, signal, flags, 2_000_000_000, 500_000, 250_000, 4096, dropped, 0)
    before = Events(1, 1)
    return make_result(ended, pid=7, streams=("o", "e"), limits=Limits(), before=before, after=after or before)


@pytest.mark.parametrize(
    ("result", "hit", "message"),
    [
        (result_of(), None, None),
        (result_of(code=1), None, None),
        (result_of(code=-1, signal=9, flags=1), "timeout", "out of time: the limit is 30 s; raise timeout"),
        (
            result_of(code=-1, signal=9, after=Events(2, 1)),
            "memory_mb",
            "out of memory: the limit is 512 MB; raise memory_mb",
        ),
        (result_of(code=1, flags=8), "disk_mb", "out of disk: the limit is 1024 MB; raise disk_mb"),
        (result_of(code=1, flags=16), "inodes", "out of inodes: the limit is 65536 files and folders; raise inodes"),
        (result_of(code=1, after=Events(1, 2)), "pids", "out of processes: the limit is 128; raise pids"),
        (result_of(after=Events(2, 2)), None, None),
        (
            result_of(dropped=5),
            "output_bytes",
            "too much output: the limit is 1048576 bytes, 5 in the middle are left out; raise output_bytes",
        ),
    ],
)
def test_the_limit_is_named_with_what_to_do(result: CommandResult, hit: str | None, message: str | None) -> None:
    assert (result.limit_hit, result.message) == (hit, message)


def test_a_signal_is_an_exit_code_as_the_shell_has_it() -> None:
    result = result_of(code=-1, signal=11)
    assert (result.exit_code, result.signal) == (139, 11)
    assert (result.wall_seconds, result.cpu_seconds) == (2.0, 0.75)


@pytest.mark.parametrize(("code", "signal"), [(256, 0), (-2, 0), (-1, 0), (0, 9), (-1, 65)])
def test_an_end_that_can_not_be_breaks_the_protocol(code: int, signal: int) -> None:
    with pytest.raises(ProtocolError):
        result_of(code=code, signal=signal)
