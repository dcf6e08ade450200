"""Where one step of making a box fails there is no box, and nothing of it is left (promise 25)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox, settings
from cloche.engines import launcher, oci
from cloche.errors import EngineError
from tests.security.lab import RUN, wait_until
from tests.security.test_leftovers import folders_of_cgroups, look_around

if TYPE_CHECKING:
    from collections.abc import Callable

    Wrap = Callable[[str], None]

MOST_STEPS = 60


@pytest.fixture
def wrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wrap:
    """Puts a shell script in the launcher's place; `$launch` in it is the real one."""

    def put(script: str) -> None:
        launch = settings.launch_path()
        wrapper = tmp_path / "launch"
        wrapper.write_text(f"#!/bin/sh\nlaunch='{launch}'\n{script}\n")
        wrapper.chmod(0o755)
        monkeypatch.setenv("CLOCHE_LAUNCH", str(wrapper))

    return put


def traces(home: Path) -> tuple[object, ...]:
    leases = sorted(path.name for path in (RUN / "ids").iterdir())
    states = sorted(str(path) for kind in ("crun", "runc") if (RUN / kind).exists() for path in (RUN / kind).iterdir())
    boxes = sorted(path.name for path in (home / "boxes").iterdir())
    return look_around(home, set()), leases, states, boxes, sorted(folders_of_cgroups())


def make_box(engine: str) -> str:
    """What comes of it; never a box that stays."""
    try:
        Sandbox.create(engine=engine).kill()
    except EngineError:
        return "refused"
    return "made"


@pytest.mark.promise("isolation")
def test_each_step_of_the_launcher_fails_closed(
    engine: str, lab_home: Path, wrap: Wrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sandbox.create(engine=engine).kill()
    real = settings.launch_path()
    before = traces(lab_home)
    told: list[str] = []
    for step in range(1, MOST_STEPS):
        monkeypatch.setenv("CLOCHE_LAUNCH", str(real))
        wrap(f'exec "$launch" --fail-at {step} "$@"')
        try:
            Sandbox.create(engine=engine).kill()
        except EngineError as error:
            told.append(str(error))
            wait_until(lambda: traces(lab_home) == before, f"nothing is left of: {error}")
            continue
        break
    assert len(told) >= 12
    assert len({text.split(":")[1] for text in told}) >= 12
    assert all("this failure was asked for" in text for text in told)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 3", "exit code 3"),
        ("kill -9 $$", "could not be made"),
        ("echo 'no seccomp here' >&2; exit 1", "no seccomp here"),
        ('shift 2; exec "$launch" "$@"', "an option is missing"),
    ],
)
def test_a_launcher_that_goes_wrong_makes_no_box(
    engine: str, lab_home: Path, wrap: Wrap, script: str, words: str
) -> None:
    Sandbox.create(engine=engine).kill()
    before = traces(lab_home)
    wrap(script)
    with pytest.raises(EngineError, match=words):
        Sandbox.create(engine=engine)
    wait_until(lambda: traces(lab_home) == before, "nothing is left")


def test_a_launcher_that_hangs_is_ended(
    engine: str, lab_home: Path, wrap: Wrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sandbox.create(engine=engine).kill()
    before = traces(lab_home)
    monkeypatch.setattr(launcher.run_launcher, "__defaults__", (0.5,))
    wrap("exec sleep 60")
    with pytest.raises(EngineError, match="did not end"):
        Sandbox.create(engine=engine)
    wait_until(lambda: traces(lab_home) == before, "nothing is left")


@pytest.mark.parametrize(
    "edit",
    [
        # A filter that was compiled before is used as it is.
        's/run.oci.seccomp_bpf_data/none/; s/"SCMP_ACT_ERRNO"/"SCMP_ACT_NONSENSE"/g',
        's/"CAP_KILL"/"CAP_NONSENSE"/g; s/"noNewPrivileges": true/"noNewPrivileges": false/',
        's/"type": "ipc"/"type": "nonsense"/',
        's#"path": "/run/cloche/userns"#"path": "/run/cloche/nothing"#',
        's/"limit": [0-9]*/"limit": "none"/g',
        's#"destination": "/dev/shm", "type": "tmpfs"#"destination": "/dev/shm", "type": "nonsense"#',
    ],
)
def test_a_runtime_that_cannot_do_what_the_config_says_makes_no_box(
    engine: str, lab_home: Path, wrap: Wrap, edit: str
) -> None:
    Sandbox.create(engine=engine).kill()
    before = traces(lab_home)
    wrap(f'sed -i -E \'{edit}\' "$2/config.json"; exec "$launch" "$@"')
    assert make_box(engine) == "refused"
    wait_until(lambda: traces(lab_home) == before, "nothing is left")


@pytest.mark.promise("own_uids")
def test_without_ids_left_there_is_no_box(engine: str, lab_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cloche.engines import ids

    Sandbox.create(engine=engine).kill()
    monkeypatch.setattr(ids, "COUNT", 1)
    other = "0" * 20
    ids.lease(RUN / "ids", other)
    try:
        before = traces(lab_home)
        with pytest.raises(EngineError, match="ranges of user ids are in use"):
            Sandbox.create(engine=engine)
        assert traces(lab_home) == before
    finally:
        ids.release(RUN / "ids", other)


def test_without_cgroup_limits_there_is_no_box(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from cloche.engines.cgroups import Hierarchies

    none = Hierarchies(v1={}, v2=None, v2_controllers=frozenset())
    monkeypatch.setattr(oci, "find_hierarchies", lambda: none)
    with pytest.raises(EngineError, match="cpu, memory, pids"):
        oci.OciEngine(engine.partition(":")[2]).create("a" * 20, Path("/nowhere"), None, None)  # type: ignore[arg-type]
