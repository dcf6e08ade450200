"""Runtimes of Cloche's own folder, fetched by the machine's npm from a registry of the test's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from cloche.errors import EngineError, InvalidRequest, RuntimeNotFound
from cloche.images import find_host_image, resolve
from cloche.images.additions import add_runtime, added_names, find_added, remove_added
from cloche.images.npm import PACKAGES
from tests.registry import Registry, node, pack, serve
from tests.test_images_members import member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = PACKAGES[os.uname().machine]
ADD = (
    "import sys, pathlib\nfrom cloche.images.additions import add_runtime\n"
    "print(add_runtime(pathlib.Path(sys.argv[1]), 'node 77', print)[1])"
)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    npm = {"10.9.0": pack(member("package/bin/npm-cli.js")), "11.1.0": pack(member("package/bin/npm-cli.js"))}
    registry = Registry({PACKAGE: {"77.5.0": node(), "77.4.0": node(), "78.0.0": node()}, "npm": npm})
    with serve(registry) as variables:
        for name, value in {**variables, "npm_config_cache": str(tmp_path / "cache")}.items():
            monkeypatch.setenv(name, value)
        registry.go_on.set()
        yield registry


def leftovers(home: Path) -> list[str]:
    return [str(path) for path in (home / "scratch").iterdir()]


def test_one_that_is_added_is_at_once_in_the_host_image_and_bound_where_every_user_gets(
    home: Path, registry: Registry
) -> None:
    del registry
    before = find_host_image(home)
    added, is_new = add_runtime(home, "node@77", print)
    assert (added.runtime, added.version, added.origin, is_new) == ("node77", "77.5.0", "Cloche", True)
    image = find_host_image(home)
    inside = "/opt/cloche/runtimes/node-77.5.0"
    assert resolve("node77", image).path == added.path == f"{inside}/bin/node"
    assert resolve("node", image) == resolve("node", before)
    (bind,) = [bind for bind in image.binds if bind.target == inside]
    assert bind.source == home / "runtimes/node-77.5.0"
    assert leftovers(home) == []


def test_everyone_may_read_it_whatever_the_umask(home: Path, registry: Registry) -> None:
    del registry
    before = os.umask(0o077)
    try:
        add_runtime(home, "node 77", print)
    finally:
        os.umask(before)
    for folder, _, files in os.walk(home / "runtimes/node-77.5.0"):
        assert os.stat(folder).st_mode & 0o777 == 0o755
        assert all(os.stat(f"{folder}/{name}").st_mode & 0o444 == 0o444 for name in files)


def test_one_that_is_there_is_not_fetched_again(home: Path, registry: Registry) -> None:
    add_runtime(home, "node 77", print)
    registry.asked.clear()
    assert add_runtime(home, "node-77", print) == add_runtime(home, "node 77.5.0", print)
    assert not add_runtime(home, "node77.5", print)[1]
    assert not add_runtime(home, "bash", print)[1]
    assert not registry.asked.is_set()


def test_of_two_patch_releases_the_newer_one_is_used_and_an_older_one_is_not_added(
    home: Path, registry: Registry
) -> None:
    for version in ("77.4.0", "77.5.0"):
        added, _ = add_runtime(home, f"node {version}", print)
        assert resolve("node77", find_host_image(home)).path == added.path
    remove_added(home, "node-77.4.0")
    registry.asked.clear()
    for version in ("77.4.0", "77.4"):
        with pytest.raises(InvalidRequest, match=f"newer, so node-{version} would never be used; remove that one"):
            add_runtime(home, f"node {version}", print)
    # It was known before anything was fetched.
    assert not registry.asked.is_set()
    assert leftovers(home) == []


@pytest.mark.parametrize("name", ["ruby", "", "node 77; rm", "node ../77"])
def test_a_name_that_means_nothing_is_refused(home: Path, name: str) -> None:
    with pytest.raises(RuntimeNotFound, match="Runtimes are python, node, bash"):
        add_runtime(home, name, print)


def test_a_language_that_has_no_source_is_refused(home: Path) -> None:
    with pytest.raises(RuntimeNotFound, match=r"can't be added by Cloche; apt-get install bash"):
        add_runtime(home, "bash 99", print)


def test_what_can_not_be_fetched_is_refused_with_what_this_machine_has(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", "http://127.0.0.1:9/builds")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(EngineError) as refusal:
        add_runtime(home, "python 3.14.0", print)
    could_not, helps, has = refusal.value.message.splitlines()
    assert "could not be reached" in could_not
    assert helps.startswith("What else helps")
    assert has.startswith("This machine has python3.")
    assert leftovers(home) == added_names(home) == []


def test_two_at_the_same_moment_get_one_and_leave_nothing(home: Path, registry: Registry) -> None:
    del registry
    with ThreadPoolExecutor(2) as threads:
        adding = [threads.submit(add_runtime, home, "node 77", print) for _ in range(2)]
    found = [each.result() for each in adding]
    assert found[0][0] == found[1][0]
    assert sum(is_new for _, is_new in found) == 1
    assert added_names(home) == ["node-77.5.0"]
    assert leftovers(home) == []


def test_killed_half_way_nothing_is_seen_of_it_and_the_next_one_sweeps(home: Path, registry: Registry) -> None:
    registry.go_on.clear()
    with subprocess.Popen([sys.executable, "-c", ADD, home], stdout=subprocess.PIPE, process_group=0) as process:
        assert registry.asked.wait(30)
        os.killpg(process.pid, signal.SIGKILL)
    assert added_names(home) == []
    assert len(leftovers(home)) == 1
    registry.go_on.set()
    assert add_runtime(home, "node 77", print)[1]
    assert leftovers(home) == []


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, registry: Registry) -> None:
    large = pack(member("package/bin/node", mode=0o755), content=os.urandom(3 << 20))
    registry.packages[PACKAGE]["77.5.0"] = large
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", tmp_path], check=True)
    try:
        with pytest.raises((EngineError, InvalidRequest), match=r"No space left|ENOSPC"):
            add_runtime(tmp_path, "node 77", print)
        assert added_names(tmp_path) == leftovers(tmp_path) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_one_that_was_added_is_found_by_any_beginning_of_its_version_and_removed(
    home: Path, registry: Registry
) -> None:
    del registry
    for version in ("77.4.0", "77.5.0", "78"):
        add_runtime(home, f"node {version}", print)
    assert added_names(home) == ["node-77.4.0", "node-77.5.0", "node-78.0.0"]
    assert find_added(home, "node 78") == find_added(home, "node78.0") == find_added(home, "node-78.0.0")
    with pytest.raises(InvalidRequest, match=r"any of node-77\.4\.0, node-77\.5\.0; give the whole version"):
        find_added(home, "node 77")
    remove_added(home, find_added(home, "node 77.5"))
    assert resolve("node77", find_host_image(home)).path == "/opt/cloche/runtimes/node-77.4.0/bin/node"
    assert leftovers(home) == []


def test_what_others_installed_is_not_removed_and_it_is_said_where_it_comes_from(home: Path) -> None:
    with pytest.raises(InvalidRequest, match="not Cloche's to remove: it comes from system package, /"):
        find_added(home, "bash")
    with pytest.raises(RuntimeNotFound, match="there is no node 4; what was added is: nothing"):
        find_added(home, "node 4")
