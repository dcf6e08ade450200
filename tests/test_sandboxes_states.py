"""What becomes of what is found, as a table."""

from __future__ import annotations

from typing import Any

import pytest

from cloche.sandboxes.states import REASONS, Found, judge

RUNNING: dict[str, Any] = {
    "state": "running",
    "is_bound": False,
    "same_boot": True,
    "maker_is_alive": False,
    "keeper_is_alive": True,
    "mark": "killed",
}
TABLE: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"keeper_is_alive": False}, "killed"),
    ({"keeper_is_alive": False, "mark": "idle"}, "idle"),
    ({"same_boot": False}, "host_restarted"),
    ({"same_boot": False, "state": "deleting", "reason": "deleted"}, "deleted"),
    ({"same_boot": False, "state": "ended"}, None),
    ({"is_bound": True}, "maker_died"),
    ({"is_bound": True, "maker_is_alive": True}, None),
    ({"is_bound": True, "maker_is_alive": True, "keeper_is_alive": False}, "killed"),
    ({"state": "creating", "maker_is_alive": True, "keeper_is_alive": False}, None),
    ({"state": "creating"}, "maker_died"),
    ({"state": "deleting", "maker_is_alive": True, "reason": "deleted"}, None),
    ({"state": "deleting", "reason": "idle"}, "idle"),
    ({"state": "deleting"}, "maker_died"),
    ({"state": "ended", "keeper_is_alive": False}, None),
]


@pytest.mark.parametrize(("change", "reason"), TABLE)
def test_what_is_found_is_kept_or_ended_for_a_reason(change: dict[str, Any], reason: str | None) -> None:
    assert judge(Found(**{**RUNNING, **change})) == reason
    assert reason is None or reason in REASONS
