"""The OCI config.json, as data."""

from __future__ import annotations

import resource
from typing import Any

import pytest

from cloche.engines.config import KEEPER_PIDS, UserNamespace, make_ceilings, make_config, root_capability_mask
from cloche.models import Limits, SandboxSpec


def config_of(spec: SandboxSpec) -> dict[str, Any]:
    users = UserNamespace(((0, 1_900_000_000, 65_536),), path="/u")
    return make_config(spec, root="/r", users=users, keeper_argv=["/k"], cgroup="/c/x")


def test_each_limit_reaches_the_kernel() -> None:
    limits = Limits(cpus=1.5, memory_mb=300, pids=50, disk_mb=200)
    config = config_of(SandboxSpec(limits=limits))
    resources = config["linux"]["resources"]
    assert resources["memory"] == {"limit": 300 << 20, "swap": 300 << 20}
    assert resources["cpu"] == {"period": 100_000, "quota": 150_000}
    assert resources["pids"]["limit"] == 50 + KEEPER_PIDS
    assert make_ceilings(limits)[resource.RLIMIT_FSIZE] == 200 << 20


def test_ids_are_mapped_to_the_box_s_own_range() -> None:
    linux = config_of(SandboxSpec())["linux"]
    mapping = [{"containerID": 0, "hostID": 1_900_000_000, "size": 65_536}]
    assert linux["uidMappings"] == linux["gidMappings"] == mapping


def test_nothing_is_shared_with_the_host_but_the_network_namespace_that_the_launcher_made() -> None:
    kinds = {namespace["type"] for namespace in config_of(SandboxSpec())["linux"]["namespaces"]}
    assert kinds == {"pid", "mount", "ipc", "uts", "user", "cgroup"}


@pytest.mark.parametrize(("user", "count"), [("user", 4), ("root", 8)])
def test_the_keeper_has_what_it_needs_and_no_more(user: Any, count: int) -> None:
    capabilities = config_of(SandboxSpec(user=user))["process"]["capabilities"]
    assert len(capabilities["bounding"]) == len(capabilities["effective"]) == count
    assert capabilities["inheritable"] == capabilities["ambient"] == []
    assert "CAP_SYS_ADMIN" not in capabilities["bounding"]


def test_a_box_made_for_the_user_gives_no_capability_to_root() -> None:
    assert root_capability_mask(SandboxSpec()) == 0
    assert root_capability_mask(SandboxSpec(user="root")) == 0b11011011


def test_no_sys_no_hooks_no_devices_and_no_new_privileges() -> None:
    config = config_of(SandboxSpec())
    assert not [mount for mount in config["mounts"] if mount["destination"].startswith("/sys")]
    assert "hooks" not in config
    assert "devices" not in config["linux"]
    assert config["process"]["noNewPrivileges"] is True


def test_every_mount_is_nosuid_and_noexec() -> None:
    for mount in config_of(SandboxSpec())["mounts"]:
        assert {"nosuid", "noexec"} <= set(mount["options"]), mount["destination"]
