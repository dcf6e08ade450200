"""A box from nothing to its first output, against the bare OCI runtime, Docker and Podman."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Self

from bench.report import Times, print_bar, print_heading, print_times, take_turns
from bench.rivals import start_docker, start_podman
from cloche import Sandbox, settings
from cloche.engines.machine import find_program
from cloche.engines.oci import OciEngine
from cloche.images import find_image
from cloche.models import SandboxSpec

ROUNDS, EACH = 4, 5


def measure() -> None:
    print_heading(
        "A cold box to its first output (`echo ok`), nothing pooled",
        "  Sandbox.create() and one command; the bare runtime runs `true` with the very same config.json,\n"
        "  in a mount namespace where the root file system is mounted already; medians of 20, in turns of 5",
    )
    cold: dict[str, Times] = {}
    for runtime in ("crun", "runc"):
        if find_program(runtime) is None:
            print(f"  {runtime} is not installed")
            continue
        cold[runtime] = _compare(runtime)
    for rival in (start_docker, start_podman):
        with rival() as run:
            if run is None:
                continue
            times = take_turns({run.name: run}, rounds=1, each=7, warm_up=1)[run.name]
            print_times(times)
            if "crun" in cold:
                print_bar(f"{run.name}, x a box of ours", times.median / cold["crun"].median, 10, at_least=True)


def make_and_ask(engine: str) -> Sandbox:
    box = Sandbox.create(engine=engine)
    assert box.commands.run(["echo", "ok"]).stdout == "ok\n"
    return box


def _compare(runtime: str) -> Times:
    ours, bare = Times(f"cloche on {runtime}", []), Times(f"{runtime} alone, running true", [])
    with tempfile.TemporaryDirectory() as folder, BareRuntime(runtime, Path(folder)) as alone:
        engine = f"embedded:{runtime}"
        boxes: list[Sandbox] = []
        for turn in range(ROUNDS + 1):
            values = take_turns({"": lambda: boxes.append(make_and_ask(engine))}, rounds=1, each=EACH, warm_up=0)
            while boxes:
                boxes.pop().kill()
            plain = alone.times(EACH)
            if turn:  # the first round warms up
                ours.values.extend(values[""].values)
                bare.values.extend(plain)
    print_times(bare)
    print_times(ours, bare)
    print_bar(f"cold box on {runtime}, x the bare runtime", ours.median / bare.median, 1.5)
    return ours


class BareRuntime:
    """The OCI runtime alone: a loop in the place where the launcher would start it."""

    def __init__(self, runtime: str, folder: Path) -> None:
        self._engine = OciEngine(runtime)
        self._folder = folder
        self._id = "bench" + secrets.token_hex(7) + "0"

    def __enter__(self) -> Self:
        program = find_program(self._engine.runtime.name)
        assert program is not None
        image = find_image(settings.home(), "host")
        self._box, command = self._engine.plan(self._id, self._folder, SandboxSpec(), image)
        config = json.loads((self._folder / "config.json").read_text())
        config["process"]["args"] = ["/usr/bin/true"]
        # Ours holds the keeper's folders, which the runtime would try to remove.
        config["linux"]["cgroupsPath"] += "-alone"
        (self._folder / "config.json").write_text(json.dumps(config))
        state = ["--root", str(self._folder / "state")]
        options = list(self._engine.runtime.cgroup_options)
        run = [program, *options, *state, "run", "--bundle", str(self._folder)]
        here = Path(__file__).with_name("loop.py")
        self._process = subprocess.Popen(
            [*command, "--", sys.executable, str(here), self._id + "x", *run],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def times(self, count: int) -> list[float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._engine.delete(self._box)
