"""What a command means: a list is an argv, plain words are run as they are, all else is for the shell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:,@%+-][A-Za-z0-9_./:,@%+=-]*(?: +[A-Za-z0-9_./:,@%+=-]+)*", re.ASCII)
_SHELL_WORDS: Final = frozenset(
    (
        ". : [ alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare "
        "dirs disown do done echo elif else enable esac eval exec exit export fc fi fg for function getopts "
        "hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly "
        "return select set shift shopt source suspend test then time times trap type typeset ulimit umask unalias "
        "unset until wait while"
    ).split()
)
"""`true` and `false` are none of them on purpose: the programs do the same."""


def to_argv(command: str | Sequence[str], shell: str) -> tuple[bytes, ...]:
    """The arguments to start.

    Raises: InvalidRequest.
    """
    if isinstance(command, str):
        words = _plain_words(command) or ((shell, "-c", command) if command.strip() else ())
    else:
        words = tuple(command)
    if not words or not words[0]:
        raise InvalidRequest(f"the command is {command!r}; a program's name was expected")
    for word in words:
        if not isinstance(word, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(f"the command has the argument {word!r}; strings were expected")
        if "\0" in word:
            raise InvalidRequest(f"the command has a NUL in {word[:80]!r}; no program can be given one")
    return tuple(word.encode("utf-8", "surrogateescape") for word in words)


def _plain_words(command: str) -> tuple[str, ...] | None:
    """The words of a command in which a shell would find nothing to do."""
    if not _PLAIN.fullmatch(command):
        return None
    words = tuple(command.split(" ")) if "  " not in command else tuple(command.split())
    if "=" in words[0] or words[0] in _SHELL_WORDS:
        return None
    return words
