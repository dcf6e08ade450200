"""The engines by name; each is imported when it is asked for."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cloche.engines.base import Engine


def _embedded() -> Engine:
    from cloche.engines.oci import default_engine

    return default_engine()


def _crun() -> Engine:
    from cloche.engines.oci import engine_on

    return engine_on("crun")


def _runc() -> Engine:
    from cloche.engines.oci import engine_on

    return engine_on("runc")


def _host() -> Engine:
    from cloche.engines.host import HostEngine

    return HostEngine()


ENGINES: Final[Mapping[str, Callable[[], Engine]]] = {
    "embedded": _embedded,
    "embedded:crun": _crun,
    "embedded:runc": _runc,
    "host": _host,
}


@cache
def engine_named(name: str) -> Engine:
    """The engine of that name; the same object each time.

    Raises: InvalidRequest, EngineError.
    """
    if name not in ENGINES:
        raise InvalidRequest(f"engine is {name!r}; expected one of: {', '.join(ENGINES)}")
    return ENGINES[name]()
