"""The part of `bench/contexts.py` that runs where jupyter_client is: prints milliseconds, as JSON."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

DISPLAYS = ("display_data", "execute_result")


def start() -> tuple[Any, Any]:
    """A kernel and its client."""
    return import_module("jupyter_client.manager").start_new_kernel(kernel_name="python3")


def stop(manager: Any, client: Any) -> None:
    """Both of them."""
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client: Any, code: str) -> int:
    """To the end; gives the number of displays."""
    shown = 0
    sent = client.execute(code)
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != sent:
            continue
        kind = message["msg_type"]
        shown += kind in DISPLAYS
        if kind == "error":
            raise RuntimeError(message["content"])
        if kind == "status" and message["content"]["execution_state"] == "idle":
            return shown


def main() -> None:
    starts, pieces, shows, prepare, show = json.loads(sys.argv[1])
    found: dict[str, list[float]] = {"start": [], "1+1": [], "displays": []}
    for _ in range(starts):
        begin = time.perf_counter()
        manager, client = start()
        assert run(client, "1+1") == 1
        found["start"].append((time.perf_counter() - begin) * 1000)
        stop(manager, client)
    manager, client = start()
    run(client, prepare)
    for name, code, count, displays in (("1+1", "1+1", pieces, 1), ("displays", show, shows, 100)):
        for _ in range(count):
            begin = time.perf_counter()
            assert run(client, code) == displays
            found[name].append((time.perf_counter() - begin) * 1000)
    stop(manager, client)
    print(json.dumps(found))


main()
