"""The keeper's codec, under sanitizers: the vectors of docs/protocol.md, and frames that were damaged."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
FRAMES = int(os.environ.get("CLOCHE_FUZZ", "50000"))


def vectors() -> list[tuple[str, bytes, Any]]:
    block = (ROOT / "docs/protocol.md").read_text().split("```vectors\n", 1)[1].split("```", 1)[0]
    words = [line.split(" ", 2) for line in block.splitlines() if line]
    return [(name, bytes.fromhex(data), json.loads(fields)) for name, data, fields in words]


@pytest.fixture(scope="session")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("codec") / "frames_test"
    flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    sources = [str(ROOT / "keeper" / name) for name in ("frames_test.c", "frames.c")]
    subprocess.run(["cc", *flags, "-fno-sanitize-recover", "-o", str(program), *sources], check=True)
    return program


def decode(codec: Path, frames: Iterable[bytes]) -> list[str]:
    lines = "".join(f"X {frame.hex()}\n" for frame in frames)
    done = subprocess.run([str(codec)], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def damage(rng: random.Random, frame: bytes) -> bytes:
    data = bytearray(frame)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(4, len(data) + 1)
        match rng.randrange(5):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                data[at:at] = rng.randbytes(rng.randint(1, 8))
            case 2:
                del data[at : at + rng.randint(1, 8)]
            case 3:
                data[at : at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\x00\x10\x00\x00", bytes(4)])
            case _:
                data[at:] = data[at : at + rng.randint(0, 40)]
        if len(data) < 5:
            data += bytes(5 - len(data))
    data[:4] = struct.pack("<I", len(data) - 5)
    return bytes(data)


def test_every_vector_is_decoded_to_its_fields(codec: Path) -> None:
    found = [line.split(" ")[:2] for line in decode(codec, (frame for _, frame, _ in vectors()))]
    assert [(name, json.loads(fields)) for name, fields in found] == [(name, fields) for name, _, fields in vectors()]


def test_every_vector_is_encoded_to_the_same_octets(codec: Path) -> None:
    found = [line.split(" ")[2] for line in decode(codec, (frame for _, frame, _ in vectors()))]
    assert found == [frame.hex() for _, frame, _ in vectors()]


def test_every_shortened_or_lengthened_request_is_refused(codec: Path) -> None:
    requests = [frame for _, frame, _ in vectors() if frame[4] <= 17]
    cut = [struct.pack("<I", size - 5) + frame[4:size] for frame in requests for size in range(5, len(frame))]
    longer = [struct.pack("<I", len(frame) - 4) + frame[4:] + b"\0" for frame in requests]
    assert all(line.startswith("error: ") for line in decode(codec, cut + longer))


def test_a_request_of_another_version_is_told_apart(codec: Path) -> None:
    assert decode(codec, [struct.pack("<IBB", 1, 5, 2)]) == ["error: EPROTONOSUPPORT"]


def test_a_string_with_a_nul_is_refused(codec: Path) -> None:
    path = struct.pack("<I", 3) + b"a\0b"
    payload = b"\x01" + struct.pack("<III", 0, 0, 0) + path
    assert decode(codec, [struct.pack("<IB", len(payload), 13) + payload]) == ["error: EINVAL"]


def test_a_list_of_more_than_4096_items_is_refused(codec: Path) -> None:
    argv = struct.pack("<I", 4097) + bytes(4 * 4097)
    payload = b"\x01" + bytes(32) + bytes(8) + argv + bytes(4)
    assert decode(codec, [struct.pack("<IB", len(payload), 1) + payload]) == ["error: E2BIG"]


def test_damaged_frames_are_refused_or_come_out_as_they_went_in(codec: Path) -> None:
    rng = random.Random(2)
    good = [frame for _, frame, _ in vectors()]
    frames = [damage(rng, rng.choice(good)) for _ in range(FRAMES)]
    for frame, line in zip(frames, decode(codec, frames), strict=True):
        assert line.startswith("error: ") or line.split(" ")[2] == frame.hex(), (frame, line)
