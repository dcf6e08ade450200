"""Each trial finds nothing wrong with a box, and what is wrong where there is none."""

from __future__ import annotations

import os
import pwd
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox, settings
from cloche.doctor import trials
from cloche.doctor.patient import Patient, make_patient
from cloche.doctor.probe import PATH, Probe
from cloche.doctor.trials import TRIALS
from cloche.engines.abilities import ABILITIES, PROMISES
from cloche.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def patient() -> Iterator[Patient]:
    """Two boxes as they should be."""
    with tempfile.TemporaryDirectory(prefix="cl-") as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder).chmod(0o711)
        patch.setenv("CLOCHE_HOME", folder)
        with make_patient("embedded:runc", ABILITIES["embedded:runc"]) as made:
            yield made


@pytest.fixture
def open_patient(patient: Patient) -> Iterator[Patient]:
    """One that is not isolated at all."""
    with Sandbox.create(engine="host") as box:
        yield replace(patient, usual=Probe(box))
    os.unlink(PATH)


@pytest.fixture
def wrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes are made from a config.json in which one call is allowed, and nothing is masked."""
    edit = 's/"keyctl", //; s/"accept", /"accept", "keyctl", /; s/"maskedPaths": \\[[^]]*\\]/"maskedPaths": []/'
    wrapper = tmp_path / "launch"
    wrapper.write_text(f'#!/bin/sh\nsed -i \'{edit}\' "$2/config.json"; exec {settings.launch_path()} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CLOCHE_LAUNCH", str(wrapper))


class Saying(Probe):
    """One whose answers are given."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers

    def ask(self, *words: str) -> dict[str, str]:
        return dict.fromkeys(words[1:], self.answers[words[0]])


def test_every_promise_has_its_trial() -> None:
    assert set(TRIALS) | {"leaves_nothing"} == set(PROMISES)


@pytest.mark.parametrize("promise", TRIALS)
def test_a_box_as_it_should_be_is_without_fault(promise: str, patient: Patient) -> None:
    assert TRIALS[promise].find_faults(patient) == []


@pytest.mark.parametrize(
    ("promise", "faults"),
    [
        ("isolation", ["/proc/self/ns/pid is this machine's", "/canary of this machine was read"]),
        ("own_uids", ["outside: "]),
        ("network_none", ["its interfaces are ", "a port of this machine was reached", "abstract socket"]),
        ("no_privileges", ["CapEff is 0", "NoNewPrivs is 0", "setuid 0 worked"]),
        ("syscalls", ["Seccomp is 0", "unshare user reached the kernel", "bpf reached the kernel"]),
    ],
)
def test_what_is_not_isolated_is_found(promise: str, faults: list[str], open_patient: Patient) -> None:
    found = "; ".join(TRIALS[promise].find_faults(open_patient))
    assert [fault for fault in faults if fault not in found] == []


@pytest.mark.usefixtures("wrap")
def test_one_call_that_passes_and_files_that_are_not_masked_are_found(home: Path, patient: Patient) -> None:
    del home
    with Sandbox.create(engine="embedded:runc") as box:
        weaker = replace(patient, usual=Probe(box))
        assert trials.try_calls(weaker) == ["keyctl reached the kernel"]
        assert "/proc/cmdline tells of this machine" in trials.try_isolation(weaker)


def test_a_user_whom_this_machine_knows_is_found(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = int(patient.usual.show("/proc/self/uid_map").split()[1]) + 1000
    everybody = [pwd.struct_passwd(("eve", "x", uid, uid, "", "/", "/"))]
    monkeypatch.setattr(pwd, "getpwall", lambda: everybody)
    assert trials.try_own_uids(patient) == [f"the box's user is uid {uid} outside: eve"]


def test_processes_that_cannot_be_seen_are_not_taken_for_good(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def see_nothing(mark: str) -> list[int]:
        del mark
        return []

    monkeypatch.setattr(trials, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(trials, "marked_processes", see_nothing)
    with pytest.raises(SandboxError, match="hidepid"):
        trials.try_own_uids(patient)


def test_a_root_that_is_none_and_one_with_more_is_found(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trials.try_root(replace(patient, other=patient.usual))[0].startswith("Uid is 1000")
    monkeypatch.setattr(trials, "ROOT_CAPABILITIES", {"CAP_CHOWN": 0})
    assert "CapEff holds more than the six" in trials.try_root(patient)


def test_a_workspace_that_can_be_written_or_is_not_there_is_found(home: Path, patient: Patient, tmp_path: Path) -> None:
    del home
    (tmp_path / "work").mkdir()
    with Sandbox.create(workspace=f"{tmp_path / 'work'}:rw") as box:
        assert trials.try_workspace(replace(patient, other=Probe(box))) == [
            "the folder's file was not read",
            "a file was made in a folder that is read-only",
        ]


def test_an_image_that_can_be_written_is_found(patient: Patient) -> None:
    assert trials.try_image(replace(patient, other=Saying(make="done"))) == ["a file was made in /usr/bin"]
