"""Which interpreter a runtime's name means in an image: pure, by what the image says it has."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloche.errors import RuntimeNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloche.images.base import Image

DEFAULT = "python"
DEFAULT_VERSIONS = {"python": (3, 12), "node": (20,), "bash": ()}
"""The languages, in the order of preference, and the version meant where nobody names one."""
ALIASES = {"py": "python", "nodejs": "node", "javascript": "node", "js": "node", "shell": "bash", "sh": "bash"}
HOW_TO_GET_MORE = {
    "python": ("cloche runtimes add python {version}", "pyenv install {version}"),
    "node": ("cloche runtimes add node {version}", "nvm install {version}"),
    "bash": ("apt-get install bash",),
}
"""Commands, the one to try first in front."""
OLDEST_TO_ADD = {"python": (3, 8), "node": (4,)}
"""Where older ones come from, Cloche does not know."""
PARTS = {"python": 2, "node": 1, "bash": 0}
"""How many numbers of its version tell one runtime from the next."""
NAME = re.compile(r"\s*([a-z]+)[\s@:-]*v?((?:\d{1,4}\.){0,3}\d{1,4})?\s*", re.IGNORECASE | re.ASCII)
WHAT_IS_A_NAME = (
    f"Runtimes are {', '.join(DEFAULT_VERSIONS)}, with a version where one is wanted: 'python3.12', 'node@22'. "
    "For another language use an image that has it"
)
FOUND = re.compile(r"([a-z]+)((?:\d+\.)*\d+)?")

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """An interpreter, chosen."""

    name: str
    """Language with version: `python3.12`."""
    version: str
    """Empty where the image does not tell."""
    path: str
    """The interpreter's own path inside."""
    path_prefix: str
    """The folder to put first in PATH, so that its usual names mean this one; empty where none is needed."""
    note: str = ""
    """Why it is not the default version, where it is not."""


def resolve(name: str | None, image: Image) -> Runtime:
    """The runtime that `name` (`python`, `python3.10`, `node@22`, `bash`; None: Python) means in `image`.

    Raises: RuntimeNotFound.
    """
    if name is None and not any(found.startswith(DEFAULT) for found in image.interpreters):
        return _something_else(image)
    wanted = read_name(DEFAULT if name is None else name)
    if wanted is None:
        raise RuntimeNotFound(f"there is no runtime {name!r}; {_what_there_is(image)} {WHAT_IS_A_NAME}")
    language, asked = wanted
    version = _parse(asked)
    there = [found for found in map(split, image.interpreters) if found[0] == language]
    matching = [found for _, found in there if found[: len(version)] == version]
    if not matching:
        raise RuntimeNotFound(_not_there(language, asked, image))
    chosen = _nearest(matching, DEFAULT_VERSIONS[language])
    return _runtime(language, chosen, _note(language, version, chosen, image), image)


def read_name(name: str) -> tuple[str, str] | None:
    """Language and version (empty where none is named) in what a person calls a runtime; None where it is no name."""
    wanted = NAME.fullmatch(name)
    language = _language(wanted[1]) if wanted else None
    return (language, wanted[2] or "") if wanted and language else None


def how_to_get(language: str, version: str = "") -> list[str]:
    """Commands that put it on this machine, the one to try first in front."""
    parts = _parse(version)[: PARTS[language]] or DEFAULT_VERSIONS[language]
    is_too_old = parts < OLDEST_TO_ADD.get(language, ())
    return [how.format(version=text(parts)) for how in HOW_TO_GET_MORE[language][1 if is_too_old else 0 :]]


def _something_else(image: Image) -> Runtime:
    """For an image without the default language, where nobody asked for one."""
    note = f"image {image.name!r} has no {DEFAULT}"
    if not image.interpreters:
        return Runtime(name="sh", version="", path="/bin/sh", path_prefix="", note=note)
    return _runtime(*split(min(image.interpreters, key=preference)), note, image)


def preference(runtime: str) -> tuple[int, bool, list[int]]:
    """A sort key: languages as in the table; the default version, newer ones, then older ones from the newest."""
    language, version = split(runtime)
    default = DEFAULT_VERSIONS.get(language, ())
    is_older = version < default
    order = [*DEFAULT_VERSIONS, language].index(language)
    return order, is_older, [-part if is_older else part for part in version]


def split(runtime: str) -> tuple[str, Version]:
    """`python3.12` as ("python", (3, 12))."""
    match = FOUND.fullmatch(runtime)
    if match is None:
        raise ValueError(f"{runtime!r} is no runtime with version, as 'python3.12' is")
    return match[1], _parse(match[2])


def _language(word: str) -> str | None:
    word = word.lower()
    word = ALIASES.get(word, word)
    return word if word in DEFAULT_VERSIONS else None


def _parse(version: str | None) -> Version:
    return tuple(int(part) for part in version.split(".")) if version else ()


def _nearest(versions: Iterable[Version], default: Version) -> Version:
    newer = [version for version in versions if version >= default]
    return min(newer) if newer else max(versions)


def _note(language: str, asked: Version, chosen: Version, image: Image) -> str:
    default = DEFAULT_VERSIONS[language]
    if not chosen or chosen == default or asked not in ((), default[: len(asked)]):
        return ""
    if asked == chosen:
        return ""
    return (
        f"{language} {text(default)} is the default and is not in image {image.name!r}: "
        f"this is {text(chosen)}, the nearest {'newer' if chosen > default else 'older'} one"
    )


def _runtime(language: str, version: Version, note: str, image: Image) -> Runtime:
    name = language + text(version)
    path = image.interpreters[name]
    prefix = "" if language == "bash" else posixpath.dirname(path)
    return Runtime(name=name, version=text(version), path=path, path_prefix=prefix, note=note)


def _not_there(language: str, version: str, image: Image) -> str:
    parts = _parse(version)
    asked = f"{language} {version}" if version else language
    message = f"there is no {asked} in image {image.name!r}; {_what_there_is(image)}"
    short = language + text(parts[: PARTS[language]])
    if len(parts) > PARTS[language] and short in image.interpreters:
        return f"{message} A runtime is named without its last numbers: {short!r}"
    if image.name == "host":
        return f"{message} To get it: {', or '.join(how_to_get(language, version))}"
    return f"{message} To get it, use an image that has it: cloche images add NAME ARCHIVE"


def _what_there_is(image: Image) -> str:
    return f"it has {', '.join(image.interpreters) or 'no interpreter that we know'}."


def text(version: Version) -> str:
    """The version as people write it."""
    return ".".join(map(str, version))
