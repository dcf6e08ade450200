"""`cloche doctor` for ordinary users: what it says is what they have."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from cloche.engines.abilities import PROMISES, UNPREPARED

if TYPE_CHECKING:
    from tests.rootless.conftest import Ordinary


def examine(user: Ordinary, *words: str) -> tuple[int, Any]:
    status, said = user.run("-m", "cloche", "doctor", "--json", *words)
    assert said.startswith("{"), said
    return status, json.loads(said)


def tried(engine: Any) -> dict[str, str]:
    return {promise["name"]: promise["tried"] for promise in engine["promises"]}


@pytest.mark.parametrize("engine", ["embedded:crun", "embedded:runc"])
def test_all_holds_for_a_prepared_user(prepared: Ordinary, engine: str) -> None:
    status, answer = examine(prepared, "--engine", engine)
    [examined] = answer["engines"]
    assert (status, examined["level"]) == (0, "hardened"), answer
    assert tried(examined) == dict.fromkeys(PROMISES, "held")


def test_in_a_delegated_tree_all_holds_too(delegated: Ordinary) -> None:
    status, answer = examine(delegated, "--engine", "embedded")
    assert status == 0, answer
    means = {promise["name"]: promise["enforced"] for promise in answer["engines"][0]["promises"]}
    assert means["kill_tree"] == "kernel"


def test_an_unprepared_user_is_told_what_is_missing_and_the_rest_is_tried(unprepared: Ordinary) -> None:
    status, answer = examine(unprepared)
    assert status == 1
    crun, runc, _ = answer["engines"]
    assert (crun["level"], runc["level"]) == ("weak", "unusable")
    assert tried(crun) == {promise: "not_tried" if promise in UNPREPARED else "held" for promise in PROMISES}
    [problem] = [finding for finding in answer["findings"] if finding["state"] == "problem"]
    assert problem["name"] == "limits"
    assert "--without cpus,memory_mb,pids" in problem["found"]
    assert problem["repair"] == f"sudo cloche setup {unprepared.name}"
    assert problem["repair"] in {f["repair"] for f in answer["findings"] if f["name"] == "user ids"}


def test_a_runtime_that_makes_no_box_for_them_is_a_problem_where_it_is_asked_for(unprepared: Ordinary) -> None:
    status, answer = examine(unprepared, "--engine", "embedded:runc")
    problems = [finding for finding in answer["findings"] if finding["state"] == "problem"]
    assert status == 1
    assert [(finding["name"], finding["repair"]) for finding in problems] == [
        ("box", f"sudo cloche setup {unprepared.name}")
    ]


@pytest.mark.parametrize("who", ["prepared", "unprepared"])
def test_nothing_of_it_is_left(request: pytest.FixtureRequest, who: str) -> None:
    user: Ordinary = request.getfixturevalue(who)
    examine(user, "--engine", "embedded")
    assert list((user.folder / "data" / "boxes").iterdir()) == []
    found = subprocess.run(["pgrep", "--runstates", "D,R,S,T", "-a", "-u", user.name], capture_output=True, text=True)
    assert found.stdout == ""
