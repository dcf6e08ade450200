"""What a sandbox is to be: made from what a caller asked for, and checked."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from cloche import settings
from cloche.engines.abilities import MAY_BE_MISSING
from cloche.errors import InvalidRequest
from cloche.models import IDLE_SECONDS, LIFE_SECONDS, SandboxSpec
from cloche.sandboxes.limits import check_seconds, choose_limits

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cloche.models import WorkspaceAccess

MAX_ENVIRONMENT: Final = 512 << 10
MAX_VARIABLES: Final = 2048
_NAME: Final = re.compile(r"\w[\w .@/+-]{0,63}")
_ID: Final = re.compile(r"[a-z0-9]{20}")


def make_spec(
    *,
    limits: Mapping[str, Any],
    image: str = "host",
    engine: str = "embedded",
    env: Mapping[str, str] | None = None,
    user: str = "user",
    workspace: str | os.PathLike[str] | None = None,
    name: str | None = None,
    idle_timeout: float | None = None,
    lifetime: float | None = None,
    without: Collection[str] = (),
) -> SandboxSpec:
    """The whole of it, with nothing left to guess; `limits` holds those that were asked for.

    Raises: InvalidRequest.
    """
    if name is not None and not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"name is {name!r}; 1 to 64 letters, digits, spaces and .@/+-_ were expected, the first a letter or digit"
        )
    if name is not None and _ID.fullmatch(name):
        raise InvalidRequest(f"name is {name!r}, which looks like an id; take one that no sandbox can have as its id")
    folder, access = parse_workspace(workspace)
    return SandboxSpec(
        image=image,
        engine=engine,
        limits=choose_limits(limits),
        explicit=frozenset(limits),
        without=check_without(without, limits),
        env=check_environment(env or {}),
        user=check_user(user),
        workspace=folder,
        workspace_access=access,
        name=name,
        idle_timeout=check_seconds("idle_timeout", IDLE_SECONDS if idle_timeout is None else idle_timeout),
        lifetime=check_seconds("lifetime", LIFE_SECONDS if lifetime is None else lifetime),
    )


def check_without(names: Collection[str], asked: Collection[str]) -> frozenset[str]:
    """The limits that may be missing.

    Raises: InvalidRequest.
    """
    if isinstance(names, str):
        raise InvalidRequest(f"without is {names!r}; a list of names was expected")
    for name in names:
        if name not in MAY_BE_MISSING:
            raise InvalidRequest(f"without has {name!r}; expected some of: {', '.join(MAY_BE_MISSING)}")
        if name in asked:
            raise InvalidRequest(f"{name} is asked for, and 'without' says that it may be missing; decide for one")
    return frozenset(names)


def check_user(user: str) -> Literal["user", "root"]:
    """Raises InvalidRequest for a user that no sandbox has."""
    if user == "user" or user == "root":
        return user
    raise InvalidRequest(f"user is {user!r}; 'user' or 'root' was expected")


def check_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Raises InvalidRequest for names and values that no process can be given."""
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(f"env has {name!r}: {value!r}; strings were expected")
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise InvalidRequest(f"env has {name!r}: no '=' is possible in a name, no NUL in name or value")
    size = sum(len(name) + len(value) + 2 for name, value in env.items())
    if size > MAX_ENVIRONMENT or len(env) > MAX_VARIABLES:
        raise InvalidRequest(
            f"env has {len(env)} variables of {size} octets; at most {MAX_VARIABLES} of {MAX_ENVIRONMENT} are possible"
        )
    return dict(env)


def parse_workspace(text: str | os.PathLike[str] | None) -> tuple[str | None, WorkspaceAccess]:
    """`/path`, `/path:ro` or `/path:rw` as folder and access; read-only where nothing is said.

    Raises: InvalidRequest.
    """
    if text is None:
        return None, "none"
    path, access = os.fspath(text), "ro"
    if path.endswith((":ro", ":rw")):
        path, access = path[:-3], path[-2:]
    if not os.path.isabs(path):
        raise InvalidRequest(f"workspace is {path!r}; an absolute path was expected")
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        raise InvalidRequest(f"workspace is {path!r}, which is no folder on this machine")
    # Code that could write above it may have put the link there.
    if real != os.path.normpath(path):
        raise InvalidRequest(
            f"workspace is {path!r}, which leads through a link to {real!r}; name that, if you mean it"
        )
    if real == "/":
        raise InvalidRequest("workspace is '/', the whole machine; name a folder of it")
    home = os.path.realpath(settings.home())
    if os.path.commonpath([real, home]) in (real, home):
        raise InvalidRequest(
            f"workspace is {path!r}; Cloche's own data in {home!r} would be in it: name another folder"
        )
    return real, "rw" if access == "rw" else "ro"
