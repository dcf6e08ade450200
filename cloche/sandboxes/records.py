"""The file box.json in a sandbox's folder: all that a later process needs to go on with it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from cloche.engines.base import Box
from cloche.models import Limits, SandboxSpec

FORMAT: Final = 3
FILE: Final = "box.json"
BASH: Final = "/bin/bash"
SH: Final = "/bin/sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who an execution is inside."""

    uid: int
    gid: int
    home: str


USERS: Final = {
    "user": Identity(uid=1000, gid=1000, home="/home/user"),
    "root": Identity(uid=0, gid=0, home="/root"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeChoice:
    """The interpreter that a sandbox's languages start with."""

    name: str
    """Language with version: `python3.12`."""
    version: str
    path: str
    """The interpreter's own path inside."""
    note: str = ""
    """Why it is not the default, where it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A sandbox, as it is kept."""

    box: Box
    spec: SandboxSpec
    runtime: RuntimeChoice
    env: dict[str, str]
    """Of the image, the runtime and the sandbox; HOME and USER come with the user."""
    shell: str
    cwd: str | None
    """Where executions start; None means in the home folder."""
    host_home: str | None
    """On the engine `host`: the folder that stands for the home, and executions are the server's user."""
    created: float

    def identity(self, user: Literal["user", "root"]) -> Identity:
        """Who that user is here."""
        if self.host_home is not None:
            return Identity(uid=os.geteuid(), gid=os.getegid(), home=self.host_home)
        return USERS[user]


def save(record: Record) -> None:
    """Written whole or not at all; readable by its owner only, for it holds the environment."""
    path = record.box.folder / FILE
    scratch = path.with_suffix(".new")
    content = json.dumps({"format": FORMAT, "folder": _mark_of(record.box.folder), **_as_json(record)}, indent=1)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(content)
    os.replace(scratch, path)


def load(folder: Path) -> Record | None:
    """The sandbox in that folder, or None where there is none that this version of Cloche knows."""
    try:
        content = (folder / FILE).read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None
    values = cast("dict[str, Any]", json.loads(content))
    if values.pop("format") != FORMAT or values.pop("folder") != _mark_of(folder):
        return None
    box, spec = values.pop("box"), values.pop("spec")
    sets = {name: frozenset(spec[name]) for name in ("explicit", "without")}
    spec |= {"limits": Limits(**spec["limits"]), **sets}
    return Record(
        box=Box(id=box["id"], engine=box["engine"], folder=folder, socket=Path(box["socket"]), state=box["state"]),
        spec=SandboxSpec(**spec),
        runtime=RuntimeChoice(**values.pop("runtime")),
        **values,
    )


def is_copy(folder: Path) -> bool:
    """True where the sandbox that is described there is not in that folder: somebody has copied its own."""
    try:
        values = cast("dict[str, Any]", json.loads((folder / FILE).read_bytes()))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return values.get("format") == FORMAT and values.get("folder") != _mark_of(folder)


def _mark_of(folder: Path) -> str:
    found = folder.stat()
    return f"{found.st_dev}:{found.st_ino}"


def _as_json(record: Record) -> dict[str, Any]:
    box, spec = _fields(record.box), _fields(record.spec)
    box |= {"folder": str(record.box.folder), "socket": str(record.box.socket)}
    spec |= {"limits": _fields(record.spec.limits)}
    spec |= {name: sorted(spec[name]) for name in ("explicit", "without")}
    return _fields(record) | {"box": box, "spec": spec, "runtime": _fields(record.runtime)}


def _fields(item: Box | SandboxSpec | Limits | RuntimeChoice | Record) -> dict[str, Any]:
    """As dataclasses.asdict, which copies deeply and takes half a millisecond."""
    return {field: getattr(item, field) for field in item.__slots__}
