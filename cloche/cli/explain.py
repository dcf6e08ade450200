"""`cloche explain`."""

from __future__ import annotations

import shlex
import time
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from cloche.cli.arguments import Rest
from cloche.cli.find import ID_HELP, find_record
from cloche.cli.options import FLAGS, add_box_options, box_arguments
from cloche.cli.tables import age, print_json, print_table
from cloche.cli.terminal import clean
from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator, Sequence

    from cloche.engines.mounts import Mount
    from cloche.sandboxes.explanations import Explanation, LimitIs
    from cloche.sandboxes.records import Record

EXAMPLE: Final = "cloche explain --memory 256 --workspace . -- pytest -q"
REST: Final = Rest("[--] CMD …", "a command, to be told how it would be started; all that follows is its own")
PARTS: Final = ("/proc/", "/dev/")
"""Folders that are told as one: what is mounted within hides something, or is a device."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("id", metavar="ID", nargs="?", help=f"{ID_HELP}; else a new one, made to look at it")
    add_box_options(parser)


def run(args: argparse.Namespace) -> int:
    """Tells it, from what is really there: without an id a sandbox is made, looked at and removed."""
    from cloche.sandboxes.explanations import explain

    with _sandbox(args) as record:
        found = explain(record)
        command = _argv(args.rest, record)
    if args.json:
        print_json({**asdict(found), "fresh": args.id is None, "command": command})
    else:
        _print(found, command, is_fresh=args.id is None)
    return 0


@contextmanager
def _sandbox(args: argparse.Namespace) -> Generator[Record]:
    options = box_arguments(args)
    if args.id is not None:
        given = [FLAGS.get(name, f"--{name}") for name, value in options.items() if value]
        if given:
            raise InvalidRequest(f"{', '.join(given)} would be those of a new sandbox; leave them out, or {args.id!r}")
        yield find_record(args.id)
        return
    from cloche.client._sync.sandbox import Sandbox
    from cloche.sandboxes import boxes

    with Sandbox.create(**options, bound=True) as box:
        yield boxes.find(box.id)


def _argv(words: Sequence[str], record: Record) -> list[str] | None:
    """What would be started, as `cloche exec` has it: one word may be a line for the shell."""
    from cloche.client.paths import to_text
    from cloche.client.words import to_argv

    if not words:
        return None
    return [to_text(word) for word in to_argv(words[0] if len(words) == 1 else words, record.shell)]


def _print(found: Explanation, command: list[str] | None, *, is_fresh: bool) -> None:
    rows: list[tuple[str, Any]] = [("where", _where(found, is_fresh=is_fresh))]
    rows += [("why", reason) for reason in found.why]
    if command is not None:
        rows.append(("command", shlex.join(command)))
    rows += [
        ("runtime", f"{found.runtime}, {found.interpreter}"),
        *([("", found.note)] if found.note else []),
        ("image", found.image),
        ("user", f"{found.user}, uid {found.uid}"),
        ("folder", found.cwd),
        ("variables", " ".join(found.env)),
        ("network", found.network),
        ("workspace", _workspace(found)),
        ("lifetime", _lifetime(found, is_fresh=is_fresh)),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {clean(str(value))}")
    print()
    print_table(("LIMIT", "VALUE", "FROM", "ENFORCED BY"), [_limit(limit) for limit in found.limits])
    if found.mounts:
        print()
        print_table(("SEEN AT", "ACCESS", "WHAT", "OPTIONS"), _mounts(found.mounts))


def _where(found: Explanation, *, is_fresh: bool) -> str:
    name = found.name or found.id
    if found.isolated:
        which = "a sandbox of its own, made for it and gone afterwards" if is_fresh else f"the sandbox {name}"
    else:
        folder = "a folder of its own, which is gone afterwards" if is_fresh else f"the folder of {name}"
        which = f"THIS MACHINE, without isolation, in {folder}"
    return f"{which}; engine {found.engine}"


def _workspace(found: Explanation) -> str:
    if found.workspace is None:
        return "none"
    note = ": your own folder, so its size is not limited" if found.workspace_access == "rw" else ""
    return f"{found.workspace}, {found.workspace_access}{note}"


def _lifetime(found: Explanation, *, is_fresh: bool) -> str:
    if is_fresh:
        return "ends with the command"
    idle = f"ends when nobody has used it for {age(found.idle_timeout)}" if found.idle_timeout else "may be idle"
    end = (
        "" if found.ends_at is None else f"in any case {time.strftime('%Y-%m-%d %H:%M', time.localtime(found.ends_at))}"
    )
    return ", ".join(filter(None, (idle, end or "without end")))


def _limit(limit: LimitIs) -> tuple[object, ...]:
    value = f"{limit.value:.15g} {limit.unit}" if limit.value else "none"
    by = f"{limit.enforced}: {limit.reason}" if limit.enforced != "no" else f"NOT ENFORCED: {limit.reason}"
    return FLAGS[limit.name], value, "asked for" if limit.asked else "default", by


def _mounts(mounts: Sequence[Mount]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [
        (mount.path, mount.access, mount.what, ",".join(mount.options))
        for mount in mounts
        if not mount.path.startswith(PARTS)
    ]
    for part in PARTS:
        count = sum(mount.path.startswith(part) for mount in mounts)
        if count:
            rows.append((f"{part}…", "", f"{count} more: masks, and the few devices; --json lists them", ""))
    return rows
