"""What an image is to an engine: folders to stack and to bind, and what runs in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A folder or file of this machine, read-only in every box of the image."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A root file system with a name."""

    name: str
    rootfs: Path
    """Read-only lower layer, owned by ids 0..65535 as the box sees them."""
    binds: tuple[Bind, ...] = ()
    """Bound over the root file system, without id mapping: only what everyone may read can be read."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """PATH and the like; the sandbox's own environment wins."""
    interpreters: Mapping[str, str] = field(default_factory=dict[str, str])
    """Runtime with version to the path inside, best first: `{"python3.12": "/usr/bin/python3.12"}`."""
