"""The probe in a box: a static program that tries from inside what the box must not be able to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloche import settings
from cloche.errors import SandboxError

if TYPE_CHECKING:
    from cloche.client._sync.sandbox import Sandbox
    from cloche.models import CommandResult

PATH: Final = "/tmp/probe"  # noqa: S108 (in the box)


class Probe:
    """A box with the probe in it.

    It is a program of its own, and not a script: no image has to have an interpreter, nor tools that behave as ours
    would, and a system call is made as it stands in the source.
    """

    def __init__(self, box: Sandbox) -> None:
        self.box = box
        with settings.probe_path().open("rb") as program:
            box.files.write(PATH, program, mode=0o755)

    def run(self, *words: str, timeout: float | None = None) -> CommandResult:
        """One try, whatever comes of it."""
        return self.box.commands.run([PATH, *words], timeout=timeout)

    def show(self, path: str) -> str:
        """A file, as the box's user reads it; nothing where they may not."""
        return self.run("show", path).stdout

    def ask(self, *words: str) -> dict[str, str]:
        """The answers of a try, by name.

        Raises: SandboxError where it could not be made.
        """
        result = self.run(*words)
        answers = parse_answers(result.stdout)
        if not result.ok or not answers:
            raise SandboxError(
                f"the probe's try {words[0]!r} ended with exit code {result.exit_code}: {result.stderr[-200:]}"
            )
        return answers


def parse_answers(text: str) -> dict[str, str]:
    """Lines of `name: answer`."""
    pairs = (line.rpartition(": ") for line in text.splitlines())
    return {name: answer for name, colon, answer in pairs if colon}


def parse_status(text: str) -> dict[str, str]:
    """A file /proc/PID/status by its names."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}
