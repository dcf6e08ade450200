"""Where cgroups are, on machines of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloche.engines.base import Events
from cloche.engines.cgroups import BoxCgroup, Hierarchies, choose_mounts, find_hierarchies
from cloche.engines.mountinfo import parse_mounts
from cloche.errors import EngineError

V1_CPU = "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct"
V1_MEMORY = "31 25 0:27 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory"
V1_PIDS = "32 25 0:28 / /sys/fs/cgroup/pids rw,nosuid shared:9 - cgroup cgroup rw,pids"
V1_SYSTEMD = "33 25 0:29 / /sys/fs/cgroup/systemd rw,nosuid - cgroup cgroup rw,xattr,name=systemd"
HYBRID = "34 25 0:30 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
PURE = "35 25 0:31 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
OTHER = "36 25 0:32 / / rw,relatime - ext4 /dev/sda1 rw"


def test_v1_mounts_are_found_by_controller() -> None:
    v1, v2 = choose_mounts(parse_mounts(f"{OTHER}\n{V1_CPU}\n{V1_MEMORY}\n{V1_PIDS}\n{V1_SYSTEMD}"))
    assert v1["cpu"] == v1["cpuacct"] == Path("/sys/fs/cgroup/cpu,cpuacct")
    assert v1["systemd"] == Path("/sys/fs/cgroup/systemd")
    assert v2 is None


@pytest.mark.parametrize(("line", "mount"), [(HYBRID, "/sys/fs/cgroup/unified"), (PURE, "/sys/fs/cgroup")])
def test_the_v2_mount_is_found_beside_v1_and_alone(line: str, mount: str) -> None:
    assert choose_mounts(parse_mounts(f"{OTHER}\n{line}"))[1] == Path(mount)


ALL_V1 = {name: Path("/v1", name) for name in ("cpu", "memory", "pids")}
KINDS: list[tuple[Hierarchies, str, list[str]]] = [
    (Hierarchies({}, Path("/v2"), frozenset({"cpu", "memory", "pids"})), "v2", []),
    (Hierarchies(ALL_V1, Path("/v2"), frozenset({"hugetlb"})), "hybrid", []),
    (Hierarchies(ALL_V1, None, frozenset()), "v1", []),
    (Hierarchies({}, Path("/v2"), frozenset({"memory", "pids"})), "v2", ["cpu"]),
    (Hierarchies({"pids": Path("/v1/pids")}, Path("/v2"), frozenset()), "hybrid", ["cpu", "memory"]),
]


@pytest.mark.parametrize(("hierarchies", "kind", "missing"), KINDS)
def test_each_kind_of_machine_is_told_with_what_it_lacks(
    hierarchies: Hierarchies, kind: str, missing: list[str]
) -> None:
    assert (hierarchies.kind, hierarchies.missing()) == (kind, missing)


def test_a_machine_without_any_v2_tree_is_refused_with_the_command_that_helps() -> None:
    with pytest.raises(EngineError, match="mount -t cgroup2"):
        _ = BoxCgroup("x", Hierarchies(ALL_V1, None, frozenset())).tree


def test_a_box_that_never_was_is_killed_and_removed_without_complaint() -> None:
    cgroup = BoxCgroup("neverwas000000000000", find_hierarchies())
    cgroup.kill()
    cgroup.remove()
    assert not cgroup.is_populated()
    assert cgroup.counters().read() == Events()
