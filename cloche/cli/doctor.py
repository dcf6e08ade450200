"""`cloche doctor`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

from cloche.cli.arguments import screen_width
from cloche.cli.tables import print_json, print_table
from cloche.cli.terminal import clean
from cloche.engines import ENGINES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from cloche.doctor.findings import Examined, Finding, Report

EXAMPLE: Final = "cloche doctor --engine embedded --verbose"
WIDEST: Final = 110
TRIED: Final = {"held": "held", "broken": "DID NOT HOLD", "not_tried": "not tried"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--engine", choices=tuple(ENGINES), metavar="E", help=f"look at one only: {', '.join(ENGINES)}")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="show all that was looked at, and by what means each promise is kept",
    )


def run(args: argparse.Namespace) -> int:
    """Looks, tries and tells; the exit status is 1 where something that should hold does not."""
    from cloche.doctor.examination import examine_machine

    report = examine_machine([args.engine] if args.engine else [])
    if args.json:
        print_json(_describe(report))
    else:
        _show(report, is_verbose=args.verbose)
    return 0 if report.is_well else 1


def _show(report: Report, *, is_verbose: bool) -> None:
    from cloche.doctor.verdicts import headline

    print(_line(headline(report)))
    shown = [*report.of("problem"), *report.of("warning"), *(report.of("note") if is_verbose else [])]
    for finding in shown:
        _show_finding(finding)
    print()
    print_table(("ENGINE", "LEVEL", ""), [_engine_row(engine, report.embedded) for engine in report.engines])
    print()
    print_table(("PROMISE", *(engine.name for engine in report.engines)), _promise_rows(report.engines))
    notes = report.of("note")
    if is_verbose:
        _show_means(report.engines)
        _show_facts(report)
    elif notes:
        print(f"\n{len(notes)} {'note' if len(notes) == 1 else 'notes'} more, and all that was looked at: --verbose")


def _show_finding(finding: Finding) -> None:
    """What it is, and indented what to do."""
    width = min(screen_width(), WIDEST)
    head = f"{finding.state}: {finding.name}: {_line(finding.found)}"
    print()
    print(textwrap.fill(head, width, subsequent_indent="  ", break_on_hyphens=False))
    if finding.repair:
        # In one piece, to be copied.
        print(f"  -> {_line(finding.repair)}")


def _engine_row(engine: Examined, embedded: str | None) -> tuple[str, str, str]:
    from cloche.doctor.verdicts import describe

    text = describe(engine).removeprefix(f"{engine.name} ")
    return engine.name, engine.level, f"{text}; `embedded` means this one" if engine.name == embedded else text


def _promise_rows(engines: Sequence[Examined]) -> list[list[str]]:
    return [[promise, *(_cell(engine, promise) for engine in engines)] for promise in engines[0].abilities]


def _cell(engine: Examined, promise: str) -> str:
    enforced = engine.abilities[promise].enforced
    if enforced == "no" or engine.level == "none":
        return enforced
    return f"{enforced}, {TRIED[engine.trials[promise].outcome]}" if engine.makes_boxes else "no box"


def _show_means(engines: Sequence[Examined]) -> None:
    for engine in engines:
        print()
        rows = [
            (promise, ability.enforced, ability.reason, engine.trials[promise].detail)
            for promise, ability in engine.abilities.items()
        ]
        print_table((engine.name, "BY", "MEANS", "TRIED"), [[_line(cell) for cell in row] for row in rows])


def _show_facts(report: Report) -> None:
    facts = [
        (engine.name, fact.name, "ok" if fact.ok else "missing", fact.found)
        for engine in report.engines
        for fact in engine.facts
    ]
    good = [("", finding.name, finding.state, finding.found) for finding in report.of("ok")]
    print()
    print_table(("ENGINE", "WHAT", "STATE", "FOUND"), [[_line(cell) for cell in row] for row in [*facts, *good]])


def _line(text: str) -> str:
    """One, whatever a program or a box had to say."""
    return clean(" ".join(text.split()))


def _describe(report: Report) -> dict[str, Any]:
    from cloche.doctor.verdicts import headline
    from cloche.engines.abilities import PROMISES

    return {
        "well": report.is_well,
        "verdict": headline(report),
        "embedded": report.embedded,
        "engines": [
            {
                "name": engine.name,
                "level": engine.level,
                "makes_boxes": engine.makes_boxes,
                "facts": [
                    {name: getattr(fact, name) for name in ("name", "ok", "needed", "found", "repair")}
                    for fact in engine.facts
                ],
                "promises": [
                    {
                        "name": promise,
                        "text": PROMISES[promise],
                        "enforced": ability.enforced,
                        "means": ability.reason,
                        "tried": engine.trials[promise].outcome,
                        "detail": engine.trials[promise].detail,
                    }
                    for promise, ability in engine.abilities.items()
                ],
            }
            for engine in report.engines
        ],
        "findings": [
            {name: getattr(finding, name) for name in ("name", "state", "found", "repair")}
            for finding in report.findings
        ],
    }
