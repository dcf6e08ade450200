"""Programs of this machine and their versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche.doctor.versions import find_package, look_at_versions

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def install(folder: Path, name: str, says: str) -> Path:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    return program


def test_a_program_that_no_package_has_is_judged_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "podman", "echo podman version 5.6.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = [finding for finding in look_at_versions() if finding.name == "podman"]
    assert ["CVE-2025-9566" in finding.found for finding in found] == [True, False]
    assert found[0].repair == "update podman to 5.6.1"


def test_a_program_that_says_nothing_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "podman", "exit 3")
    monkeypatch.setenv("PATH", str(tmp_path))
    [finding] = [finding for finding in look_at_versions() if finding.name == "podman"]
    assert (finding.state, finding.repair) == ("note", "update it")


def test_what_is_not_installed_is_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_none(name: str) -> None:
        del name

    monkeypatch.setattr("cloche.doctor.versions.find_program", find_none)
    assert {finding.name for finding in look_at_versions()} == {"linux"}


def test_the_distribution_knows_its_own_programs_and_what_their_changelogs_name() -> None:
    package = find_package("/usr/bin/crun")
    assert package is not None
    assert package.name == "crun"
    assert package.named is not None
    assert "CVE-2022-27650" in package.named


def test_the_distribution_knows_nothing_of_a_file_of_ours(tmp_path: Path) -> None:
    assert find_package(str(install(tmp_path, "crun", "true"))) is None


def test_what_a_program_leaves_behind_when_it_is_asked_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path,
        "podman",
        'for it in "$HOME" "$TMPDIR" "$XDG_RUNTIME_DIR"; do touch "$it/left"; done; echo "$HOME" 9.9',
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    look_at_versions()
    assert list(tmp_path.rglob("left")) == []
