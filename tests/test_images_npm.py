"""Node.js by npm: the machine's own, with a registry of the test's. tests/test_cli_runtimes.py has a real Node.js."""

from __future__ import annotations

import os
import shlex
import stat
import tarfile
from typing import TYPE_CHECKING

import pytest

from cloche.errors import ClocheError, EngineError, InvalidRequest, RuntimeNotFound
from cloche.images.npm import NPM_FOR, PACKAGES, get
from cloche.images.scratch import Scratch, make_scratch
from tests.registry import Registry, node, pack, serve, variables
from tests.test_images_members import FOLDER, HARD, LINK, member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = PACKAGES[os.uname().machine]
NPM = pack(member("package/bin/npm-cli.js"), member("package/bin/npx-cli.js"))


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    packages = {PACKAGE: {"22.4.1": node(), "22.5.0": node(), "23.0.0": node()}, "npm": {"10.9.0": NPM, "11.1.0": NPM}}
    registry = Registry(packages)
    registry.go_on.set()
    with serve(registry) as found:
        for name, value in {**found, "npm_config_cache": str(tmp_path / "cache")}.items():
            monkeypatch.setenv(name, value)
        yield registry


@pytest.fixture
def scratch(home: Path) -> Iterator[Scratch]:
    with make_scratch(home) as scratch:
        yield scratch


def test_the_newest_of_a_version_comes_with_the_npm_that_fits_it(registry: Registry, scratch: Scratch) -> None:
    del registry
    told: list[str] = []
    got = get("22", scratch, told.append)
    assert got.name == "node-22.5.0"
    assert (got.folder / "bin/node").stat().st_mode & 0o777 == 0o755
    assert (got.folder / "bin/npm").resolve() == got.folder / "lib/node_modules/npm/bin/npm-cli.js"
    assert os.access(got.folder / "bin/npx", os.X_OK)
    assert told == [f"fetching {PACKAGE}@22 with npm", "fetching npm@10, which fits node 22.5.0"]


@pytest.mark.parametrize(
    ("node", "npm"),
    [
        ("26.1.0", "11"),
        ("24.0.0", "11"),
        ("22.1.0", "10"),
        ("20.5.0", "10"),
        ("20.4.9", "9"),
        ("16.0.0", "8"),
        ("14.21.3", "6"),
        ("4.0.0", "6"),
    ],
)
def test_each_node_has_an_npm_that_works_with_it(node: str, npm: str) -> None:
    numbers = tuple(map(int, node.split(".")))
    assert next(name for first, name in NPM_FOR if numbers >= first) == npm


@pytest.mark.parametrize(
    ("version", "there"), [("99", r"there are 22, 23\Z"), ("22.9", r"there are 22\.4\.1, 22\.5\.0\Z")]
)
def test_a_version_that_is_not_there_is_refused_with_those_that_are(
    registry: Registry, scratch: Scratch, version: str, there: str
) -> None:
    del registry
    with pytest.raises(RuntimeNotFound, match=there):
        get(version, scratch, print)


