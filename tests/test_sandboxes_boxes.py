"""Making, finding and deleting; and that a failure leaves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.errors import EngineError, RuntimeNotFound, SandboxNotFound, Unsupported
from cloche.sandboxes import boxes, records
from cloche.sandboxes.specs import make_spec
from tests.test_images_interpreters import make_program

if TYPE_CHECKING:
    from pathlib import Path


def test_a_box_is_made_found_and_deleted(home: Path) -> None:
    record = boxes.create(make_spec(limits={}, engine="host"))
    assert boxes.find(record.box.id) == record
    assert boxes.all_boxes() == [record]
    assert boxes.delete(record)
    assert not boxes.delete(record)
    assert boxes.all_boxes() == []
    assert list((home / "boxes").iterdir()) == []


def test_a_box_is_found_by_its_name_until_it_ends(home: Path) -> None:
    del home
    record = boxes.create(make_spec(limits={}, engine="host", name="mine"))
    assert boxes.find("mine") == record
    boxes.delete(record)
    with pytest.raises(SandboxNotFound, match="there is no sandbox 'mine'"):
        boxes.find("mine")
    with pytest.raises(SandboxNotFound, match="it was deleted"):
        boxes.find(record.box.id)


def test_ids_are_random_words_that_host_names_can_hold(home: Path) -> None:
    del home
    made = [boxes.create(make_spec(limits={}, engine="host")) for _ in range(3)]
    assert len({record.box.id for record in made}) == 3
    assert all(record.box.id.isalnum() and len(record.box.id) == 20 for record in made)
    for record in made:
        boxes.delete(record)


def test_a_refusal_makes_nothing(home: Path) -> None:
    with pytest.raises(Unsupported):
        boxes.create(make_spec(limits={"memory_mb": 64}, engine="host"))
    with pytest.raises(RuntimeNotFound):
        boxes.create(make_spec(limits={}, engine="host"), "cobol")
    assert not list(home.glob("boxes/*"))


@pytest.mark.parametrize("step", ["cloche.settings.keeper_path", "cloche.sandboxes.records.save"])
def test_each_step_that_fails_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def fail(*_: object) -> None:
        raise EngineError("this step fails")

    monkeypatch.setattr(step, fail)
    with pytest.raises(EngineError, match="this step fails"):
        boxes.create(make_spec(limits={}, engine="host"))
    assert not list(home.glob("boxes/*"))
    assert [row.state for row in boxes.rows().present()] == []


@pytest.mark.parametrize("id", ["", "..", "a" * 20, "../boxes/" + "a" * 20, "a" * 20 + "\n"])
def test_what_is_no_id_finds_nothing(home: Path, id: str) -> None:
    del home
    with pytest.raises(SandboxNotFound):
        boxes.find(id)


def test_a_folder_that_is_no_box_is_passed_over(home: Path) -> None:
    (home / "boxes" / ("b" * 20)).mkdir(parents=True)
    assert boxes.all_boxes() == []


def test_the_runtime_comes_after_what_the_user_installs(home: Path) -> None:
    del home
    record = boxes.create(make_spec(limits={}, engine="host"))
    folders = record.env["PATH"].split(":")
    assert folders[0] == f"{record.host_home}/.local/bin"
    assert record.runtime.path.startswith(folders[1])
    assert records.load(record.box.folder) == record
    boxes.delete(record)


@pytest.mark.parametrize(("runtime", "version"), [("node77", "v77.1.2"), ("node", "v")])
def test_without_isolation_a_runtime_is_where_this_machine_has_it(home: Path, runtime: str, version: str) -> None:
    make_program(home / "runtimes/node-77.1.2/bin/node", "#!/bin/sh\necho v77.1.2\n")
    with Sandbox.create(runtime, engine="host") as box:
        assert box.commands.run("node --version").stdout.startswith(version)
        assert box.commands.run([box.runtime.path, "--version"]).stdout.startswith(version)
