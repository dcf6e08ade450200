"""The drivers of the package, started without a box."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from cloche.drivers import LANGUAGES, first_octets
from tests.driver import Driver, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Started(Driver):
    """A driver of the package, with what tests of its ways and of its end ask besides."""

    def begin(self, *codes: str) -> None:
        """Sends requests, at once, and waits for nothing."""
        lines = [json.dumps({"id": self._id + number, "code": code}) for number, code in enumerate(codes, 1)]
        self._id += len(codes)
        self._send("".join(f"{line}\n" for line in lines).encode())

    def wait_for_output(self, text: bytes) -> None:
        stdout = next(fd for fd, number in self._numbers.items() if number == 1)
        seen = b""
        while text not in seen:
            seen += os.read(stdout, 1 << 16)

    def pipes_in(self, listing: str) -> set[int]:
        """Which of the driver's descriptors, as at its start, are in what `ls -l /proc/self/fd` printed."""
        numbers = {os.readlink(f"/proc/self/fd/{fd}"): number for fd, number in self._numbers.items()}
        numbers[os.readlink(f"/proc/self/fd/{self._requests}")] = 0
        links = [line.split(" -> ")[1] for line in listing.splitlines() if " -> " in line]
        return {numbers[link] for link in links if link in numbers}

    def end(self) -> tuple[int, Reply]:
        """Closes the requests; the exit code, and what came until then."""
        os.close(self._requests)
        self._requests = os.open(os.devnull, os.O_WRONLY)
        reply = self.collect("never")
        end = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        assert end is not None
        return end.si_status, reply


def start_driver(language: str, interpreter: str, folder: Path, env: Mapping[str, str] | None = None) -> Started:
    """A driver of that language that is yet to be entered; its code runs in the folder."""
    found = LANGUAGES[language]
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    return Started([interpreter, *found.argv], first_octets(found), env={**base, **(env or {})}, cwd=str(folder))
