"""What a context's driver says, checked: it may be the code's own words."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from cloche.displays import CodeError, Cut, Display
from cloche.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST: Final = 32 << 20
"""Octets of one line; drivers keep to half of it."""
MOST_OCTETS: Final = 256 << 20
"""Of all that is said in one execution."""
MOST_MESSAGES: Final = 100_000
MOST_VALUES: Final = 2_000_000
"""Values within JSON, of all that is said in one execution: each takes memory, however short it is."""
MOST_DEPTH: Final = 100
LARGE: Final = 1 << 20
MOST_FORMS: Final = 64

LONGEST_PATH: Final = 4096
_MIME: Final = re.compile(r"[!-~]{1,255}")
# Possessive: else each character of a long text is a way back, and takes memory.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BRACKET: Final = re.compile(rb"[\[\]{}]")

Kind = Literal["ready", "begun", "result", "error", "done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One line, read."""

    kind: Kind
    id: int = 0
    count: int = 0
    display: Display | None = None
    error: CodeError | None = None
    exit_code: int | None = None


class Replies:
    """Octets in, messages out."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._waiting = self._total = self._messages = self._values = 0

    @property
    def is_large(self) -> bool:
        """True where what comes next may take a while to be read."""
        return self._waiting > LARGE

    def feed(self, data: bytes | memoryview) -> list[Message]:
        """The messages that are complete.

        Raises: ProtocolError for what no driver says.
        """
        self._total += len(data)
        *lines, rest = bytes(data).split(b"\n")
        found: list[Message] = []
        for line in lines:
            whole = b"".join([*self._pieces, line])
            self._pieces, self._waiting = [], 0
            self._values += count_values(whole)
            if self._values > MOST_VALUES:
                raise ProtocolError(f"{self._values} values were said in one execution; {MOST_VALUES} are possible")
            found.append(parse_message(whole))
        self._pieces.append(rest)
        self._waiting += len(rest)
        self._messages += len(found)
        if self._waiting > LONGEST or self._total > MOST_OCTETS or self._messages > MOST_MESSAGES:
            raise ProtocolError(
                f"{self._messages} messages of {self._total} octets, {self._waiting} of them without an end, were said "
                f"in one execution; at most {MOST_MESSAGES}, {MOST_OCTETS} and {LONGEST} are possible"
            )
        return found


def count_values(line: bytes) -> int:
    """About how many there are, without reading them.

    Raises: ProtocolError for what is nested too deeply.
    """
    count = line.count(b",") + line.count(b"[") + line.count(b"{")
    if count <= MOST_DEPTH:
        return count
    bare = _STRING.sub(b"", line)
    depth = 0
    for match in _BRACKET.finditer(bare):
        depth += 1 if match[0] in b"[{" else -1
        if depth > MOST_DEPTH:
            raise ProtocolError(f"a message has more than {MOST_DEPTH} levels")
    return bare.count(b",") + bare.count(b"[") + bare.count(b"{")


def parse_message(line: bytes) -> Message:
    """One line.

    Raises: ProtocolError.
    """
    try:
        found: object = json.loads(line, parse_constant=_refuse_constant, parse_float=_read_float)
        if not isinstance(found, dict):
            raise TypeError("it is no object")
        return _read(cast("dict[str, Any]", found))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ProtocolError(f"{bytes(line[:80])!r} is no message of a driver: {error!r:.200}") from error


def _read(found: dict[str, Any]) -> Message:
    kind = found["type"]
    if kind == "ready":
        return Message(kind="ready")
    id = _number(found["id"])
    match kind:
        case "begun":
            if not (count := _number(found["count"])):
                raise ValueError("it counts from 1")
            return Message(kind="begun", id=id, count=count)
        case "result":
            return Message(kind="result", id=id, display=_display(found))
        case "error":
            words = (_text(found[name]) for name in ("name", "value", "traceback"))
            name, value, traceback = words
            return Message(kind="error", id=id, error=CodeError(name=name, value=value, traceback=traceback))
        case "done":
            code = found.get("exit_code")
            return Message(kind="done", id=id, exit_code=None if code is None else _number(code))
        case _:
            raise ValueError("its type is unknown")


def _display(found: Mapping[str, Any]) -> Display:
    data, cut = _mapping(found["data"]), _mapping(found.get("cut", {}))
    if len(data) > MOST_FORMS or not all(map(_MIME.fullmatch, (*data, *cut))):
        raise ValueError("it has too many forms, or a name that no form has")
    for mime, value in data.items():
        if not isinstance(value, str) and not is_json(mime):
            raise TypeError(f"{mime} is not text")
    return Display(
        data=data,
        main=found["main"] is True,
        cut={mime: _cut(is_cut) for mime, is_cut in cut.items()},
    )


def _cut(found: Any) -> Cut:
    path = found["path"]
    if path is not None and len(_text(path)) > LONGEST_PATH:
        raise ValueError("no path is so long")
    return Cut(size=_number(found["size"]), path=path)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _read_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is beyond all numbers")
    return value


def is_json(mime: str) -> bool:
    """True where a value of that type is no text."""
    return mime == "application/json" or mime.endswith("+json")


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("an object was expected")
    return cast("dict[str, Any]", value)


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError("a number was expected")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text was expected")
    return value
