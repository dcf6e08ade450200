"""What a later process needs to know."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from cloche.engines.base import Box
from cloche.models import Limits, SandboxSpec
from cloche.sandboxes.records import Identity, Record, RuntimeChoice, load, save

if TYPE_CHECKING:
    from pathlib import Path


def make_record(folder: Path) -> Record:
    return Record(
        box=Box(id="a" * 20, engine="host", folder=folder, socket=folder / "s", state={"pid": 7, "started": "9"}),
        spec=SandboxSpec(limits=Limits(cpus=0.5), env={"SECRET": "\udcff"}, explicit=frozenset(("cpus",))),
        runtime=RuntimeChoice(name="python3.12", version="3.12", path="/usr/bin/python3.12", note="so"),
        env={"PATH": "/usr/bin"},
        shell="/bin/bash",
        cwd=None,
        host_home=None,
        created=1.5,
    )


def test_all_of_it_comes_back(tmp_path: Path) -> None:
    record = make_record(tmp_path)
    save(record)
    assert load(tmp_path) == record


def test_it_is_for_its_owners_eyes(tmp_path: Path) -> None:
    save(make_record(tmp_path))
    assert (tmp_path / "box.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["box.json"]


def test_none_and_another_versions_are_not_there(tmp_path: Path) -> None:
    assert load(tmp_path) is None
    assert load(tmp_path / "none") is None
    (tmp_path / "box.json").write_text(json.dumps({"format": 99}))
    assert load(tmp_path) is None


def test_users_are_who_they_are_inside(tmp_path: Path) -> None:
    record = make_record(tmp_path)
    assert record.identity("user") == Identity(uid=1000, gid=1000, home="/home/user")
    assert record.identity("root") == Identity(uid=0, gid=0, home="/root")
    assert replace(record, host_home="/h").identity("user").home == "/h"
