"""What a look at this machine gives: plain data, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloche.engines.abilities import Ability
    from cloche.engines.base import Fact

State = Literal["ok", "note", "warning", "problem"]
"""`problem`: what should hold does not. `warning`: it is to be repaired, and boxes hold all the same. `note`: advice."""
Outcome = Literal["held", "broken", "not_tried"]
Level = Literal["hardened", "weak", "none", "unusable"]
"""`weak`: a promise is not kept here; `none`: nothing is isolated; `unusable`: it makes no box."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    found: str
    repair: str = ""
    """What to do, as a command where there is one."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of trying one promise."""

    outcome: Outcome
    detail: str
    """What was tried, what did not hold, or why it was not tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """One engine."""

    name: str
    facts: Sequence[Fact]
    abilities: Mapping[str, Ability]
    trials: Mapping[str, Trial] = field(default_factory=dict[str, Trial])

    @property
    def makes_boxes(self) -> bool:
        """True where all is there that it needs, a box that was really made included."""
        return all(fact.ok or not fact.needed for fact in self.facts)

    @property
    def level(self) -> Level:
        """How much code in its boxes is held back."""
        if not self.makes_boxes:
            return "unusable"
        if self.abilities["isolation"].enforced == "no":
            return "none"
        is_whole = all(
            ability.enforced != "no" and self.trials[promise].outcome == "held"
            for promise, ability in self.abilities.items()
        )
        return "hardened" if is_whole else "weak"

    def promises(self, outcome: Outcome) -> list[str]:
        """Those of which that came, in the table's order."""
        return [promise for promise, trial in self.trials.items() if trial.outcome == outcome]

    def missing(self) -> list[str]:
        """The promises that nothing keeps here."""
        return [promise for promise, ability in self.abilities.items() if ability.enforced == "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All of it."""

    engines: Sequence[Examined]
    embedded: str | None
    """Which one the engine `embedded` is; None where there is none."""
    findings: Sequence[Finding]

    def of(self, state: State) -> list[Finding]:
        """The findings of that weight."""
        return [finding for finding in self.findings if finding.state == state]

    @property
    def is_well(self) -> bool:
        """False where something that should hold does not, or no engine makes a box."""
        return not self.of("problem")
