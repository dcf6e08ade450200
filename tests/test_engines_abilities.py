"""The table of abilities and the refusals that it makes."""

from __future__ import annotations

import pytest

from cloche.engines import ENGINES, engine_named
from cloche.engines.abilities import ABILITIES, PROMISES, asked_promises, refuse_what_is_not_enforced
from cloche.errors import InvalidRequest, Unsupported
from cloche.models import Limits, SandboxSpec


def test_each_engine_has_its_row() -> None:
    assert set(ABILITIES) == set(ENGINES) - {"embedded"}


@pytest.mark.parametrize("engine", ABILITIES)
@pytest.mark.parametrize("promise", ["cpus", "memory_mb", "disk_mb", "inodes", "pids", "timeout", "output_bytes"])
def test_a_limit_that_is_asked_for_is_kept_or_refused(engine: str, promise: str) -> None:
    spec = SandboxSpec(engine=engine, limits=Limits(), explicit=frozenset((promise,)))
    if ABILITIES[engine][promise].enforced != "no":
        return refuse_what_is_not_enforced(engine, ABILITIES[engine], spec)
    with pytest.raises(Unsupported, match=f"{promise} .*{ABILITIES[engine][promise].reason}"):
        refuse_what_is_not_enforced(engine, ABILITIES[engine], spec)
    return None


def test_defaults_are_not_asked_for() -> None:
    refuse_what_is_not_enforced("host", ABILITIES["host"], SandboxSpec(engine="host"))


def test_everything_that_can_be_asked_for_is_a_promise() -> None:
    spec = SandboxSpec(user="root", workspace="/tmp", image="other", explicit=frozenset(("cpus",)))
    assert asked_promises(spec) == ["cpus", "user_root", "workspace", "image"]
    assert set(asked_promises(spec)) <= set(PROMISES)


def test_an_unknown_engine_is_told() -> None:
    with pytest.raises(InvalidRequest, match="expected one of: embedded, embedded:crun, embedded:runc, host"):
        engine_named("docker")
