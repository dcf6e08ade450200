"""A box that is not as it was asked for does not count as made."""

from __future__ import annotations

import json
import secrets
import string
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloche.engines import launcher, oci
from cloche.engines.oci import OciEngine
from cloche.errors import EngineError
from cloche.images.base import Image
from cloche.models import SandboxSpec

if TYPE_CHECKING:
    from collections.abc import Callable

BREAKS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "seccomp": (lambda c: c["linux"].pop("seccomp"), "Seccomp 0"),
    "new privileges": (lambda c: c["process"].update(noNewPrivileges=False), "."),
    "capabilities": (lambda c: c["process"]["capabilities"]["effective"].append("CAP_SYS_ADMIN"), "."),
    "ids": (lambda c: c["linux"]["namespaces"][-1].update(path="/proc/1/ns/user"), "."),
    "namespace": (lambda c: c["linux"]["namespaces"].remove({"type": "cgroup"}), "cgroup"),
    "memory": (lambda c: c["linux"]["resources"].pop("memory"), "memory"),
    "processes": (lambda c: c["linux"]["resources"].pop("pids"), "pids.max"),
    "cpu": (lambda c: c["linux"]["resources"].pop("cpu"), "cpu"),
}


@pytest.mark.promise("isolation", "own_uids", "no_privileges", "syscalls", "memory_mb", "pids", "cpus")
@pytest.mark.parametrize("runtime", ["crun", "runc"])
@pytest.mark.parametrize("what", BREAKS)
def test_what_the_runtime_left_out_is_found_and_the_box_ended(
    home: Path, monkeypatch: pytest.MonkeyPatch, runtime: str, what: str
) -> None:
    change, message = BREAKS[what]

    def run_with_less(command: list[str]) -> None:
        path = Path(command[command.index("--bundle") + 1], "config.json")
        config: dict[str, Any] = json.loads(path.read_text())
        config.pop("annotations", None)
        change(config)
        path.write_text(json.dumps(config))
        launcher.run_launcher(command)

    monkeypatch.setattr(oci, "run_launcher", run_with_less)
    monkeypatch.setattr("cloche.engines.verify.LONGEST", 0.3)
    id = "".join(secrets.choice(string.ascii_lowercase) for _ in range(20))
    folder, rootfs = home / "boxes" / id, home / "rootfs"
    folder.mkdir(parents=True)
    rootfs.mkdir()
    with pytest.raises(EngineError, match=message):
        OciEngine(runtime).create(id, folder, SandboxSpec(), Image(name="empty", rootfs=rootfs))
    assert list(folder.iterdir()) == []
