from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cloche.images import etc


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    etc.fill_etc(tmp_path)
    return tmp_path


def test_what_programs_need_is_there(filled: Path) -> None:
    assert (filled / "ld.so.cache").exists()
    for name in ("ssl/certs", "alternatives", "services", "protocols", "localtime", "os-release"):
        assert os.path.lexists(filled / name) == os.path.lexists(Path("/etc", name)), name
    assert (filled / "nsswitch.conf").read_text().startswith("passwd: files\n")


def test_no_secret_and_nothing_of_this_machine_is_there(filled: Path) -> None:
    for name in ("shadow", "gshadow", "ssl/private", "ssh", "sudoers", "machine-id", "npmrc", "pip.conf", "netrc"):
        assert not (filled / name).exists(), name
    assert (filled / "hostname").read_text() == "cloche\n"
    assert {line.split(":")[0] for line in (filled / "passwd").read_text().splitlines()} == {
        "root",
        "nobody",
        "user",
    }


def test_no_file_in_it_was_for_some_only_or_holds_a_key(filled: Path) -> None:
    for path in filled.rglob("*"):
        if path.is_symlink() or path.is_dir() or path.name in etc.OWN:
            continue
        source = Path("/etc") / path.relative_to(filled)
        assert stat.S_IMODE(source.stat().st_mode) & 0o004
        assert b"PRIVATE KEY-----" not in path.read_bytes()


def test_links_lead_to_the_system_and_nowhere_else(filled: Path) -> None:
    for path in filled.rglob("*"):
        if path.is_symlink():
            source = Path("/etc") / path.relative_to(filled)
            assert str(source.resolve()).startswith(("/usr/", "/etc/"))


def test_a_key_a_private_file_and_a_link_elsewhere_are_left_out(tmp_path: Path) -> None:
    source, target = tmp_path / "from/fonts", tmp_path / "to"
    source.mkdir(parents=True)
    target.mkdir()
    (source / "open").write_text("for all")
    (source / "private").write_text("for some")
    (source / "private").chmod(0o640)
    (source / "key.pem").write_text("-----BEGIN PRIVATE KEY-----\n")
    (source / "link").symlink_to("/root/secret")
    etc.fill_etc(target, copied_from=str(source.parent))
    assert [path.name for path in (target / "fonts").iterdir()] == ["open"]
