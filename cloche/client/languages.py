"""The languages of contexts, and the requests that their drivers understand: pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from cloche.errors import InvalidRequest
from cloche.images.runtimes import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

RUNTIMES: Final = {"python": "python", "javascript": "node", "bash": "bash"}
"""What runs each of them."""
_ALIASES: Final = {
    "py": "python",
    "ipython": "python",
    "js": "javascript",
    "node": "javascript",
    "nodejs": "javascript",
    "ts": "javascript",
    "typescript": "javascript",
    "sh": "bash",
    "shell": "bash",
}
_TYPESCRIPT: Final = ("ts", "typescript")


@dataclass(frozen=True, slots=True)
class Choice:
    """A language, as somebody named it."""

    language: str
    runtime: str
    """With the version that was asked for, if one was: `python3.10`."""
    dialect: str | None = None
    """`typescript`."""


def choose_language(word: str | None, own: str) -> Choice:
    """What `word` (`python`, `python3.10`, `js`, `node@22`, `typescript`, `bash`) means in a sandbox whose runtime is `own`.

    Where nothing, or no version, is named it is that one.

    Raises: InvalidRequest.
    """
    match = NAME.fullmatch(own if word is None else word)
    name = match[1].lower() if match else ""
    language = _ALIASES.get(name, name)
    if match is None or language not in RUNTIMES:
        raise InvalidRequest(f"language is {word!r}; expected one of: {', '.join(RUNTIMES)}, typescript")
    version = "" if language == "python" and match[2] == "3" else match[2] or ""
    dialect = "typescript" if name in _TYPESCRIPT else None
    runtime = RUNTIMES[language]
    is_own = not version and own.rstrip("0123456789.") == runtime
    return Choice(language, own if is_own else runtime + version, dialect)


def default_id(choice: Choice, own: str) -> str:
    """What the default context of that language is called, in a sandbox whose runtime is `own`."""
    is_usual = choice.runtime in (own, RUNTIMES[choice.language])
    return choice.language if is_usual else choice.runtime


@cache
def make_start(language: str) -> tuple[tuple[str, ...], bytes]:
    """The words behind the interpreter's path, and what its input begins with: the driver itself."""
    from cloche.drivers import LANGUAGES, first_octets

    row = LANGUAGES[language]
    return row.argv, first_octets(row)


def make_request(
    language: str, id: int, code: str, *, cwd: str | None, env: Mapping[str, str], dialect: str | None
) -> bytes:
    """One execution, as that language's driver reads it.

    Raises: InvalidRequest.
    """
    if "\0" in code and language == "bash":
        raise InvalidRequest("the code has a NUL in it; bash can't be given one")
    if language == "bash":
        return _as_fields(id, [code, cwd or "", *(f"{name}={value}" for name, value in env.items())])
    fields = {"id": id, "code": code, "cwd": cwd, "env": dict(env) or None, "language": dialect}
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode() + b"\n"


def _as_fields(id: int, fields: list[str]) -> bytes:
    parts = [f"{id} {len(fields)}\n".encode()]
    for field in fields:
        try:
            octets = field.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"the code has {error.object[error.start]!r}, which is no character") from None
        parts += [f"{len(octets)}\n".encode(), octets, b"\n"]
    return b"".join(parts)
