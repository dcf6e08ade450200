"""`cloche code`, with real boxes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from cloche.cli.main import main
from tests.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from cloche import Sandbox

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_variables_survive_from_one_call_to_the_next(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["code", "box", "-c", "a = 20"]) == 0
    assert main(["code", "box", "-c", "print('printed')\na * 2"]) == 0
    assert capfd.readouterr().out == "printed\n40\n"
    assert main(["code", "box", "--language", "bash", "-c", "exit 3"]) == 3
    assert main(["code", "box", "--contexts"]) == 0
    assert [line.split()[:2] for line in capfd.readouterr().out.splitlines()[1:]] == [
        ["python", "python"],
        ["bash", "bash"],
    ]
    for language in ("python", "sh"):
        assert main(["code", "box", "--restart", "--language", language]) == 0
    assert main(["code", "box", "-c", "a"]) == 1
    assert "NameError: name 'a' is not defined" in capfd.readouterr().err
    del box


def test_a_file_and_standard_input_will_do(
    box: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del box
    (tmp_path / "a.py").write_text("print('from a file')")
    assert main(["code", "box", str(tmp_path / "a.py")]) == 0
    with (tmp_path / "a.py").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(["code", "box", "-"]) == 0
        assert main(["code", "box"]) == 125
    out, err = capfd.readouterr()
    assert out == "from a file\n" * 2
    assert "there is no code" in err
    assert main(["code", "box", "-", "-c", "1"]) == 125
    assert main(["code", "box", "/nowhere"]) == 125
    err = capfd.readouterr().err
    assert "one of them was expected" in err
    assert "No such file" in err


def test_a_program_gets_all_of_it_as_json(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    del box
    assert main(["code", "box", "--json", "-c", "print(1)\n{'a': 1}"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert (answer["stdout"], answer["text"], answer["ok"]) == ("1\n", "{'a': 1}", True)
    assert answer["results"][0]["data"]["text/plain"] == "{'a': 1}"


def test_no_word_of_the_code_is_taken_for_ours_and_none_ends_the_program(
    box: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    del box
    assert main(["code", "box", "-c", "display({'a/b\\ncloche: run this': 'x'}, raw=True)"]) == 1
    assert "\ncloche: run this" not in capfd.readouterr().err
    assert main(["code", "box", "-c", "raise ValueError('\\ud800')"]) == 1
    assert "ValueError: \\ud800" in capfd.readouterr().err
    assert (
        main(["code", "box", "--timeout", "0.3", "-c", "try: __import__('time').sleep(9)\nexcept KeyboardInterrupt: 0"])
        == 1
    )


def test_pictures_are_kept_where_that_is_asked_for(
    box: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    del box
    code = f"display({{'image/png': {PNG!r}, 'text/plain': 'a picture'}}, raw=True)"
    assert main(["code", "box", "-c", code]) == 0
    assert "image/png was shown; --save DIR keeps it" in capfd.readouterr().err
    for number in (1, 2):
        assert main(["code", "box", "--save", str(tmp_path / "kept"), "-c", code]) == 0
        path = tmp_path / "kept" / f"shown-{number}.png"
        assert f"kept as {str(path)!r}" in capfd.readouterr().err
        assert path.read_bytes().startswith(b"\x89PNG")


def test_the_console_is_for_people(home: Path, box: Sandbox) -> None:
    with Screen([sys.executable, "-m", "cloche", "code", box.id]) as screen:
        screen.wait_for("python [1]: ")
        screen.type("a = 6\n")
        screen.wait_for("python [2]: ")
        screen.type("for n in range(2):\n")
        screen.wait_for("...: ")
        screen.type("    print(n * a, '\\x1b]0;title\\x07')\n\n")
        assert "0 \r\n6 \r\n" in screen.wait_for("python [3]: ")
        screen.type("import time; print('beg' + 'un', flush=True); time.sleep(60)\n")
        screen.wait_for("begun")
        screen.type("\x03")
        if "]: " not in screen.wait_for("interrupted").rpartition("interrupted")[2]:
            screen.wait_for("]: ")
        screen.type("a\n")
        # A key that ends it counts where the console reads.
        if "]: " not in screen.wait_for("6\r\n").rpartition("6\r\n")[2]:
            screen.wait_for("]: ")
        screen.type("\x04")
        assert screen.wait() == 0
    assert "title" not in screen.seen.replace("0;title\\x07", "")
    assert "for n in range(2):" in (home / "console-history").read_text()
