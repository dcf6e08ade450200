"""The file image.json beside an image's root file system: all of the image but what its folder tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from cloche.images.base import Bind, Image

FORMAT = 1
RECORD = "image.json"
ROOTFS = "rootfs"


def save_image(folder: Path, image: Image) -> None:
    """Writes the record of the image whose root file system is in `folder`."""
    record = {
        "format": FORMAT,
        "binds": [[str(bind.source), bind.target] for bind in image.binds],
        "env": dict(image.env),
        "interpreters": dict(image.interpreters),
    }
    (folder / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")


def load_image(folder: Path, name: str) -> Image | None:
    """The image in `folder`, or None where there is none that this version of Cloche can read."""
    try:
        with open(f"{folder}/{RECORD}", encoding="utf-8") as file:
            record = cast("dict[str, Any]", json.load(file))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if record.get("format") != FORMAT:
        return None
    return Image(
        name=name,
        rootfs=folder / ROOTFS,
        binds=tuple(Bind(source=Path(source), target=target) for source, target in record["binds"]),
        env=record["env"],
        interpreters=record["interpreters"],
    )
