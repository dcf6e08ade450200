"""The bounds of limits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from cloche.errors import InvalidRequest
from cloche.models import Limits
from cloche.sandboxes.limits import BOUNDS, check_limit, choose_limits

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("home")


def test_there_is_a_bound_for_each_limit() -> None:
    assert set(BOUNDS) == set(Limits.__dataclass_fields__)


def test_what_is_not_asked_for_has_its_default() -> None:
    chosen = choose_limits({"pids": 7})
    assert (chosen.pids, chosen.timeout, chosen.output_bytes) == (7, 30.0, 1 << 20)


def test_a_default_is_never_more_than_the_machine_has(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    del home
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 100 << 8, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert choose_limits({}).memory_mb == 100


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("memory_mb", 0, "memory_mb is 0; at least 16 MB are needed"),
        ("timeout", -0.5, "timeout is -0.5; at least 0.001 seconds are needed, or 0 for no limit"),
        ("cpus", "1", "cpus is '1'; a number of cores was expected"),
        ("pids", 8.5, "pids is 8.5; a whole number of processes was expected"),
        (
            "cpus",
            10**6,
            f"cpus is 1000000; at most {len(os.sched_getaffinity(0))} cores are possible: this machine has",
        ),
        ("output_bytes", 1 << 50, "at most 1099511627776 octets are possible: 1 TiB, or 0 for no limit"),
    ],
)
def test_a_refusal_names_value_bound_and_parameter(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_limit(name, value)
    assert message in str(caught.value)
    assert caught.value.data == {"parameter": name}


@pytest.mark.parametrize("name", ["timeout", "output_bytes"])
def test_zero_means_none_for_time_and_output(name: str) -> None:
    assert check_limit(name, 0) == 0
