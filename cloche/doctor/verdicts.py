"""What follows from looking at the engines: pure, over what was found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloche import settings
from cloche.doctor.findings import Finding
from cloche.engines.abilities import missing_limits
from cloche.engines.machine import SETUP
from cloche.engines.prepare import steps_for
from cloche.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cloche.doctor.findings import Examined, Report, State
    from cloche.engines.base import Fact

REPORT_IT: Final = "keep hostile code away from this machine, and report it: SECURITY.md"
INSTALL: Final = "apt-get install crun"
ELSEWHERE: Final = "repair what it says, or use another engine"
AGAIN: Final = "cloche doctor, once more; then report it: SECURITY.md"
DELEGATE: Final = "systemd-run --user --scope --property=Delegate=yes bash, and there again"


def of_engines(engines: Sequence[Examined], *, embedded: str | None, asked: Collection[str]) -> list[Finding]:
    """What is wrong with them: `embedded` is wanted, and those that were asked for by name."""
    findings: list[Finding] = []
    for engine in engines:
        is_wanted = embedded in (engine.name, None) or engine.name in asked
        findings += _of_facts(engine, "problem" if is_wanted else "note")
        findings += _of_trials(engine)
        findings += _of_limits(engine)
    if embedded is None and not any(finding.state == "problem" for finding in findings):
        findings.append(Finding("embedded", "problem", "no OCI runtime can make a box here", INSTALL))
    return _merge(findings)


def _of_facts(engine: Examined, weight: State) -> list[Finding]:
    # Where limits are missing, these are what for.
    covered = {"cgroups"} if missing_limits(engine.abilities) else set[str]()
    return [
        Finding(
            fact.name,
            weight if fact.needed else "warning",
            f"{fact.found}; {engine.name} makes no box without it" if fact.needed else fact.found,
            _repair_of(fact, engine),
        )
        for fact in engine.facts
        if not fact.ok and (fact.needed or fact.name not in covered)
    ]


def _repair_of(fact: Fact, engine: Examined) -> str:
    if fact.repair and fact.repair != SETUP:
        return fact.repair
    return setup_command() if fact.repair or engine.missing() else ELSEWHERE


def _of_trials(engine: Examined) -> list[Finding]:
    broken = [
        Finding(promise, "problem", f"did not hold on {engine.name}: {engine.trials[promise].detail}", REPORT_IT)
        for promise in engine.promises("broken")
    ]
    if not engine.makes_boxes or engine.level == "none":
        return broken
    untried = [
        Finding(promise, "problem", f"on {engine.name}: {engine.trials[promise].detail}", AGAIN)
        for promise in engine.promises("not_tried")
        if engine.abilities[promise].enforced != "no"
    ]
    return [*broken, *untried]


def _of_limits(engine: Examined) -> list[Finding]:
    """Limits that are missing: a sandbox is refused then, unless the caller agrees by name."""
    if not engine.makes_boxes or engine.level == "none":
        return []
    missing = missing_limits(engine.abilities)
    if not missing:
        return []
    found = f"{', '.join(missing)} can't be enforced here for {settings.user_name()}: a sandbox is refused"
    return [Finding("limits", "problem", f"{found}, but with --without {','.join(missing)}", setup_command())]


def _merge(findings: Sequence[Finding]) -> list[Finding]:
    """What two engines have in common is said once."""
    return list({(finding.name, finding.found): finding for finding in reversed(findings)}.values())[::-1]


def setup_command() -> str:
    """What is to be called for this user."""
    if _is_set_up():
        return DELEGATE
    # In full, as root may have another PATH.
    program = Path(sys.executable).with_name("cloche")
    return f"sudo {program if program.exists() else 'cloche'} setup {settings.user_name()}"


def _is_set_up() -> bool:
    try:
        return all(step.is_done for step in steps_for(settings.user_name()))
    except (NotFound, OSError):
        return False


def headline(report: Report) -> str:
    """The whole in a sentence."""
    problems = len(report.of("problem"))
    shown = next((engine for engine in report.engines if engine.name == report.embedded), report.engines[0])
    parts = [describe(shown)] if report.embedded or shown.level == "none" else ["no engine makes an isolated box here"]
    if problems:
        parts.append(f"{problems} {'problem' if problems == 1 else 'problems'} to repair")
    return "; ".join(parts)


def describe(engine: Examined) -> str:
    """One engine in a line."""
    if engine.level == "none":
        return f"{engine.name} isolates nothing: code runs as a plain process of yours"
    if not engine.makes_boxes:
        return f"{engine.name} makes no boxes here"
    promised = [promise for promise in engine.abilities if engine.abilities[promise].enforced != "no"]
    return f"{engine.name} makes boxes here: {len(engine.promises('held'))} of {len(promised)} promises held"
