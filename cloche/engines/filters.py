"""Seccomp filters as an OCI runtime compiled them: kept, they save each later box 3 ms."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from cloche.engines.config import make_filter

if TYPE_CHECKING:
    from pathlib import Path

# crun's; the profile stays in the config.json beside it, for a crun that does not know the name.
ANNOTATION = "run.oci.seccomp_bpf_data"


@dataclass(frozen=True, slots=True)
class CompiledFilter:
    """The filter of one kind of box, as one version of the runtime compiles it."""

    path: Path

    def add_to(self, document: dict[str, Any]) -> None:
        """Put it into a config.json, where it has been compiled already."""
        with suppress(FileNotFoundError):
            document["annotations"] = {ANNOTATION: base64.b64encode(self.path.read_bytes()).decode()}

    def keep(self, state: Path) -> None:
        """Take what the runtime left in the state of a box that it compiled the filter for."""
        compiled = state / "seccomp.bpf"
        if not compiled.exists():
            return
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        scratch = self.path.with_suffix(f".{state.name}")
        scratch.write_bytes(compiled.read_bytes())
        scratch.replace(self.path)


def stamp(program: str) -> str:
    """Another one for another version of the program."""
    return f"{program} {os.stat(program).st_mtime_ns}"


@cache
def find_filter(folder: Path, program: str, allow_set_id: bool) -> CompiledFilter:
    """Named after all that went into it."""
    source = f"{stamp(program)} {json.dumps(make_filter(allow_set_id))}"
    return CompiledFilter(folder / hashlib.sha256(source.encode()).hexdigest())
