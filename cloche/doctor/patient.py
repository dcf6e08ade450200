"""The two boxes that an engine is tried with: one as they usually are, and one with what has to be asked for."""

from __future__ import annotations

import secrets
import socket
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloche import settings
from cloche.client._sync.sandbox import Sandbox
from cloche.doctor.probe import Probe
from cloche.engines.abilities import missing_limits
from cloche.engines.oci import disks_in
from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from cloche.engines.abilities import Ability

# Small, so that each is reached at once; the disk's are numbers that nobody else asks for.
LIMITS: Final[Mapping[str, Any]] = {"cpus": 0.5, "memory_mb": 64, "disk_mb": 17, "inodes": 311, "pids": 24}
OUTPUT_BYTES: Final = 64 << 10
TIMEOUT: Final = 10.0
IDLE_SECONDS: Final = 20.0
"""Should this program be killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What the trials are made on."""

    usual: Probe
    other: Probe
    """With a folder of this machine at /workspace, and as root of the box where the engine has that."""
    other_is_root: bool
    canary: Path
    """A file of this machine that everybody may read."""
    workspace: Path
    port: int
    """Of this machine, where something listens."""
    abstract: str
    """A name in the kernel, where something listens."""
    mark: str
    """A word on the command lines of processes of these trials, and of no other."""


@contextmanager
def make_patient(engine: str, abilities: Mapping[str, Ability]) -> Generator[Patient]:
    """Both boxes, which end with the block, and what is to be out of their reach.

    Raises: ClocheError where one can't be made.
    """
    missing = missing_limits(abilities)
    options: dict[str, Any] = {
        "engine": engine,
        "without": missing,
        "output_bytes": OUTPUT_BYTES,
        "timeout": TIMEOUT,
        "bound": True,
        "idle_timeout": IDLE_SECONDS,
        **{name: value for name, value in LIMITS.items() if name not in missing},
    }
    is_root = abilities["user_root"].enforced != "no"
    mark = f"doctor-{secrets.token_hex(8)}"
    with (
        tempfile.TemporaryDirectory(prefix="cloche-doctor-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        abstract.bind(f"\0{mark}")
        abstract.listen()
        canary, workspace = Path(folder, "canary"), Path(folder, "workspace")
        Path(folder).chmod(0o755)
        canary.write_text(mark)
        canary.chmod(0o644)
        workspace.mkdir()
        (workspace / "file").write_text(mark)
        with (
            Sandbox.create(**options) as usual,
            Sandbox.create(**options, user="root" if is_root else "user", workspace=f"{workspace}:ro") as other,
        ):
            yield Patient(
                usual=Probe(usual),
                other=Probe(other),
                other_is_root=is_root,
                canary=canary,
                workspace=workspace,
                port=server.getsockname()[1],
                abstract=mark,
                mark=mark,
            )


def drop_disks() -> None:
    """The stock of disks of that size, which is of no use to anybody."""
    # Where there is no folder, there are none.
    with suppress(InvalidRequest, OSError):
        disks_in(settings.home()).drop(disk_mb=LIMITS["disk_mb"], inodes=LIMITS["inodes"])
