"""The whole examination, of this machine and of ones that lack something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.doctor.examination import examine_engine, examine_machine
from cloche.engines import engine_named
from cloche.engines.base import Fact
from cloche.engines.disks import Disks
from cloche.engines.machine import find_program
from cloche.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUNTIMES = ("crun", "runc")


@pytest.fixture
def fresh_engines() -> Iterator[None]:
    """What was found out before is forgotten, and what is found out here too."""
    engine_named.cache_clear()
    yield
    engine_named.cache_clear()


def hide(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> str | None:
        return None if name in names else find_program(name)

    for module in ("engines.machine", "engines.oci"):
        monkeypatch.setattr(f"cloche.{module}.find_program", find)


@pytest.mark.parametrize("engine", ["embedded:crun", "embedded:runc"])
def test_each_promise_is_tried_and_holds(home: Path, engine: str) -> None:
    del home
    examined = examine_engine(engine)
    assert {promise: trial for promise, trial in examined.trials.items() if trial.outcome != "held"} == {}
    assert examined.level == "hardened"


def test_nothing_is_left_but_what_the_next_box_gains_by(home: Path) -> None:
    report = examine_machine()
    assert report.is_well, report.of("problem")
    assert Sandbox.list() == []
    assert list((home / "boxes").iterdir()) == []
    assert [path.name for path in (home / "disks").iterdir() if path.name.startswith("17-")] == []


def test_the_engine_that_isolates_nothing_is_described_and_not_tried(home: Path) -> None:
    [host] = examine_machine(["host"]).engines
    assert {trial.outcome for trial in host.trials.values()} == {"not_tried"}
    assert not (home / "boxes").exists()


def test_without_a_runtime_each_is_told_with_its_repair(
    home: Path, fresh_engines: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del home, fresh_engines
    hide(RUNTIMES, monkeypatch)
    report = examine_machine(["embedded"])
    assert (report.is_well, report.embedded) == (False, None)
    assert [engine.level for engine in report.engines] == ["unusable", "unusable"]
    assert {finding.repair for finding in report.of("problem")} == {"apt-get install crun", "apt-get install runc"}


def test_one_runtime_is_enough_unless_the_other_is_asked_for(
    home: Path, fresh_engines: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del home, fresh_engines
    hide(("crun",), monkeypatch)
    report = examine_machine()
    assert (report.is_well, report.embedded) == (True, "embedded:runc")
    assert not examine_machine(["embedded:crun"]).is_well


def test_without_user_namespaces_no_box_is_tried(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repair = "sysctl -w user.max_user_namespaces=10000"
    none = Fact("user namespaces", False, "at most 0", repair)
    monkeypatch.setattr("cloche.engines.machine._user_namespaces", lambda: none)
    report = examine_machine(["embedded"])
    [problem] = report.of("problem")
    assert (problem.name, problem.repair) == ("user namespaces", repair)
    assert not (home / "boxes").exists()


def test_a_limit_that_is_not_in_force_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    take = Disks.take

    def take_larger(self: Disks, target: Path, *, disk_mb: int, inodes: int) -> None:
        take(self, target, disk_mb=4 * disk_mb, inodes=4 * inodes)

    monkeypatch.setattr(Disks, "take", take_larger)
    report = examine_machine(["embedded:crun"])
    assert [finding.name for finding in report.of("problem")] == ["disk_mb", "inodes"]
    assert "25 were to be had, and the limit is 17" in report.of("problem")[0].found
    assert report.engines[0].level == "weak"


def test_ids_that_are_not_given_back_are_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    from cloche.engines import ids

    release = ids.release
    kept: list[tuple[Path, str]] = []

    def keep(folder: Path, id: str) -> None:
        kept.append((folder, id))

    monkeypatch.setattr("cloche.doctor.traces.SECONDS", 0.05)
    monkeypatch.setattr(ids, "release", keep)
    try:
        trial = examine_engine("embedded:crun").trials["leaves_nothing"]
    finally:
        for folder, id in kept:
            release(folder, id)
    assert trial.outcome == "broken"
    assert "ids in /run/cloche/ids/" in trial.detail


def test_a_trial_that_cannot_be_made_says_why_and_the_others_go_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    from cloche.doctor import examination

    def fail(patient: object) -> list[str]:
        raise EngineError("no cgroup to read")

    row = examination.TRIALS["cpus"]._replace(find_faults=fail)
    monkeypatch.setattr(examination, "TRIALS", {**examination.TRIALS, "cpus": row})
    report = examine_machine(["embedded:crun"])
    [problem] = report.of("problem")
    assert problem.found == "on embedded:crun: it could not be tried: no cgroup to read"
    assert len(report.engines[0].promises("held")) == 16


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143)])
def test_who_interrupts_a_trial_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    from cloche.doctor import examination

    def interrupt(patient: object) -> list[str]:
        raise error

    row = examination.TRIALS["syscalls"]._replace(find_faults=interrupt)
    monkeypatch.setattr(examination, "TRIALS", {**examination.TRIALS, "syscalls": row})
    with pytest.raises(type(error)):
        examine_machine(["embedded:crun"])
    assert list((home / "boxes").iterdir()) == []
    assert [path.name for path in (home / "disks").iterdir() if path.name.startswith("17-")] == []


def test_boxes_that_cannot_be_made_for_the_trials_are_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOCHE_PROBE", "/nowhere/probe")
    examined = examine_engine("embedded:crun")
    assert {trial.outcome for trial in examined.trials.values()} == {"not_tried"}
    assert "make build" in examined.trials["isolation"].detail
    assert list((home / "boxes").iterdir()) == []


def test_a_data_folder_that_is_a_file_is_a_problem_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CLOCHE_HOME", str(tmp_path / "file" / "home"))
    report = examine_machine(["embedded:crun"])
    assert "disk" in {finding.name for finding in report.of("problem")}
    assert report.engines[0].level == "unusable"
