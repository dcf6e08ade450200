"""Runs every comparison, or those named as arguments: `python -m bench [exec cold burst memory throughput cli contexts sweep]`."""

from __future__ import annotations

import sys

from bench import burst, cold, command_line, contexts, executions, memory, sweep, throughput
from bench.report import print_machine

PARTS = {
    "exec": executions.measure,
    "cold": cold.measure,
    "burst": burst.measure,
    "memory": memory.measure,
    "throughput": throughput.measure,
    "cli": command_line.measure,
    "contexts": contexts.measure,
    "sweep": sweep.measure,
}


def main() -> int:
    names = sys.argv[1:] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"there is no part {unknown[0]!r}; expected: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    print_machine()
    for name in names:
        PARTS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
