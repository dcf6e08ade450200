"""`cloche setup`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cloche import settings
from cloche.cli.tables import print_json, print_table
from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    import argparse

    from cloche.engines.prepare import Step

EXAMPLE = "sudo cloche setup alice"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("user", nargs="?", help="who is to make sandboxes; else who called sudo, or you")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; the exit status is 1 where something is missing"
    )


def run(args: argparse.Namespace) -> int:
    """Takes what is missing of the steps, and says what it did; without root it says what root would do."""
    from cloche.engines.prepare import steps_for

    name = args.user or _who()
    if name == "root":
        raise InvalidRequest("root needs no preparation; name the ordinary user: cloche setup alice")
    steps = steps_for(name)
    may_change = os.geteuid() == 0 and not args.check
    missing = [step for step in steps if not step.is_done]
    if may_change:
        for step in missing:
            step.take()
    after = steps_for(name) if may_change else steps
    is_ready = all(step.is_done for step in after)
    if args.json:
        print_json(
            {"user": name, "ready": is_ready, "steps": [_describe(*pair) for pair in zip(steps, after, strict=True)]}
        )
    else:
        rows = [
            (now.name, "ready" if now.is_done else "missing", _told(was, now))
            for was, now in zip(steps, after, strict=True)
        ]
        print_table(("WHAT", "STATE", ""), rows)
        if not is_ready and not may_change:
            print(f"\nOnce, as root: cloche setup {name}")
    return 0 if is_ready else 1


def _who() -> str:
    return os.environ.get("SUDO_USER") or settings.user_name()


def _told(was: Step, now: Step) -> str:
    if was.is_done:
        return was.found
    return f"did: {was.does}" if now.is_done else f"would be done by root: {was.does}"


def _describe(was: Step, now: Step) -> dict[str, object]:
    changed = was.does if now.is_done and not was.is_done else None
    return {"name": now.name, "ready": now.is_done, "found": now.found, "does": now.does, "changed": changed}
