"""Starts the process that unpacks an archive, and reads its answer, which may be the archive's own words."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cloche import settings
from cloche.errors import EngineError, InvalidRequest

if TYPE_CHECKING:
    from typing import IO

SECONDS = 3600.0
TREE = Path(__file__).parents[2]


def unpack_archive(what: str, archive: IO[bytes], folder: Path, *, is_package: bool = False) -> Any:
    """Unpacks into `folder`, in a process that can name nothing but what is below it; what it says of interpreters.

    Raises: InvalidRequest (the message names the member that is refused), EngineError.
    """
    # Most starts of Cloche unpack nothing, and need not pay for this.
    import subprocess

    # An ordinary user is root in a namespace of their own; the owners of the files get lost there.
    enter = [] if os.geteuid() == 0 else [str(settings.launch_path()), "--map-only", "--"]
    command = [*enter, sys.executable, "-P", "-s", "-B", "-m", "cloche.images.unpack", str(folder)]
    try:
        done = subprocess.run(
            [*command, *(["--package"] if is_package else [])],
            stdin=archive,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            cwd="/",
            env={"PYTHONPATH": str(TREE)},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise InvalidRequest(f"{what}: unpacking took more than {SECONDS:g} s") from None
    answer = _read_answer(done.stdout)
    if answer is None:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        detail = "".join(last) or f"it ended with {done.returncode}"
        raise EngineError(f"{what}: the process that unpacks it failed: {detail}")
    if "refused" in answer:
        raise InvalidRequest(f"{what} is refused: {answer['refused']}")
    return answer["interpreters"]


def _read_answer(line: bytes) -> dict[str, Any] | None:
    try:
        answer: object = json.loads(line)
    except ValueError:
        return None
    if not isinstance(answer, dict) or not ("refused" in answer or "interpreters" in answer):
        return None
    return cast("dict[str, Any]", answer)
