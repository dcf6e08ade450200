from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NODE_URL = b"\0https://nodejs.org/download/release/v18.19.0/node.tar.gz\0"


def python(code: str, *arguments: object) -> str:
    """What a process of its own prints that runs `code`: confinement can't be undone."""
    prelude = "import os, sys, socket\nfrom cloche.images import unpack\nfrom cloche.images.members import Caps\n"
    command = [sys.executable, "-P", "-c", prelude + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "attempt",
    [
        "os.mknod('/device', 0o20600, os.makedev(1, 3))",
        "os.mkdir('/again'); os.chroot('/again')",
        "os.setuid(0)",
        "os.kill(os.getppid(), 0)",
        "os.fork()",
        "os.stat('/etc/passwd')",
        "open('/proc/self/status')",
    ],
)
def test_the_process_that_unpacks_cannot(attempt: str, tmp_path: Path) -> None:
    code = f"unpack.confine(sys.argv[1], Caps())\ntry:\n    {attempt}\nexcept OSError:\n    print('refused')\n"
    assert python(code, tmp_path) == "refused"


def test_it_has_no_network(tmp_path: Path) -> None:
    assert python("unpack.confine(sys.argv[1], Caps())\nprint(socket.if_nameindex())", tmp_path) == "[(1, 'lo')]"


def test_its_capabilities_are_those_of_owners_and_modes_and_cannot_grow(tmp_path: Path) -> None:
    code = (
        "status = os.open('/proc/self/status', os.O_RDONLY)\n"
        "unpack.confine(sys.argv[1], Caps())\n"
        "print(os.pread(status, 4096, 0).decode('ascii', 'replace'))"
    )
    status = dict(
        line.split(":\t") for line in python("''.encode('ascii')\n" + code, tmp_path).splitlines() if ":\t" in line
    )
    assert {status[name] for name in ("CapPrm", "CapEff")} == {"000000000000000b"}
    assert (status["CapInh"], status["NoNewPrivs"]) == ("0000000000000000", "1")


@pytest.mark.parametrize(
    ("header", "content", "version"),
    [
        ("#define NODE_MAJOR_VERSION 22\n", b"", "22"),
        ("nothing of use", b"x" * 5000 + NODE_URL, "18.19.0"),
        (None, NODE_URL, "18.19.0"),
        (None, b"a node that does not tell", None),
    ],
)
def test_the_version_of_a_node_is_read_and_not_asked_for(
    tmp_path: Path, header: str | None, content: bytes, version: str | None
) -> None:
    from cloche.images.unpack import read_node_version

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/node").write_bytes(content or b"\0")
    if header is not None:
        (tmp_path / "include/node").mkdir(parents=True)
        (tmp_path / "include/node/node_version.h").write_text(header)
    assert read_node_version(str(tmp_path / "bin/node")) == version
