"""The trials of limits find one that does not hold: on a box with other ones than they think."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloche import Sandbox
from cloche.doctor import limits
from cloche.doctor.patient import Patient, make_patient
from cloche.doctor.probe import Probe
from cloche.engines.abilities import ABILITIES
from cloche.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloche.models import CommandResult


@pytest.fixture(scope="module")
def loose() -> Iterator[Patient]:
    """Its box may have much more of everything."""
    with tempfile.TemporaryDirectory(prefix="cl-") as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder).chmod(0o711)
        patch.setenv("CLOCHE_HOME", folder)
        most: dict[str, Any] = {"memory_mb": 512, "disk_mb": 256, "inodes": 8192, "pids": 200, "output_bytes": 4 << 20}
        cpus = float(len(os.sched_getaffinity(0)))
        with (
            make_patient("embedded:crun", ABILITIES["embedded:crun"]) as patient,
            Sandbox.create(engine="embedded:crun", cpus=cpus, **most) as box,
        ):
            yield replace(patient, usual=Probe(box))


@pytest.mark.parametrize(
    ("find_faults", "fault"),
    [
        (limits.try_memory, "96 were to be had, and the limit is 64"),
        (limits.try_disk, "25 were to be had, and the limit is 17"),
        (limits.try_inodes, "466 were to be had, and the limit is 311"),
        (limits.try_pids, "36 were to be had, and the limit is 24"),
        (limits.try_output, "1048576 octets were kept, and the limit is 65536"),
        (limits.try_cpus, " s of CPU time in 0."),
    ],
)
def test_a_limit_that_does_not_hold_is_found(
    find_faults: Callable[[Patient], list[str]], fault: str, loose: Patient
) -> None:
    assert fault in "; ".join(find_faults(loose))


def test_what_was_taken_is_given_back(loose: Patient) -> None:
    limits.try_disk(loose)
    limits.try_inodes(loose)
    assert not loose.usual.box.files.exists(limits.FOLDER)


def test_cpu_time_that_nobody_counts_cannot_be_tried(home: Path, loose: Patient) -> None:
    del home
    with Sandbox.create(engine="host") as box:
        probe = object.__new__(Probe)
        probe.box = box
        with pytest.raises(SandboxError, match="nothing accounts"):
            limits.try_cpus(replace(loose, usual=_Quiet(probe)))


class _Quiet(Probe):
    """One that runs nothing."""

    def __init__(self, probe: Probe) -> None:
        self.box = probe.box

    def run(self, *words: str, timeout: float | None = None) -> CommandResult:
        return self.box.commands.run(["true"])


def test_a_time_limit_that_comes_late_or_never_is_found(loose: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Probe.run

    def run_longer(self: Probe, *words: str, timeout: float) -> CommandResult:
        return run(self, *words, timeout=2 * timeout)

    def run_something_else(self: Probe, *words: str, timeout: float) -> CommandResult:
        del words, timeout
        return run(self, "flood", "1")

    monkeypatch.setattr(limits, "LATE_SECONDS", 0.05)
    monkeypatch.setattr(Probe, "run", run_longer)
    assert limits.try_timeout(loose) == ["it took 0.6 s, and the limit is 0.3 s"]
    monkeypatch.setattr(Probe, "run", run_something_else)
    assert limits.try_timeout(loose) == ["the result says of no limit"]


def test_a_process_that_outlives_its_execution_is_found(loose: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloche.doctor.traces.SECONDS", 0.05)
    command = [sys.executable, "-c", "input()", f"{loose.mark}-tree"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as survivor:
        assert limits.try_kill_tree(loose) == [f"process {survivor.pid} outlived it"]
