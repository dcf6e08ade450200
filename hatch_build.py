"""Compiles the static C programs: the keeper and the launcher, which every box starts with, and the probe of `cloche doctor`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = {"keeper": "keeper", "launch": "keeper/launch", "probe": "keeper/probe"}
FLAGS = ["-std=c11", "-O2", "-static", "-s", "-Wall", "-Wextra"]
PLATFORMS = {"linux-x86_64": "linux_x86_64", "linux-aarch64": "linux_aarch64"}


class CustomBuildHook(BuildHookInterface[Any]):
    """Puts `cloche/_bin/keeper` and the others into the wheel, or into the tree where it is editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        platform = PLATFORMS.get(sysconfig.get_platform())
        if platform is None:
            raise SystemExit(f"this machine is {sysconfig.get_platform()!r}; Cloche runs on {' and '.join(PLATFORMS)}")
        root = Path(self.root)
        folder = root / "cloche" / "_bin"
        folder.mkdir(exist_ok=True)
        for name, sources in PROGRAMS.items():
            compile_program(root / sources, folder / name)
        build_data["artifacts"].append("/cloche/_bin/*")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"


def compile_program(folder: Path, program: Path) -> None:
    """Compiles beside the program and renames: one that runs at this moment stays whole."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if compiler is None:
        raise SystemExit("no C compiler found; Cloche builds its keeper with one: apt-get install gcc libc6-dev")
    sources = sorted(
        str(path)
        for path in folder.glob("*.c")
        if not path.name.endswith("_test.c") and not path.name.startswith("fuzz")
    )
    if not sources:
        raise SystemExit(f"no C sources in {folder}; is this a complete copy of the source tree?")
    fresh = program.with_suffix(f".{os.getpid()}")
    try:
        subprocess.run([*compiler.split(), *FLAGS, "-o", str(fresh), *sources], check=True)
        fresh.rename(program)
    except subprocess.CalledProcessError:
        raise SystemExit(
            f"compiling {program.name} with {compiler!r} failed, see above; "
            "where a header or library is missing: apt-get install gcc libc6-dev"
        ) from None
    finally:
        fresh.unlink(missing_ok=True)
