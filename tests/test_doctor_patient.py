"""The boxes that an engine is tried with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.doctor.patient import LIMITS, drop_disks, make_patient
from cloche.engines.abilities import ABILITIES
from cloche.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

CRUN = ABILITIES["embedded:crun"]


def test_they_are_small_and_of_both_kinds_and_leave_nothing(home: Path) -> None:
    with make_patient("embedded:crun", CRUN) as patient:
        usual, other = patient.usual.box, patient.other.box
        assert {name: getattr(usual.limits, name) for name in LIMITS} == LIMITS
        assert (usual.commands.run("id -u").stdout, other.commands.run("id -u").stdout) == ("1000\n", "0\n")
        assert other.commands.run("cat file").stdout == patient.mark == patient.canary.read_text()
    drop_disks()
    assert Sandbox.list() == []
    assert not patient.workspace.parent.exists()
    assert list((home / "boxes").iterdir()) == []
    assert list((home / "disks").iterdir()) == []


def test_where_the_second_one_fails_the_first_is_gone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Sandbox.create.__func__  # type: ignore[attr-defined]

    def create(cls: type[Sandbox], **options: object) -> Sandbox:
        if options.get("user") == "root":
            raise EngineError("no more")
        return real(cls, **options)

    monkeypatch.setattr(Sandbox, "create", classmethod(create))
    with pytest.raises(EngineError, match="no more"), make_patient("embedded:crun", CRUN):
        raise AssertionError("there is none")
    assert list((home / "boxes").iterdir()) == []


def test_where_there_is_no_root_both_are_of_the_ordinary_user(home: Path) -> None:
    del home
    abilities = {**CRUN, "user_root": ABILITIES["host"]["user_root"]}
    with make_patient("embedded:crun", abilities) as patient:
        assert not patient.other_is_root
        assert patient.other.box.commands.run("id -u").stdout == "1000\n"