def answer_as_npm(folder: Path, monkeypatch: pytest.MonkeyPatch, *, pack: str, view: str) -> None:
    """A program in its place: what older and newer ones print is not what this machine's prints."""
    program = folder / "npm"
    program.write_text(
        f"#!/bin/sh\ncase $1 in pack) printf {shlex.quote(pack)} >&2; exit 1;; esac\nprintf {shlex.quote(view)}\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


NO_SUCH_VERSION = '{"error": {"code": "ETARGET", "summary": "none"}}'


@pytest.mark.parametrize(
    ("pack", "view", "message"),
    [
        (NO_SUCH_VERSION, '"22.5.0"', r"there are 22\Z"),
        (NO_SUCH_VERSION, '["22.5.0", 7, "23.1.0-rc"]', r"there are 22\Z"),
        (NO_SUCH_VERSION, "{}", r"there are none at all\Z"),
        (NO_SUCH_VERSION, "npm warn", "does not tell what it has: it answered 'npm warn', which is no JSON"),
        (NO_SUCH_VERSION, "", "it answered '', which is no JSON"),
        (r'{"error": {"code": "ETARGET", "summary": "\\x"}}', '"22.5.0"', r"there are 22\Z"),
        (r"\377 is no text", "", "npm said \ufffd is no text"),
    ],
)
def test_what_npm_answers_may_be_anything(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: str, view: str, message: str
) -> None:
    answer_as_npm(tmp_path, monkeypatch, pack=pack, view=view)
    with pytest.raises(ClocheError, match=message):
        get("99", scratch, print)


def test_a_package_that_is_not_what_the_registry_promised_is_refused(registry: Registry, scratch: Scratch) -> None:
    registry.sent["22.5.0"] = node(member("package/more"))
    with pytest.raises(EngineError, match="EINTEGRITY"):
        get("22", scratch, print)


HOSTILE = {
    "upwards": ([member("package/../../../out")], "leads upwards"),
    "absolute": ([member("/etc/cron.d/out")], "is absolute"),
    "a link": ([member("package/lib", LINK, linkname="/etc")], "is a link"),
    "a hard link": ([member("package/n", HARD, linkname="package/bin/node")], "is a link"),
    "a device": ([member("package/sda", tarfile.BLKTYPE)], "is a device"),
    "two folders": ([member("other/file")], "holds 2 folders"),
}


@pytest.mark.parametrize("shape", HOSTILE)
def test_a_hostile_package_is_refused(registry: Registry, scratch: Scratch, shape: str) -> None:
    members, reason = HOSTILE[shape]
    registry.packages[PACKAGE]["22.5.0"] = node(*members)
    with pytest.raises((InvalidRequest, EngineError), match=reason):
        get("22", scratch, print)


def test_a_bomb_is_refused(registry: Registry, scratch: Scratch) -> None:
    registry.packages[PACKAGE]["22.5.0"] = pack(member("package/bin/node"), content=bytes(200 << 20))
    # npm looks into it first; tests/test_images_unpacking.py has one that nobody has looked into.
    with pytest.raises((InvalidRequest, EngineError), match=r"200 times its size|decompression ratio"):
        get("22", scratch, print)


def test_no_setuid_no_foreign_owner_and_no_open_folder_comes_of_a_package(registry: Registry, scratch: Scratch) -> None:
    odd = [member("package/a", mode=0o6777, uid=1000), member("package/d", FOLDER, mode=0o1777, gid=2_000_000)]
    registry.packages[PACKAGE]["22.5.0"] = node(*odd)
    folder = get("22", scratch, print).folder
    for name, mode in (("a", 0o755), ("d", 0o755)):
        found = (folder / name).stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (mode, 0, 0)


def test_no_script_of_a_package_runs(registry: Registry, scratch: Scratch, tmp_path: Path) -> None:
    script = f'{{"name": "x", "version": "1.0.0", "scripts": {{"prepare": "touch {tmp_path}/ran", '
    script += f'"preinstall": "touch {tmp_path}/ran", "prepack": "touch {tmp_path}/ran"}}}}'
    registry.packages[PACKAGE]["22.5.0"] = pack(
        member("package/package.json"), member("package/bin/node", mode=0o755), content=script.encode()
    )
    get("22", scratch, print)
    assert not (tmp_path / "ran").exists()


def test_what_has_no_program_in_it_is_refused(registry: Registry, scratch: Scratch) -> None:
    registry.packages[PACKAGE]["22.5.0"] = pack(member("package/readme"))
    with pytest.raises(EngineError, match="has no bin/node"):
        get("22", scratch, print)


def test_a_registry_out_of_reach_is_told_with_what_else_helps(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**variables("http://127.0.0.1:9"), "npm_config_cache": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EngineError, match=r"npm can't reach its registry .*nvm install 22, or an image that has it"):
        get("22", scratch, print)


def test_without_npm_there_is_advice(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ClocheError, match=r"npm is not installed.*apt-get install npm, nvm install 22, or an image"):
        get("22", scratch, print)
