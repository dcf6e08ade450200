"""The runtimes of an image as people want them listed: with their full versions, and where they come from."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloche.errors import RuntimeNotFound
from cloche.images.host import find_host_image
from cloche.images.interpreters import SHIMS
from cloche.images.runtimes import DEFAULT_VERSIONS, resolve, split
from cloche.images.toolchains import ask_version, find_toolchains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cloche.images.base import Image
    from cloche.images.runtimes import Runtime

ORIGINS = {"/usr/bin": "system package", "/bin": "system package", "/usr/local/bin": "/usr/local"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A runtime that a sandbox can have."""

    runtime: str
    """Its name: `python3.12`."""
    language: str
    version: str
    """In full, as far as it is known: `3.12.1`."""
    origin: str
    path: str
    """The interpreter, as a sandbox sees it."""
    is_default: bool
    """It is the one meant where only the language is named."""
    note: str = ""
    """Why another one than the default version is."""


def list_host_runtimes(home: Path) -> list[Listed]:
    """Those of this machine, best first."""
    toolchains = find_toolchains(home)

    def look(runtime: str, path: str) -> tuple[str, str | None]:
        toolchain = next((each for each in toolchains if path.startswith(f"{each.inside}/")), None)
        if toolchain and toolchain.version:
            return toolchain.origin, toolchain.version
        folder = posixpath.dirname(path)
        return toolchain.origin if toolchain else ORIGINS.get(folder, folder), ask_version(path, split(runtime)[0])

    return list_runtimes(find_host_image(home), look)


def list_runtimes(image: Image, look: Callable[[str, str], tuple[str, str | None]]) -> list[Listed]:
    """Those of any image; `look` tells of each, by its name and its path inside, the origin and the full version."""
    chosen = {found.name: found.note for found in _defaults(image)}
    listed: list[Listed] = []
    for runtime, called in image.interpreters.items():
        path = _behind_shim(image, called)
        language, _ = split(runtime)
        origin, version = look(runtime, path)
        listed.append(
            Listed(
                runtime=runtime,
                language=language,
                version=version or runtime.removeprefix(language),
                origin=origin,
                path=path,
                is_default=runtime in chosen,
                note=chosen.get(runtime, ""),
            )
        )
    return listed


def _defaults(image: Image) -> Iterator[Runtime]:
    for language in DEFAULT_VERSIONS:
        try:
            yield resolve(language, image)
        except RuntimeNotFound:
            continue


def _behind_shim(image: Image, path: str) -> str:
    """The interpreter itself."""
    link = f"{image.rootfs}{path}"
    return os.readlink(link) if path.startswith(f"{SHIMS}/") and os.path.islink(link) else path
