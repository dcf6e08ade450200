"""What follows from what was found."""

from __future__ import annotations

import pytest

from cloche.doctor.findings import Examined, Finding, Report, Trial
from cloche.engines.abilities import ABILITIES, PROMISES, rootless_abilities
from cloche.engines.base import Fact

HELD = {promise: Trial("held", "") for promise in PROMISES}
CRUN = ABILITIES["embedded:crun"]


def test_an_engine_is_hardened_where_all_is_promised_and_held() -> None:
    assert Examined(name="e", facts=[Fact("box", True, "")], abilities=CRUN, trials=HELD).level == "hardened"


@pytest.mark.parametrize("outcome", ["broken", "not_tried"])
def test_one_promise_that_did_not_hold_makes_it_weak(outcome: str) -> None:
    trials = {**HELD, "pids": Trial(outcome, "")}  # type: ignore[arg-type]
    engine = Examined(name="e", facts=[], abilities=CRUN, trials=trials)
    assert (engine.level, engine.promises("held")) == ("weak", [name for name in PROMISES if name != "pids"])


def test_one_promise_that_is_not_made_makes_it_weak() -> None:
    abilities = rootless_abilities(["pids"], has_tree=False)
    trials = {**HELD, "pids": Trial("not_tried", "")}
    engine = Examined(name="e", facts=[], abilities=abilities, trials=trials)
    assert (engine.level, engine.missing()) == ("weak", ["pids"])


def test_an_engine_without_what_it_needs_is_unusable() -> None:
    facts = [Fact("ids", False, "", needed=False), Fact("box", False, "")]
    assert Examined(name="e", facts=facts, abilities=CRUN).level == "unusable"
    assert Examined(name="e", facts=facts[:1], abilities=CRUN, trials=HELD).makes_boxes


def test_an_engine_that_isolates_nothing_says_so() -> None:
    assert Examined(name="host", facts=[], abilities=ABILITIES["host"]).level == "none"


def test_warnings_and_notes_are_no_failure() -> None:
    findings = [Finding("a", "warning", ""), Finding("b", "note", "")]
    assert Report(engines=[], embedded=None, findings=findings).is_well
    assert not Report(engines=[], embedded=None, findings=[*findings, Finding("c", "problem", "")]).is_well
