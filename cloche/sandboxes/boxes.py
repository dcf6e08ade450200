"""Makes, finds, lists and deletes the sandboxes of this machine. Blocking: asyncio callers use a thread."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cloche import settings
from cloche.engines import engine_named
from cloche.engines.base import Box
from cloche.engines.folders import remove_folder
from cloche.errors import EngineError, SandboxError, SandboxNotFound
from cloche.faults import point
from cloche.models import random_id
from cloche.sandboxes import records
from cloche.sandboxes.records import Record, RuntimeChoice
from cloche.sandboxes.states import REASONS
from cloche.store.boxes import Boxes
from cloche.store.database import database_in, has_no_room

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from cloche.engines.base import Engine
    from cloche.images.base import Image
    from cloche.models import SandboxSpec

_ID: Final = re.compile(r"[a-z0-9]{20}")
_INSIDE_HOME: Final = "/home/user"
_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


def create(spec: SandboxSpec, runtime: str | None = None, *, is_bound: bool = False) -> Record:
    """Make and start a sandbox; on failure nothing of it is left. One that is bound ends with this process.

    Raises: InvalidRequest, NotFound, EngineError.
    """
    try:
        return _create(spec, runtime, is_bound)
    except OSError as error:
        raise EngineError(f"the sandbox could not be made: {error}") from error


def _create(spec: SandboxSpec, runtime: str | None, is_bound: bool) -> Record:
    engine = engine_named(spec.engine)
    engine.refuse(spec)
    # Here and below: who only looks at sandboxes needs no image.
    from cloche.images.holds import hold

    with hold(settings.home(), spec.image):
        return _create_on_image(engine, spec, runtime, is_bound)


def _create_on_image(engine: Engine, spec: SandboxSpec, runtime: str | None, is_bound: bool) -> Record:
    image = _find_image(spec.image)
    choice, prefix = _choose_runtime(runtime, image)
    id = random_id()
    folder = boxes_folder() / id
    rows().intend(id, engine=engine.name, name=spec.name, is_bound=is_bound)
    point("create.intended")
    try:
        folder.mkdir(mode=0o700)
        point("create.folder")
        box = engine.create(id, folder, spec, image)
        record = _describe(box, spec, image, choice, prefix)
        records.save(record)
        point("create.recorded")
        if not rows().mark_running(id):
            raise SandboxError(f"the sandbox {id} was deleted while it was made")
        point("create.running")
    except BaseException:
        end(_bare(id, engine.name), "failed")
        raise
    return record


def find(word: str) -> Record:
    """The sandbox with that id, or else with that name.

    Raises: SandboxNotFound.
    """
    # The id becomes a path: nothing but an id may.
    is_id = _ID.fullmatch(word) is not None
    record = records.load(boxes_folder() / word) if is_id else None
    if record is not None:
        return record
    row = rows().named(word)
    record = records.load(boxes_folder() / row.id) if row else None
    if record is not None:
        return record
    row = row or rows().get(word)
    if row is None or row.reason is None:
        raise SandboxNotFound(f"there is no sandbox {word!r}; it was deleted, or never was on this machine")
    raise SandboxNotFound(f"the sandbox {word!r} has ended: {REASONS.get(row.reason, row.reason)}; make another")


def all_boxes() -> list[Record]:
    """Every sandbox of this machine that can be used, the oldest first."""
    folder = boxes_folder()
    found = [records.load(folder / row.id) for row in rows().present() if row.state == "running"]
    return [record for record in found if record and engine_named(record.box.engine).is_alive(record.box)]


def delete(record: Record, reason: str = "deleted") -> bool:
    """End it and remove all that belongs to it; False where somebody else has done that."""
    return end(record.box, reason)


def end(box: Box, reason: str) -> bool:
    """As `delete`, whatever of the box is there. Any number of processes may do it at once, and each leaves nothing."""
    is_ours = box.folder.exists()
    with _told_later():
        is_ours = rows().begin_delete(box.id, reason)
    point("delete.intended")
    engine_named(box.engine).delete(box)
    point("delete.engine")
    remove_folder(box.folder)
    point("delete.folder")
    with _told_later():
        # Once more, where there is room only by now.
        rows().begin_delete(box.id, reason)
        rows().mark_ended(box.id)
    point("delete.ended")
    return is_ours


@contextmanager
def _told_later() -> Generator[None]:
    """On a full disk the row stays as it is: what takes the room may be the sandbox, and a sweep sets the row right."""
    try:
        yield
    except EngineError as error:
        if not has_no_room(error):
            raise


def box_of(id: str, engine: str) -> Box:
    """The box of a row: what its folder says, or where that is not there what follows from the id."""
    record = records.load(boxes_folder() / id)
    return record.box if record else _bare(id, engine)


def rows() -> Boxes:
    """The store of CLOCHE_HOME."""
    return Boxes(database_in(settings.home()))


def boxes_folder() -> Path:
    """The folder of the sandboxes' folders."""
    folder = settings.home() / "boxes"
    folder.mkdir(mode=0o711, exist_ok=True)
    return folder


def _bare(id: str, engine: str) -> Box:
    folder = boxes_folder() / id
    return Box(id=id, engine=engine, folder=folder, socket=folder / "keeper.sock", state={})


def _find_image(name: str) -> Image:
    if name == "host":
        from cloche.images.host import find_host_image

        return find_host_image(settings.home())
    from cloche.images.archives import find_image

    return find_image(settings.home(), name)


def _choose_runtime(name: str | None, image: Image) -> tuple[RuntimeChoice, str]:
    from cloche.images.runtimes import resolve

    found = resolve(name, image)
    choice = RuntimeChoice(name=found.name, version=found.version, path=found.path, note=found.note)
    return choice, found.path_prefix


def find_runtime(record: Record, name: str) -> tuple[RuntimeChoice, dict[str, str]]:
    """Another interpreter of a sandbox's image, and the PATH in which its usual names mean it.

    Raises: RuntimeNotFound.
    """
    image = _find_image(record.spec.image)
    choice, prefix = _choose_runtime(name, image)
    if record.host_home is not None:
        from cloche.images.host import find_outside

        choice, prefix = replace(choice, path=find_outside(image, choice.path)), find_outside(image, prefix)
    if not prefix:
        return choice, {}
    home = record.host_home or _INSIDE_HOME
    return choice, {"PATH": _put_first(prefix, record.env.get("PATH", _SYSTEM_PATH), home)}


def _describe(box: Box, spec: SandboxSpec, image: Image, runtime: RuntimeChoice, prefix: str) -> Record:
    host_home = str(box.folder / "home") if box.engine == "host" else None
    env = {"LANG": "C.UTF-8", "TERM": "dumb", **image.env}
    if prefix:
        env["PATH"] = _put_first(prefix, env.get("PATH", _SYSTEM_PATH), _INSIDE_HOME)
    if host_home is not None:
        from cloche.images.host import find_outside

        env = {name: value.replace(_INSIDE_HOME, host_home) for name, value in env.items()}
        env["PATH"] = ":".join(find_outside(image, folder) for folder in env["PATH"].split(":"))
        runtime = replace(runtime, path=find_outside(image, runtime.path))
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


def _put_first(folder: str, path: str, home: str) -> str:
    """What the user installs in the home still comes before the interpreter's own programs."""
    folders = [entry for entry in path.split(":") if entry != folder]
    at = 1 if folders[:1] == [f"{home}/.local/bin"] else 0
    return ":".join([*folders[:at], folder, *folders[at:]])
