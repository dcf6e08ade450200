from __future__ import annotations

import argparse
import inspect
from typing import TYPE_CHECKING, Any

import pytest

from cloche import Sandbox
from cloche.cli.options import BOX_OPTIONS, add_box_options, box_arguments
from cloche.errors import InvalidRequest
from cloche.models import Limits

if TYPE_CHECKING:
    from pathlib import Path


def read(*words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_box_options(parser)
    return box_arguments(parser.parse_args(words))


def test_what_is_not_said_is_left_to_the_library() -> None:
    assert read() == {"env": {}, "without": []}


def test_each_option_is_an_argument_of_create() -> None:
    known = inspect.signature(Sandbox.create).parameters
    assert {option.argument for option in BOX_OPTIONS} <= set(known)
    assert read("--memory", "64", "--cpus", "0.5", "--user", "root", "--without", "cpus, pids") == {
        "memory_mb": 64,
        "cpus": 0.5,
        "user": "root",
        "env": {},
        "without": ["cpus", "pids"],
    }


def test_the_defaults_in_the_help_are_those_of_the_limits() -> None:
    for option in BOX_OPTIONS:
        default = getattr(Limits(), option.argument, None)
        if default is not None:
            told = "1 MiB" if option.argument == "output_bytes" else f"{default:g}"
            assert f"default: {told})" in option.help


def test_a_workspace_is_relative_to_where_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr")
    assert read("--workspace", "share:rw")["workspace"] == "/usr/share:rw"


@pytest.mark.parametrize("word", ["", ":ro", ":rw"])
def test_no_folder_is_not_the_one_where_one_is(word: str) -> None:
    with pytest.raises(InvalidRequest, match=f"--workspace is '{word}', which names no folder"):
        read("--workspace", word)


def test_where_one_is_may_be_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert read("--workspace", "/usr")["workspace"] == "/usr"
    with pytest.raises(InvalidRequest, match=r"--workspace is '\.:rw', and the folder that this was called in is gone"):
        read("--workspace", ".:rw")


def test_a_variable_is_given_or_taken_from_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "1")
    assert read("--env", "A=b=c", "--env", "MINE")["env"] == {"A": "b=c", "MINE": "1"}
    with pytest.raises(InvalidRequest, match="is set here"):
        read("--env", "NOT_SET_HERE")
