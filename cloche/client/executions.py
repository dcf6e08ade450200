"""How an execution is asked for: options in, a RUN frame out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cloche.client.paths import absolute, to_octets
from cloche.client.words import to_argv
from cloche.errors import InvalidRequest
from cloche.link import frames
from cloche.sandboxes.limits import check_limit
from cloche.sandboxes.specs import check_environment, check_user

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cloche.models import Limits
    from cloche.sandboxes.records import Identity, Record

PIECE: Final = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A request with what its result is judged by."""

    request: frames.Run
    limits: Limits
    """Those of the sandbox, with this execution's own time and output."""
    cwd: str


class Preparation:
    """What all executions in one sandbox have in common, worked out once."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._variables: dict[str, tuple[bytes, ...]] = {}

    def identity(self, user: str | None) -> Identity:
        """Who that is here.

        Raises: InvalidRequest where it is more than the sandbox was made for.
        """
        own = self._record.spec.user
        chosen = own if user is None else check_user(user)
        if chosen == "root" and own != "root":
            raise InvalidRequest(
                f"user is 'root'; the sandbox {self._record.box.id} was made for 'user': make one for 'root'",
                parameter="user",
            )
        return self._record.identity(chosen)

    def absolute(self, path: str) -> str:
        """A path inside, which may be relative to where executions start."""
        return absolute(path, self.default_cwd())

    def default_cwd(self, user: str | None = None) -> str:
        """The workspace where there is one, else the home."""
        return self._record.cwd or self.identity(user).home

    def execution(
        self,
        command: str | Sequence[str],
        *,
        flags: int = 0,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        timeout: float | None = None,
        output_bytes: int | None = None,
        tag: str = "",
        size: tuple[int, int] = (0, 0),
    ) -> Execution:
        """The request for a command.

        Raises: InvalidRequest.
        """
        identity = self.identity(user)
        limits = self.limits(timeout, output_bytes)
        home = self._record.cwd or identity.home
        folder = home if cwd is None else absolute(cwd, home)
        request = frames.Run(
            flags=flags,
            uid=identity.uid,
            gid=identity.gid,
            time_limit_ms=_milliseconds(limits.timeout),
            output_limit=limits.output_bytes,
            rows=size[0],
            cols=size[1],
            cwd=to_octets(folder),
            tag=to_octets(tag) if tag else b"",
            argv=to_argv(command, self._record.shell),
            env=self._environment(identity, env),
        )
        return Execution(request=request, limits=limits, cwd=folder)

    def limits(self, timeout: float | None, output_bytes: int | None) -> Limits:
        """Those of the sandbox, with one execution's own time and output.

        Raises: InvalidRequest.
        """
        limits = self._record.spec.limits
        if timeout is not None:
            limits = replace(limits, timeout=check_limit("timeout", timeout))
        if output_bytes is not None:
            limits = replace(limits, output_bytes=check_limit("output_bytes", output_bytes))
        return limits

    def _environment(self, identity: Identity, env: Mapping[str, str] | None) -> tuple[bytes, ...]:
        common = self._variables.get(identity.home)
        if common is None:
            common = self._variables[identity.home] = _encode(self._common(identity))
        return common if not env else _encode({**self._common(identity), **check_environment(env)})

    def _common(self, identity: Identity) -> dict[str, str]:
        name = "root" if identity.uid == 0 else "user"
        return {"HOME": identity.home, "USER": name, "LOGNAME": name, **self._record.env}


def input_flags(stdin: str | bytes | bool | None) -> int:
    """The flag of RUN for that standard input."""
    return 0 if stdin is None or stdin is False else frames.RUN_STDIN


def input_frames(stdin: str | bytes) -> Iterator[frames.Frame]:
    """All of it, and its end."""
    data = memoryview(stdin.encode() if isinstance(stdin, str) else stdin)
    for start in range(0, len(data), PIECE):
        yield frames.Stdin(data[start : start + PIECE])
    yield frames.StdinEnd()


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000)) if seconds else 0


def _encode(env: Mapping[str, str]) -> tuple[bytes, ...]:
    return tuple(f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in env.items())
