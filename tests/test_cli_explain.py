"""`cloche explain`, of real boxes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cloche import Sandbox
from cloche.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> Path:
    return home


def told(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["explain", "--json", *words]) == 0
    return json.loads(capfd.readouterr().out)


def test_a_new_sandbox_is_told_as_it_would_be_and_is_gone(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = told(capfd, "--memory", "99", "--runtime", "bash", "--env", "SECRET=hush", "--", "ls | wc -l")
    limits = {limit["name"]: limit for limit in found["limits"]}
    assert (limits["memory_mb"]["value"], limits["memory_mb"]["asked"], limits["pids"]["asked"]) == (99, True, False)
    assert {limit["enforced"] for limit in limits.values()} == {"kernel", "keeper"}
    assert found["command"] == ["/bin/bash", "-c", "ls | wc -l"]
    assert (found["isolated"], found["fresh"], found["uid"], found["cwd"]) == (True, True, 1000, "/home/user")
    assert "SECRET" in found["env"]
    assert "hush" not in json.dumps(found)
    assert Sandbox.list() == []
    assert list((home / "boxes").iterdir()) == []


def test_mounts_are_those_that_the_box_has(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with Sandbox.create(name="one", workspace=f"{tmp_path}:rw", lifetime=0) as box:
        mounts = {mount["path"]: mount for mount in told(capfd, "one")["mounts"]}
        inside = box.files.read("/proc/self/mountinfo").splitlines()
        assert set(mounts) == {line.split()[4] for line in inside}
        assert (mounts["/workspace"]["source"], mounts["/workspace"]["access"]) == (str(tmp_path), "rw")
        assert (mounts["/usr"]["source"], mounts["/usr"]["access"]) == ("/usr", "ro")
        assert main(["explain", "one", "--json", "ls", "-l"]) == 0
        assert json.loads(capfd.readouterr().out)["command"] == ["ls", "-l"]
        assert main(["explain", "one", "--", "true"]) == 0
        text = capfd.readouterr().out
        assert text.startswith(
            "where      the sandbox one; engine embedded:crun\nwhy        engine embedded:crun is the"
        )
        assert "its size is not limited" in text
        assert "ends when nobody has used it for 10m, without end" in text


def test_no_isolation_is_said_in_words_that_nobody_overlooks(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--engine", "host"]) == 0
    text = capfd.readouterr().out
    assert "THIS MACHINE, without isolation, in a folder of its own, which is gone afterwards; engine host\n" in text
    assert text.count("NOT ENFORCED") == 5


def test_options_and_an_id_exclude_each_other(capfd: pytest.CaptureFixture[str]) -> None:
    for words in (["one", "--memory", "99"], ["--memory", "99", "one"]):
        assert main(["explain", *words]) == 125
        assert "--memory would be those of a new sandbox" in capfd.readouterr().err
    assert main(["explain", "nowhere"]) == 125
    assert "there is no sandbox 'nowhere'" in capfd.readouterr().err
