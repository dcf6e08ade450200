"""Commands that are followed piece by piece (product lines 3, 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche.errors import FileError, InvalidRequest, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche import Sandbox


def test_the_pieces_are_octets_in_the_order_of_both_outputs(sandbox: Sandbox) -> None:
    with sandbox.commands.start("printf '\\377a'; sleep 0.05; echo b >&2; sleep 0.05; echo c; exit 3") as run:
        pieces = [(chunk.stream, chunk.offset, chunk.data) for chunk in run]
    assert pieces == [("stdout", 0, b"\xffa"), ("stderr", 2, b"b\n"), ("stdout", 4, b"c\n")]
    assert run.result
    assert (run.result.exit_code, run.result.stdout, run.result.pid) == (3, "", run.pid)


def test_input_is_given_while_it_runs(sandbox: Sandbox) -> None:
    answers: list[bytes] = []
    with sandbox.commands.start(["cat"], stdin=True) as run:
        run.send_stdin("one\n")
        for chunk in run:
            answers.append(chunk.data)
            if chunk.data == b"one\n":
                run.send_stdin(b"two\xff")
                run.close_stdin()
        with pytest.raises(NotFound, match="has ended"):
            run.send_stdin("late")
    assert b"".join(answers) == b"one\ntwo\xff"


def test_whoever_leaves_early_ends_it(sandbox: Sandbox, wait_for: Callable[[Callable[[], object]], None]) -> None:
    with sandbox.commands.start("echo begun; sleep 60 & sleep 60") as run:
        assert next(iter(run)).data == b"begun\n"
    assert run.result is None
    wait_for(lambda: not any(process.argv[:1] == ("sleep",) for process in sandbox.commands.list()))


def test_what_is_cut_is_a_gap_and_the_rest_is_still_in_order(sandbox: Sandbox) -> None:
    with sandbox.commands.start(["head", "-c", "100000", "/dev/zero"], output_bytes=10_000) as run:
        chunks = list(run)
    assert [chunk.size for chunk in chunks if chunk.stream == "gap"] == [90_000]
    assert sum(chunk.size for chunk in chunks) == 100_000
    assert run.result
    assert (run.result.limit_hit, run.result.output_dropped) == ("output_bytes", 90_000)


def test_a_time_limit_and_a_wrong_folder_are_told(sandbox: Sandbox) -> None:
    with sandbox.commands.start(["sleep", "60"], timeout=0.2) as run:
        assert list(run) == []
    assert run.result
    assert run.result.limit_hit == "timeout"
    with pytest.raises((FileError, InvalidRequest)), sandbox.commands.start(["true"], cwd="/nowhere"):
        pass
