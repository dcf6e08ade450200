"""Looks at this machine and tries each engine on it; whatever happens, nothing of that is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloche.doctor import verdicts
from cloche.doctor.advice import look_at_disk, look_at_settings
from cloche.doctor.daemons import look_at_daemons
from cloche.doctor.findings import Examined, Report, Trial
from cloche.doctor.patient import drop_disks, make_patient
from cloche.doctor.traces import traces_of, wait_until_gone
from cloche.doctor.trials import TRIALS
from cloche.doctor.versions import look_at_versions
from cloche.engines import ENGINES, engine_named
from cloche.engines.abilities import ABILITIES, PROMISES
from cloche.engines.base import Fact
from cloche.errors import ClocheError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloche.doctor.patient import Patient
    from cloche.engines.abilities import Ability

NOT_ISOLATED: Final = "nothing is isolated by this engine, and there is nothing to try"


def examine_machine(names: Sequence[str] = ()) -> Report:
    """All of it; with `names` only those engines, and what they need is a problem where it is missing."""
    disk = look_at_disk()
    embedded = _find_embedded()
    wanted = [embedded if name == "embedded" and embedded else name for name in names]
    all_engines = [name for name in ENGINES if name != "embedded"]
    try:
        engines = [examine_engine(name) for name in all_engines if not wanted or _is_among(name, wanted)]
    finally:
        drop_disks()
    findings = [
        *verdicts.of_engines(engines, embedded=embedded, asked=frozenset(wanted)),
        disk,
        *look_at_versions(),
        *look_at_settings(),
        *look_at_daemons(),
    ]
    return Report(engines=engines, embedded=embedded, findings=findings)


def _is_among(name: str, wanted: Sequence[str]) -> bool:
    """`embedded`, where it is none yet, is all that it may become."""
    return name in wanted or ("embedded" in wanted and name.startswith("embedded:"))


def _find_embedded() -> str | None:
    try:
        return engine_named("embedded").name
    except (ClocheError, OSError):
        return None


def examine_engine(name: str) -> Examined:
    """What it needs, what it says that it enforces, and what of that holds."""
    engine = engine_named(name)
    try:
        facts, abilities = engine.check(), engine.abilities()
    except (ClocheError, OSError) as error:
        facts, abilities = [Fact("box", False, str(error))], ABILITIES[name]
    examined = Examined(name=name, facts=facts, abilities=abilities)
    if not examined.makes_boxes:
        return Examined(name=name, facts=facts, abilities=abilities, trials=_untried("it makes no box here"))
    if abilities["isolation"].enforced == "no":
        return Examined(name=name, facts=facts, abilities=abilities, trials=_untried(NOT_ISOLATED))
    return Examined(name=name, facts=facts, abilities=abilities, trials=_try_all(name, abilities))


def _untried(why: str) -> dict[str, Trial]:
    return {promise: Trial("not_tried", why) for promise in PROMISES}


def _try_all(engine: str, abilities: Mapping[str, Ability]) -> dict[str, Trial]:
    done: dict[str, Trial] = {}
    try:
        with make_patient(engine, abilities) as patient:
            ids = (patient.usual.box.id, patient.other.box.id)
            for promise in TRIALS:
                done[promise] = _try_one(promise, patient, abilities[promise])
        left = wait_until_gone(lambda: [trace for id in ids for trace in traces_of(id)])
        done["leaves_nothing"] = _judge("two boxes ended, and looked for", left)
    except (ClocheError, OSError) as error:
        return _untried(f"the trials came to an end: {error}") | done
    return {promise: done[promise] for promise in PROMISES}


def _try_one(promise: str, patient: Patient, ability: Ability) -> Trial:
    if ability.enforced == "no":
        return Trial("not_tried", ability.reason)
    what, find_faults = TRIALS[promise]
    try:
        return _judge(what, find_faults(patient))
    except (ClocheError, OSError) as error:
        return Trial("not_tried", f"it could not be tried: {error}")


def _judge(what: str, faults: list[str]) -> Trial:
    return Trial("broken", "; ".join(faults)) if faults else Trial("held", what)
