from __future__ import annotations

from pathlib import Path

from cloche.images.base import Bind, Image
from cloche.images.records import load_image, save_image


def test_an_image_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    image = Image(
        name="mine",
        rootfs=tmp_path / "rootfs",
        binds=(Bind(source=Path("/usr"), target="/usr"), Bind(source=Path("/ö\udcff"), target="/ö\udcff")),
        env={"A": "b"},
        interpreters={"bash": "/bin/bash"},
    )
    save_image(tmp_path, image)
    assert load_image(tmp_path, "mine") == image


def test_a_record_that_is_missing_cut_short_or_of_another_format_is_no_image(tmp_path: Path) -> None:
    assert load_image(tmp_path, "mine") is None
    for text in ("", '{"format": 1', '{"format": 99}'):
        (tmp_path / "image.json").write_text(text)
        assert load_image(tmp_path, "mine") is None
