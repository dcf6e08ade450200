"""What root prepares for an ordinary user: the steps, without taking them (tests/rootless takes them)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloche.engines import prepare
from cloche.engines.cgroups import Hierarchies
from cloche.errors import EngineError, NotFound


def test_an_unknown_user_is_told_with_how_to_make_one() -> None:
    with pytest.raises(NotFound, match="useradd --create-home no-such-user"):
        prepare.steps_for("no-such-user")


def test_each_step_says_what_it_found_and_what_it_would_do() -> None:
    for step in prepare.steps_for("nobody"):
        assert step.found
        assert step.does


def test_new_ids_begin_behind_all_that_were_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "subuid").write_text("a:100000:65536\nb:165536:65536\n")
    monkeypatch.setattr(prepare, "ID_FILES", (tmp_path / "subuid", tmp_path / "missing"))
    [step] = [step for step in prepare.steps_for("nobody") if step.name == "user ids"]
    assert not step.is_done
    assert "--add-subuids 231072-296607 --add-subgids 231072-296607 nobody" in step.does


def test_on_v2_the_user_s_service_manager_is_told_to_delegate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    v2 = Hierarchies({}, Path("/v2"), frozenset({"cpu", "memory", "pids"}))
    monkeypatch.setattr(prepare, "all_hierarchies", lambda: v2)
    monkeypatch.setattr(prepare, "SYSTEMD", tmp_path)
    monkeypatch.setattr(prepare, "UNITS", tmp_path / "units")
    steps = {step.name: step for step in prepare.steps_for("nobody")}
    drop_in = tmp_path / "units" / "user@65534.service.d" / "cloche.conf"
    assert steps["cgroups"].does == f"writes {drop_in}"
    assert steps["boxes outlive the session"].does == "loginctl enable-linger nobody"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text(prepare.DELEGATE)
    assert next(step for step in prepare.steps_for("nobody") if step.name == "cgroups").is_done


def test_a_command_that_fails_says_what_it_said() -> None:
    step = prepare.Step("x", False, "", "", lambda: prepare._run("usermod", "--no-such-option"))  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(EngineError, match="`usermod --no-such-option` failed"):
        step.take()
