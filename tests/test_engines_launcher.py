"""Running a launcher that does as it should, fails, and hangs."""

from __future__ import annotations

import pytest

from cloche.engines.launcher import run_launcher
from cloche.errors import EngineError


def test_one_that_ends_well_says_nothing() -> None:
    run_launcher(["/bin/true"])


def test_what_it_says_is_in_the_error() -> None:
    with pytest.raises(EngineError, match="out of luck"):
        run_launcher(["/bin/sh", "-c", "echo out of luck >&2; exit 1"])


def test_its_exit_code_is_in_the_error_where_it_says_nothing() -> None:
    with pytest.raises(EngineError, match="exit code 7"):
        run_launcher(["/bin/sh", "-c", "exit 7"])


def test_one_that_hangs_is_ended() -> None:
    with pytest.raises(EngineError, match=r"did not end within 0\.1 s"):
        run_launcher(["/bin/sleep", "1000"], timeout=0.1)


def test_a_box_that_holds_its_error_pipe_open_is_not_waited_for() -> None:
    with pytest.raises(EngineError, match="early"):
        run_launcher(["/bin/sh", "-c", "sleep 5 & echo early >&2; exit 1"], timeout=4)


def test_it_gets_none_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "1")
    run_launcher(["/bin/sh", "-c", 'test -z "$CANARY"'])
