"""What a piece of code gives in a context: its value, what it displays, what it raises."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloche.models import LimitName

CHART: Final = "application/vnd.cloche.chart+json"
TABLE: Final = "application/vnd.cloche.data+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A value that was too large to be sent: all of it is in a file in the sandbox, where there was room for it."""

    size: int
    """Octets."""
    path: str | None
    """Where, inside; None where it could not be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """One thing shown, in every form that it has."""

    data: Mapping[str, Any]
    """By MIME type: text as it is, binary forms in base64, JSON as values."""
    main: bool = False
    """The value of the last expression; else it was displayed on the way."""
    cut: Mapping[str, Cut] = field(default_factory=dict[str, Cut])
    """The forms that were too large, by MIME type: of text `data` has the beginning."""

    @property
    def text(self) -> str | None:
        """As plain text."""
        return self._text("text/plain")

    @property
    def html(self) -> str | None:
        """As HTML. It comes from the sandbox: show it where it can do nothing."""
        return self._text("text/html")

    @property
    def markdown(self) -> str | None:
        """As Markdown."""
        return self._text("text/markdown")

    @property
    def latex(self) -> str | None:
        """As LaTeX."""
        return self._text("text/latex")

    @property
    def javascript(self) -> str | None:
        """As JavaScript."""
        return self._text("application/javascript")

    @property
    def svg(self) -> str | None:
        """As a picture of lines."""
        return self._text("image/svg+xml")

    @property
    def png(self) -> bytes | None:
        """As a picture."""
        return self._octets("image/png")

    @property
    def jpeg(self) -> bytes | None:
        """As a photograph."""
        return self._octets("image/jpeg")

    @property
    def pdf(self) -> bytes | None:
        """As a document."""
        return self._octets("application/pdf")

    @property
    def json(self) -> Any:
        """As JSON."""
        return self.data.get("application/json")

    @property
    def chart(self) -> Mapping[str, Any] | None:
        """A figure's chart as data: its type, title, axes and elements."""
        return self.data.get(CHART)

    @property
    def table(self) -> Mapping[str, Any] | None:
        """A data frame as data: each column's values."""
        return self.data.get(TABLE)

    def _text(self, mime: str) -> str | None:
        value = self.data.get(mime)
        return value if isinstance(value, str) else None

    def _octets(self, mime: str) -> bytes | None:
        value = self._text(mime)
        try:
            return None if value is None else base64.b64decode(value, validate=True)
        except ValueError:
            # The sandbox said that it was one.
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeError:
    """What the code raised."""

    name: str
    value: str
    traceback: str
    """Of the code, without anything of Cloche's; no colours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeResult:
    """How one piece of code ended."""

    context: str
    language: str
    results: tuple[Display, ...]
    """All that was displayed, in order; the value of the last expression is the one with `main`."""
    stdout: str
    stderr: str
    error: CodeError | None
    execution_count: int
    """Which execution of its context this was, from 1; 0 where it did not begin."""
    wall_seconds: float
    exit_code: int | None = None
    """Of the last command, in bash."""
    limit_hit: LimitName | None = None
    message: str | None = None
    """What went wrong but for the code's own error, and what to do about it, in words."""
    note: str | None = None
    """What is to be known of the context: that it is new, and why."""
    state_lost: bool = False
    """Its interpreter is gone: variables, imports and definitions are lost."""
    output_dropped: int = 0
    """Characters of output left out in the middle."""

    @property
    def ok(self) -> bool:
        """True where nothing was raised, in time."""
        return self.error is None and not self.exit_code and self.limit_hit != "timeout"

    @property
    def text(self) -> str | None:
        """The value of the last expression, as text."""
        return next((shown.text for shown in self.results if shown.main), None)

    def check(self) -> CodeResult:
        """Itself, or an error where the code failed.

        Raises: CommandTimeout, CodeFailed.
        """
        from cloche.errors import CodeFailed, CommandTimeout

        if self.limit_hit == "timeout":
            raise CommandTimeout(self.message or "the time limit is up", result=self)
        if not self.ok:
            raise CodeFailed(self._failure(), result=self)
        return self

    def _failure(self) -> str:
        if self.error is None:
            return f"exit code {self.exit_code}"
        return f"{self.error.name}: {self.error.value}"
