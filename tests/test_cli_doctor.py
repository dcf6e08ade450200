"""`cloche doctor`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from cloche.cli.main import main
from cloche.doctor.findings import Examined, Finding, Report, Trial
from cloche.engines.abilities import ABILITIES, PROMISES
from cloche.engines.base import Fact

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CRUN = ABILITIES["embedded:crun"]
HELD = {promise: Trial("held", "tried") for promise in PROMISES}


def report_of(*findings: Finding, **trials: Trial) -> Report:
    engines = [
        Examined(name="embedded:crun", facts=[Fact("box", True, "made")], abilities=CRUN, trials={**HELD, **trials}),
        Examined(
            name="host",
            facts=[],
            abilities=ABILITIES["host"],
            trials=dict.fromkeys(PROMISES, Trial("not_tried", "nothing to try")),
        ),
    ]
    return Report(engines=engines, embedded="embedded:crun", findings=findings)


def show(report: Report, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    def examine(names: Sequence[str]) -> Report:
        return report

    monkeypatch.setattr("cloche.doctor.examination.examine_machine", examine)
    return main(["doctor", *words])


def test_a_person_sees_first_what_is_to_be_done(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del home
    monkeypatch.setenv("COLUMNS", "90")
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "embedded:crun makes boxes here: 17 of 17 promises held"
    assert ["PROMISE", "embedded:crun", "embedded:runc", "host"] in [line.split() for line in lines]
    assert "memory_mb       kernel, held   kernel, held   no" in lines
    assert "host           none      isolates nothing: code runs as a plain process of yours" in lines
    assert "embedded:crun  hardened  makes boxes here: 17 of 17 promises held; `embedded` means this one" in lines
    assert len(lines) < 60


def test_a_problem_stands_before_all_else_with_its_repair_and_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_of(
        Finding("a", "note", "advice", "do this"),
        Finding("b", "warning", "old", "update it"),
        Finding("pids", "problem", "did not hold on embedded:crun: 36 and not 24", "report it"),
        pids=Trial("broken", "36 and not 24"),
    )
    assert show(report, monkeypatch) == 1
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].endswith("16 of 17 promises held; 1 problem to repair")
    assert shown.index("problem: pids") < shown.index("  -> report it") < shown.index("warning: b: old")
    assert "pids            kernel, DID NOT HOLD  no" in shown
    assert "advice" not in shown
    assert "1 note more" in shown


@pytest.mark.parametrize("columns", ["1", "2", "-1"])
def test_findings_are_told_where_there_is_hardly_any_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert (
        show(
            report_of(Finding("b", "warning", "this is old, and that is not"), Finding("c", "warning", "x")),
            monkeypatch,
        )
        == 0
    )
    assert "\nwarning: b: this is old, and that is not\n" in capsys.readouterr().out


def test_warnings_alone_do_not_fail(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert show(report_of(Finding("b", "warning", "old", "update it")), monkeypatch) == 0
    assert "warning: b: old" in capsys.readouterr().out


def test_verbose_shows_notes_means_and_all_that_was_looked_at(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_of(Finding("a", "note", "advice", "do this"), Finding("linux", "ok", "6.18.44"))
    assert show(report, monkeypatch, "--verbose") == 0
    shown = capsys.readouterr().out
    assert "note: a: advice\n  -> do this" in shown
    assert CRUN["pids"].reason in shown
    assert "6.18.44" in shown
    assert "more" not in shown.splitlines()[-1]


def test_what_a_box_or_a_program_said_obeys_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_of(Finding("b", "warning", "\x1b[2J\nnot a line of ours", "rm\r-x"))
    show(report, monkeypatch, "--verbose")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "warning: b: �[2J not a line of ours\n  -> rm -x\n" in shown


def test_a_program_gets_all_of_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del home
    assert main(["doctor", "--json", "--engine", "embedded:crun"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"well", "verdict", "embedded", "engines", "findings"}
    assert (answer["well"], answer["embedded"]) == (True, "embedded:crun")
    [engine] = answer["engines"]
    assert set(engine) == {"name", "level", "makes_boxes", "facts", "promises"}
    assert (engine["name"], engine["level"]) == ("embedded:crun", "hardened")
    assert [promise["name"] for promise in engine["promises"]] == list(PROMISES)
    assert {promise["tried"] for promise in engine["promises"]} == {"held"}
    assert set(engine["promises"][0]) == {"name", "text", "enforced", "means", "tried", "detail"}
    assert set(engine["facts"][0]) == {"name", "ok", "needed", "found", "repair"}
    assert all(set(finding) == {"name", "state", "found", "repair"} for finding in answer["findings"])


def test_an_engine_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--engine", "docker"]) == 2
    assert "embedded:crun" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_from_outside_it_leaves_nothing(home: Path, tmp_path: Path, number: signal.Signals) -> None:
    # Who runs the tests in the background has them ignore it.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "cloche", "doctor", "--engine", "embedded:crun"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as doctor:
        boxes, deadline = home / "boxes", time.monotonic() + 30
        while not (boxes.exists() and len(list(boxes.iterdir())) == 2):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        doctor.send_signal(number)
        _, said = doctor.communicate(timeout=30)
    assert doctor.returncode == (130 if number == signal.SIGINT else 143)
    assert b"Traceback" not in said
    assert list(boxes.iterdir()) == []
    assert list(tmp_path.iterdir()) == []
    assert [path.name for path in (home / "disks").iterdir() if path.name.startswith("17-")] == []
