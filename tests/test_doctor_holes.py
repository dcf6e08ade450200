"""What a version means."""

from __future__ import annotations

import pytest

from cloche.doctor.holes import HOLES, Package, find_ids, find_version, is_mended, judge

LINKS = "CVE-2025-31133"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1.1.5+ds1", (1, 1, 5, 0, 0)),
        ("v1.20", (1, 20, 0, 0, 0)),
        ("1.4.0-rc.3", (1, 4, 0, -1, 3)),
        ("1.4.0~rc.3+ds", (1, 4, 0, -1, 3)),
        ("6.18.44-fc-v657", (6, 18, 44, 0, 0)),
        ("5:29.5.1-1~debian.12", (29, 5, 1, 0, 0)),
        ("unknown", None),
    ],
)
def test_a_version_is_found_in_what_programs_say(text: str, found: tuple[int, ...] | None) -> None:
    assert find_version(text) == found


@pytest.mark.parametrize(
    ("version", "is_good"),
    [
        ("1.1.12", False),
        ("1.1.15", False),
        ("1.2.7", False),
        ("1.2.8", True),
        ("1.3.2", False),
        ("1.3.3", True),
        ("1.4.0-rc.2", False),
        ("1.4.0-rc.3", True),
        ("1.4.0", True),
        ("1.5.0", True),
        ("2.0.0", True),
    ],
)
def test_each_series_of_runc_has_a_first_good_version(version: str, is_good: bool) -> None:
    [hole] = [hole for hole in HOLES["runc"] if LINKS in hole.ids]
    found = find_version(version)
    assert found is not None
    assert is_mended(hole, found) is is_good


@pytest.mark.parametrize(
    ("program", "version", "states"),
    [
        ("runc", "1.1.11", ["warning", "warning", "note"]),
        ("runc", "1.3.3", ["note"]),
        ("runc", "1.4.3", ["ok"]),
        ("crun", "1.8.1", ["note"]),
        ("crun", "1.21", ["note"]),
        ("crun", "1.27", ["ok"]),
        ("docker", "28.2.2", ["note"]),
        ("docker", "29.5.1", ["ok"]),
        ("podman", "3.4.4", ["note"]),
        ("podman", "5.6.0", ["note", "note"]),
        ("containerd", "1.7.33", ["ok"]),
        ("containerd", "2.0.5", ["note"]),
        ("linux", "6.18.44", ["ok"]),
        ("linux", "6.18.21", ["warning", "warning", "warning"]),
        ("linux", "6.12.90", ["note"]),
        ("linux", "7.1.0", ["ok"]),
        ("runc", "some build", ["note"]),
    ],
)
def test_what_is_open_is_a_warning_and_what_does_not_reach_a_box_is_a_note(
    program: str, version: str, states: list[str]
) -> None:
    assert [finding.state for finding in judge(program, version, None)] == states


def test_every_finding_but_a_good_one_names_the_hole_and_its_repair() -> None:
    for program in HOLES:
        for finding in judge(program, "0.1", None):
            assert "CVE-" in finding.found
            assert finding.repair


def test_a_distributions_fix_shows_in_its_changelog_and_not_in_the_number() -> None:
    package = Package("runc", "1.1.5+ds1-1+deb12u1", frozenset(("CVE-2024-21626", "CVE-2026-41579")))
    [finding] = judge("runc", "1.1.5+ds1", package)
    assert finding.state == "warning"
    assert "the changelog of runc 1.1.5+ds1-1+deb12u1 does not name CVE-2025-31133" in finding.found
    assert "apt-get" in finding.repair


def test_a_distribution_that_names_each_hole_has_mended_each() -> None:
    named = frozenset(id for hole in HOLES["runc"] for id in find_ids(hole.ids))
    assert [finding.state for finding in judge("runc", "1.1.5", Package("runc", "1.1.5-9", named))] == ["ok"]


def test_without_a_changelog_nothing_can_be_told() -> None:
    findings = judge("runc", "1.1.5", Package("runc", "1.1.5-1", None))
    assert {finding.state for finding in findings} == {"note"}
    assert "the number of runc 1.1.5-1 does not tell" in findings[0].found


def test_a_distributions_kernel_is_noted_as_its_changelog_names_commits() -> None:
    findings = judge("linux", "6.1.0-42-amd64", Package("linux-image-6.1.0-42-amd64", "6.1.159-1", frozenset()))
    assert {finding.state for finding in findings} == {"note"}
