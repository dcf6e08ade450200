"""Makes, finds, lists and deletes the sandboxes of this machine. Blocking: asyncio callers use a thread."""

from __future__ import annotations

import re
import secrets
import string
import time
from typing import TYPE_CHECKING, Final

from cloche import settings
from cloche.engines import engine_named
from cloche.errors import SandboxNotFound
from cloche.sandboxes import records
from cloche.sandboxes.folders import remove_folder
from cloche.sandboxes.records import Record, RuntimeChoice

if TYPE_CHECKING:
    from pathlib import Path

    from cloche.engines.base import Box, Engine
    from cloche.images.base import Image
    from cloche.models import SandboxSpec

_ALPHABET: Final = string.ascii_lowercase + string.digits
_ID: Final = re.compile(r"[a-z0-9]{20}")
_INSIDE_HOME: Final = "/home/user"


def create(spec: SandboxSpec, runtime: str | None = None) -> Record:
    """Make and start a sandbox; on failure nothing of it is left.

    Raises: InvalidRequest, NotFound, EngineError.
    """
    engine = engine_named(spec.engine)
    engine.refuse(spec)
    image = _find_image(spec.image)
    choice, prefix = _choose_runtime(runtime, image)
    id = "".join(secrets.choice(_ALPHABET) for _ in range(20))
    folder = _boxes() / id
    folder.mkdir(mode=0o700)
    box: Box | None = None
    try:
        box = engine.create(id, folder, spec, image)
        record = _describe(box, spec, image, choice, prefix)
        records.save(record)
    except BaseException:
        _undo(engine, box, folder)
        raise
    return record


def find(id: str) -> Record:
    """The sandbox with that id.

    Raises: SandboxNotFound.
    """
    # The id becomes a path: nothing but an id may.
    record = records.load(_boxes() / id) if _ID.fullmatch(id) else None
    if record is None:
        raise SandboxNotFound(f"there is no sandbox {id!r}; it was deleted, or never was on this machine")
    return record


def all_boxes() -> list[Record]:
    """Every sandbox of this machine, the oldest first."""
    found = [records.load(folder) for folder in _boxes().iterdir() if _ID.fullmatch(folder.name)]
    return sorted((record for record in found if record), key=lambda record: record.created)


def delete(record: Record) -> bool:
    """End it and remove all that belongs to it; False where it was gone already."""
    engine_named(record.box.engine).delete(record.box)
    was_there = record.box.folder.exists()
    remove_folder(record.box.folder)
    return was_there


def _boxes() -> Path:
    folder = settings.home() / "boxes"
    folder.mkdir(mode=0o711, exist_ok=True)
    return folder


def _undo(engine: Engine, box: Box | None, folder: Path) -> None:
    try:
        if box is not None:
            engine.delete(box)
    finally:
        remove_folder(folder)


def _find_image(name: str) -> Image:
    from cloche.images import find_image

    return find_image(settings.home(), name)


def _choose_runtime(name: str | None, image: Image) -> tuple[RuntimeChoice, str]:
    from cloche.images.runtimes import resolve

    found = resolve(name, image)
    choice = RuntimeChoice(name=found.name, version=found.version, path=found.path, note=found.note)
    return choice, found.path_prefix


def _describe(box: Box, spec: SandboxSpec, image: Image, runtime: RuntimeChoice, prefix: str) -> Record:
    host_home = str(box.folder / "home") if box.engine == "host" else None
    env = {"LANG": "C.UTF-8", "TERM": "dumb", **image.env}
    if prefix:
        env["PATH"] = _put_first(prefix, env.get("PATH", "/usr/local/bin:/usr/bin:/bin"))
    if host_home is not None:
        env = {name: value.replace(_INSIDE_HOME, host_home) for name, value in env.items()}
    return Record(
        box=box,
        spec=spec,
        runtime=runtime,
        env={**env, **spec.env},
        shell=records.BASH if any(name.startswith("bash") for name in image.interpreters) else records.SH,
        cwd=None if spec.workspace is None else "/workspace",
        host_home=host_home,
        created=time.time(),
    )


def _put_first(folder: str, path: str) -> str:
    """What the user installs in the home still comes before the interpreter's own programs."""
    folders = [entry for entry in path.split(":") if entry != folder]
    at = 1 if folders[:1] == [f"{_INSIDE_HOME}/.local/bin"] else 0
    return ":".join([*folders[:at], folder, *folders[at:]])
