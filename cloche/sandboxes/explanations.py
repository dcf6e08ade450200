"""What a sandbox is, told: where it runs and why, who its code is, what holds it, what it sees, when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Literal

from cloche.engines import engine_named
from cloche.engines.mounts import mounts_of
from cloche.sandboxes.limits import BOUNDS

if TYPE_CHECKING:
    from cloche.engines.base import Box, Enforced, Engine
    from cloche.engines.mounts import Mount
    from cloche.sandboxes.records import Record

EMBEDDED = "embedded"
ENDING_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitIs:
    """One limit of a sandbox."""

    name: str
    value: float
    """0 where there is none."""
    unit: str
    asked: bool
    """Somebody asked for it by name; else it is the default."""
    enforced: Enforced
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All of it, as data."""

    id: str
    name: str | None
    engine: str
    isolated: bool
    why: tuple[str, ...]
    """Why it runs there."""
    runtime: str
    interpreter: str
    note: str
    """Why it is not the default runtime, where it is not."""
    image: str
    user: Literal["user", "root"]
    uid: int
    """Inside."""
    cwd: str
    shell: str
    env: tuple[str, ...]
    """The names of its variables: the values may be secrets."""
    network: str
    limits: tuple[LimitIs, ...]
    mounts: tuple[Mount, ...]
    """What the kernel says that its first process sees."""
    workspace: str | None
    workspace_access: Literal["none", "ro", "rw"]
    created: float
    idle_timeout: float
    """Seconds; 0 means never."""
    ends_at: float | None
    """Since the epoch; None where only idleness ends it."""


def explain(record: Record) -> Explanation:
    """Blocking, as it looks at the sandbox's processes."""
    box, spec = record.box, record.spec
    engine = engine_named(box.engine)
    abilities = engine.abilities()
    identity = record.identity(spec.user)
    return Explanation(
        id=box.id,
        name=spec.name,
        engine=box.engine,
        isolated=abilities["isolation"].enforced != "no",
        why=_why(record),
        runtime=record.runtime.name,
        interpreter=record.runtime.path,
        note=record.runtime.note,
        image=spec.image,
        user=spec.user,
        uid=identity.uid,
        cwd=record.cwd or identity.home,
        shell=record.shell,
        env=tuple(sorted({*record.env, "HOME", "USER", "LOGNAME"})),
        network=abilities["network_none"].reason,
        limits=tuple(_limit(record, name) for name in BOUNDS),
        mounts=_mounts(engine, box) if abilities["isolation"].enforced != "no" else (),
        workspace=spec.workspace,
        workspace_access=spec.workspace_access,
        created=record.created,
        idle_timeout=spec.idle_timeout,
        ends_at=record.created + spec.lifetime if spec.lifetime else None,
    )


def _mounts(engine: Engine, box: Box) -> tuple[Mount, ...]:
    """Those of the keeper; what started it may still be there for a moment, and about to end it has none."""
    deadline = monotonic() + ENDING_SECONDS
    while (pid := engine.first_process(box)) is not None:
        found = mounts_of(pid)
        if found or monotonic() > deadline:
            return tuple(found)
        sleep(0.005)
    return ()


def _why(record: Record) -> tuple[str, ...]:
    asked, got = record.spec.engine, record.box.engine
    if engine_named(got).abilities()["isolation"].enforced == "no":
        return (f"engine {got} was asked for by name: nothing isolates what runs there",)
    if asked == EMBEDDED:
        return (f"engine {got} is the first that makes boxes on this machine",)
    return (f"engine {got} was asked for by name",)


def _limit(record: Record, name: str) -> LimitIs:
    spec = record.spec
    ability = engine_named(record.box.engine).abilities()[name]
    missing = str(record.box.state.get("missing", "")).split()
    return LimitIs(
        name=name,
        value=getattr(spec.limits, name),
        unit=BOUNDS[name].unit,
        asked=name in spec.explicit,
        enforced="no" if name in missing else ability.enforced,
        reason=ability.reason,
    )
