"""A small console: reads pieces of code from a person, with a history."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cloche import settings
from cloche.client.languages import choose_language

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloche.displays import CodeResult

HISTORY: Final = "console-history"
MOST_LINES: Final = 2000
_QUOTED: Final = re.compile(r"""\\.|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`""", re.DOTALL)
_OPENING, _CLOSING = "([{", ")]}"
_BASH_OPEN: Final = re.compile(r"(?:^|[;&|]|\b(?:then|do|else)\b)\s*(if|for|while|until|case|select)\b")
_BASH_CLOSE: Final = re.compile(r"(?:^|[;\s])(fi|done|esac)\b")


class Console:
    """Iterate to get what was typed, a piece at a time; ends with Ctrl-D."""

    def __init__(self, word: str | None, context: str | None) -> None:
        self._language = choose_language(word, "python").language
        self._name = context or self._language
        self._count = 1

    def __iter__(self) -> Iterator[str]:
        import readline

        path = settings.home() / HISTORY
        with suppress(OSError):
            readline.read_history_file(path)
        readline.set_history_length(MOST_LINES)
        try:
            while True:
                try:
                    piece = self._read_piece()
                except KeyboardInterrupt:
                    print()
                    continue
                except EOFError:
                    print()
                    return
                if piece.strip():
                    yield piece
        finally:
            # A history that can't be kept is no reason to fail.
            with suppress(OSError):
                readline.write_history_file(path)
                path.chmod(0o600)

    def count(self, result: CodeResult) -> None:
        """The number of the next piece."""
        self._count = result.execution_count + 1

    def _read_piece(self) -> str:
        prompt = f"{self._name} [{self._count}]: "
        lines = [input(prompt)]
        while not is_complete(self._language, "\n".join(lines)):
            line = input(f"{'...: ':>{len(prompt)}}")
            lines.append(line)
        return "\n".join(lines)


def is_complete(language: str, text: str) -> bool:
    """True where nothing more has to come; an empty line ends a block."""
    if language == "python":
        return _is_complete_python(text)
    if text.endswith("\n"):
        return True
    if text.endswith("\\"):
        return False
    plain = _QUOTED.sub("", text)
    if any(quote in plain for quote in ("'", '"', "`")):
        return False
    if language == "bash" and len(_BASH_OPEN.findall(plain)) > len(_BASH_CLOSE.findall(plain)):
        return False
    return sum(map(plain.count, _OPENING)) <= sum(map(plain.count, _CLOSING))


def _is_complete_python(text: str) -> bool:
    import codeop
    import warnings

    if text.startswith(("%%", "!", "%")):
        return not text.startswith("%%") or text.endswith("\n")
    if text.rpartition("\n")[2][:1].isspace():
        return False  # within a block, until an empty line
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return codeop.compile_command(text, symbol="exec") is not None
        except (SyntaxError, ValueError, OverflowError):
            # With an await on top it may be none, and else the interpreter says what is wrong.
            return "await" not in text or text.endswith("\n") or not text.rstrip().endswith(":")
