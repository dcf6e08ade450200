"""What is wrong with engines, by what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche.doctor.findings import Examined, Report, Trial
from cloche.doctor.verdicts import headline, of_engines, setup_command
from cloche.engines.abilities import ABILITIES, PROMISES, UNPREPARED, rootless_abilities
from cloche.engines.base import Fact
from cloche.engines.machine import SETUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloche.engines.abilities import Ability
    from cloche.engines.prepare import Step

CRUN, RUNC = "embedded:crun", "embedded:runc"
HELD = {promise: Trial("held", "") for promise in PROMISES}
MISSING = Fact("crun", False, "not installed", "apt-get install crun")


def engine(
    name: str,
    *facts: Fact,
    trials: Mapping[str, Trial] = HELD,
    abilities: Mapping[str, Ability] = ABILITIES[CRUN],
) -> Examined:
    return Examined(name=name, facts=facts, abilities=abilities, trials=trials)


def test_engines_that_hold_leave_nothing_to_say() -> None:
    assert of_engines([engine(CRUN), engine(RUNC)], embedded=CRUN, asked=()) == []


@pytest.mark.parametrize(
    ("embedded", "asked", "state"),
    [(RUNC, [], "note"), (RUNC, [CRUN], "problem"), (CRUN, [], "problem"), (None, [], "problem")],
)
def test_an_engine_that_is_missing_is_a_problem_where_it_is_wanted(
    embedded: str | None, asked: list[str], state: str
) -> None:
    [finding] = of_engines([engine(CRUN, MISSING), engine(RUNC)], embedded=embedded, asked=asked)
    assert (finding.state, finding.repair) == (state, "apt-get install crun")
    assert finding.found == "not installed; embedded:crun makes no box without it"


def test_where_nothing_says_why_there_is_no_engine_that_alone_is_told() -> None:
    [finding] = of_engines([engine("host", abilities=ABILITIES["host"])], embedded=None, asked=["embedded"])
    assert (finding.state, finding.repair) == ("problem", "apt-get install crun")


def test_a_promise_that_did_not_hold_is_a_problem_with_what_was_seen() -> None:
    trials = {**HELD, "pids": Trial("broken", "36 were to be had, and the limit is 24")}
    [finding] = of_engines([engine(RUNC, trials=trials)], embedded=CRUN, asked=())
    assert (finding.name, finding.state) == ("pids", "problem")
    assert finding.found == "did not hold on embedded:runc: 36 were to be had, and the limit is 24"


def test_a_promise_that_could_not_be_tried_is_a_problem_too() -> None:
    trials = {**HELD, "pids": Trial("not_tried", "it could not be tried: the sandbox has ended")}
    [finding] = of_engines([engine(CRUN, trials=trials)], embedded=CRUN, asked=())
    assert (finding.name, finding.state) == ("pids", "problem")


def test_limits_that_nothing_enforces_are_one_problem_with_the_command_that_repairs_it() -> None:
    abilities = rootless_abilities(UNPREPARED, has_tree=False)
    trials = {promise: Trial("not_tried" if promise in UNPREPARED else "held", "") for promise in PROMISES}
    facts = [Fact(name, False, "none", SETUP, needed=False) for name in ("cgroups", "user ids")]
    found = of_engines(
        [engine(name, *facts, trials=trials, abilities=abilities) for name in (CRUN, RUNC)], embedded=CRUN, asked=()
    )
    assert [(finding.name, finding.state) for finding in found] == [("user ids", "warning"), ("limits", "problem")]
    assert "cpus, memory_mb, pids" in found[1].found
    assert "--without cpus,memory_mb,pids" in found[1].found
    assert {finding.repair for finding in found} == {setup_command()}


def test_the_engine_host_is_nothing_to_repair() -> None:
    untried = {promise: Trial("not_tried", "") for promise in PROMISES}
    assert of_engines([engine("host", trials=untried, abilities=ABILITIES["host"])], embedded=CRUN, asked=()) == []


def test_who_was_set_up_and_is_not_in_a_delegated_session_is_told_how_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_steps(name: str) -> list[Step]:
        del name
        return []

    monkeypatch.setattr("cloche.doctor.verdicts.steps_for", no_steps)
    assert setup_command().startswith("systemd-run --user --scope")


def test_a_user_whom_nobody_knows_is_called_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 4_000_000)
    assert setup_command().endswith(" setup 4000000")


@pytest.mark.parametrize(
    ("engines", "embedded", "text"),
    [
        ([engine(CRUN)], CRUN, "embedded:crun makes boxes here: 17 of 17 promises held"),
        ([engine(CRUN, MISSING)], None, "no engine makes an isolated box here; 1 problem to repair"),
        ([engine(CRUN, MISSING)], CRUN, "embedded:crun makes no boxes here; 1 problem to repair"),
        (
            [engine("host", abilities=ABILITIES["host"])],
            CRUN,
            "host isolates nothing: code runs as a plain process of yours",
        ),
    ],
)
def test_the_first_line_says_the_whole(engines: list[Examined], embedded: str | None, text: str) -> None:
    report = Report(engines=engines, embedded=embedded, findings=of_engines(engines, embedded=embedded, asked=()))
    assert headline(report) == text
