"""Imports point one way: what stands below knows nothing of what stands above it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "cloche"

BASE = {"displays", "drivers", "errors", "faults", "models", "settings", "version"}
PARTS = BASE | {"link", "gate", "images", "store"}
ENGINES = PARTS | {"engines"}
SANDBOXES = ENGINES | {"sandboxes"}
CLIENT = SANDBOXES | {"client"}
SERVER = CLIENT | {"doctor", "preview", "assistant", "policy", "server", "adapters"}

MAY_IMPORT = {
    "displays": {"errors", "models"},
    "drivers": set[str](),
    "errors": set[str](),
    "faults": set[str](),
    "models": {"errors"},
    "version": set[str](),
    "settings": BASE,
    "link": BASE,
    "gate": BASE | {"policy"},
    "images": BASE,
    "store": BASE,
    "policy": BASE,
    "engines": PARTS,
    "sandboxes": ENGINES | {"policy"},
    "client": SANDBOXES,
    "doctor": CLIENT,
    "preview": CLIENT,
    "assistant": CLIENT,
    "server": SERVER,
    "adapters": SERVER,
    "cli": SERVER,
    "first_run": CLIENT,
    "__main__": {"cli"},
    "": CLIENT,
}
"""The part of `cloche.part…` to the parts that it may import besides itself; "" is the package's own front."""


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py").replace("__init__", "")


def imports_of(path: Path) -> set[str]:
    parts: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name cloche in full"
            module = node.module or ""
            names = [f"cloche.{alias.name}" for alias in node.names] if module == "cloche" else [module]
        parts |= {name.split(".")[1] for name in names if name.startswith("cloche.")}
    return parts


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_only_what_stands_below_it(path: Path) -> None:
    part = part_of(path)
    assert part in MAY_IMPORT, f"cloche/{part} has no row in this test's table"
    files = {name.stem for name in PACKAGE.glob("*.py")} | {name.name for name in PACKAGE.iterdir() if name.is_dir()}
    too_high = (imports_of(path) & files) - MAY_IMPORT[part] - {part}
    assert not too_high, f"{path} may not import cloche.{', cloche.'.join(sorted(too_high))}"


def test_importing_the_library_loads_nothing_but_the_standard_library() -> None:
    roots = {
        name.split(".")[0]
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    import sys

    assert roots - {"cloche"} <= sys.stdlib_module_names
