"""Where things are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche import settings
from cloche.errors import EngineError, InvalidRequest

if TYPE_CHECKING:
    from pathlib import Path


def test_the_home_is_made_so_that_others_pass_but_do_not_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOCHE_HOME", str(tmp_path / "a" / "b"))
    assert settings.home().stat().st_mode & 0o777 == 0o711


def test_a_relative_home_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOCHE_HOME", "somewhere")
    with pytest.raises(InvalidRequest, match="'somewhere'; an absolute path"):
        settings.home()


@pytest.mark.parametrize(("home", "why"), [("/dev/null", "File exists"), ("/dev/null/x", "Not a directory")])
def test_a_home_that_can_be_no_folder_is_refused(monkeypatch: pytest.MonkeyPatch, home: str, why: str) -> None:
    monkeypatch.setenv("CLOCHE_HOME", home)
    with pytest.raises(InvalidRequest, match=f"data, '{home}', can't be made: {why}; name another in CLOCHE_HOME"):
        settings.home()


def test_an_ordinary_user_has_a_home_among_their_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOCHE_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert settings.home() == tmp_path / "cloche"


def test_a_missing_keeper_is_told_with_its_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOCHE_KEEPER", str(tmp_path / "none"))
    with pytest.raises(EngineError, match="make build"):
        settings.keeper_path()


def test_each_program_has_a_variable_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOCHE_LAUNCH", "/bin/true")
    monkeypatch.setenv("CLOCHE_PROBE", "/bin/false")
    assert (str(settings.launch_path()), str(settings.probe_path())) == ("/bin/true", "/bin/false")


def test_who_has_no_entry_in_passwd_has_a_number_and_the_home_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 2_000_000_123)
    monkeypatch.setenv("HOME", "/here")
    assert (settings.user_name(), settings.user_home()) == ("2000000123", "/here")
    monkeypatch.delenv("HOME")
    with pytest.raises(EngineError, match="set HOME to a folder"):
        settings.user_home()
