"""Rich results of a Python context."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.driver import Driver, Reply

PNG, JPEG = b"\x89PNG\r\n", b"\xff\xd8\xff"
DATA = "application/vnd.cloche.data+json"
CHART = "application/vnd.cloche.chart+json"
MIB = 1 << 20


def shown(reply: Reply) -> list[dict[str, Any]]:
    assert reply.error is None, reply.error
    return [message["data"] for message in reply.of("result")]


METHODS = {
    "html": ("text/html", "'<b>ä</b>'", "<b>ä</b>"),
    "markdown": ("text/markdown", "'*a*'", "*a*"),
    "latex": ("text/latex", "'$a$'", "$a$"),
    "svg": ("image/svg+xml", "'<svg/>'", "<svg/>"),
    "png": ("image/png", "b'\\x89PNG'", "iVBORw=="),
    "jpeg": ("image/jpeg", "b'\\xff\\xd8'", "/9g="),
    "pdf": ("application/pdf", "b'%PDF'", "JVBERg=="),
    "json": ("application/json", "{'a': [1, None, float('nan'), {2}]}", {"a": [1, None, None, [2]]}),
    "javascript": ("application/javascript", "'alert()'", "alert()"),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_value_is_shown_in_the_form_that_it_has(method: str, python: Driver) -> None:
    mime, value, data = METHODS[method]
    code = f"class A:\n    def __repr__(self): return 'A'\n    def _repr_{method}_(self): return {value}\nA()"
    assert shown(python.run(code)) == [{"text/plain": "A", mime: data}]


def test_octets_may_come_in_base64_with_metadata(python: Driver) -> None:
    code = "class A:\n    def _repr_png_(self): return 'iVBO\\nRw==\\n', {'width': 5}\nA()"
    assert shown(python.run(code))[0]["image/png"] == "iVBORw=="


def test_a_bundle_comes_before_single_forms(python: Driver) -> None:
    code = (
        "class A:\n    def _repr_mimebundle_(self, include=None, exclude=None): return {'text/html': 'a', 'text/plain': 'b'}\n"
        "    def _repr_html_(self): return 'c'\n    def _repr_latex_(self): return None\nA()"
    )
    assert shown(python.run(code)) == [{"text/html": "a", "text/plain": "b"}]


def test_values_are_shown_on_the_way_and_at_the_end_in_order(python: Driver) -> None:
    reply = python.run("display(1, 'a')\nfrom_builtins = display\nfrom_builtins({'text/html': 'b'}, raw=True)\n2")
    assert shown(reply) == [{"text/plain": "1"}, {"text/plain": "'a'"}, {"text/html": "b"}, {"text/plain": "2"}]
    assert [message["main"] for message in reply.of("result")] == [False, False, False, True]


def test_what_is_printed_comes_before_what_is_shown_after_it(python: Driver) -> None:
    assert python.run("print('a', end='')\ndisplay(1)\nwhile True: pass", until="result").stdout == "a"
    python.interrupt()
    assert python.collect("done").of("done")


def test_a_handle_shows_another_value(python: Driver) -> None:
    assert shown(python.run("h = display(1, display_id=True)\nh.update(2)")) == [
        {"text/plain": "1"},
        {"text/plain": "2"},
    ]


RAISING = {
    "a form that raises": (
        "class A:\n    def __repr__(self): return 'A'\n    def _repr_html_(self): 1 / 0\nA()",
        "A\n(_repr_html_ raised ZeroDivisionError: division by zero)",
    ),
    "a form that is not made": (
        "class A:\n    def __repr__(self): return 'A'\n    def _repr_html_(self): raise NotImplementedError\nA()",
        "A",
    ),
    "a text that raises": ("class A:\n    def __repr__(self): 1 / 0\nA()", "<A whose repr raised ZeroDivisionError>"),
    "a class with forms": ("class A:\n    def _repr_html_(self): return 'a'\nA", "<class '__main__.A'>"),
    "an object with any attribute": (
        "class A:\n    def __repr__(self): return 'A'\n    def __getattr__(self, name): return print\nA()",
        "A",
    ),
    "what is no JSON": (
        "class A:\n    def __repr__(self): return 'A'\n    def _repr_json_(self):\n        a = []\n        a.append(a)\n        return a\nA()",
        "A",
    ),
}


@pytest.mark.parametrize("case", RAISING)
def test_a_value_that_cannot_be_shown_is_a_text(case: str, python: Driver) -> None:
    code, text = RAISING[case]
    assert shown(python.run(code)) == [{"text/plain": text}]


LARGE = {
    "a text": ("'x' * (9 << 20)", "text/plain", 9 * MIB + 2, "'" + "x" * (64 * 1024 - 1), b"'xx"),
    "a text of wide letters": (
        "{'text/html': 'ä' * (5 << 20)}",
        "text/html",
        10 * MIB,
        "ä" * (32 * 1024),
        "äää".encode(),
    ),
    "half a pair": ("{'text/html': '\\ud800' * (2 << 20)}", "text/html", 12 * MIB, ..., b"\\ud800\\ud800"),
    "a picture": ("{'image/png': b'x' * (7 << 20)}", "image/png", 7 * MIB, None, b"xxx"),
    "data": ("{'application/a+json': ['x' * (8 << 20)]}", "application/a+json", 8 * MIB + 4, None, b'["x'),
}


@pytest.mark.parametrize("case", LARGE)
def test_what_is_too_large_is_whole_in_a_file(case: str, python: Driver) -> None:
    value, mime, size, piece, begin = LARGE[case]
    code = f"display({value}, raw=True)" if value.startswith("{") else value
    message = python.run(code).of("result")[0]
    cut = message["cut"][mime]
    path = Path(cut["path"])
    try:
        assert path.match("/tmp/cloche-*/*")
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert cut["size"] == size == path.stat().st_size
        with path.open("rb") as file:
            assert file.read(len(begin)) == begin
    finally:
        path.unlink()
        path.parent.rmdir()
    assert piece is ... or message["data"].get(mime) == piece


def test_what_just_fits_is_sent(python: Driver) -> None:
    message = python.run("display({'text/html': 'x' * ((8 << 20) - 2)}, raw=True)").of("result")[0]
    assert len(message["data"]["text/html"]) == 8 * MIB - 2
    assert "cut" not in message


def test_all_values_of_a_message_are_below_its_limit(python: Driver, tmp_path: Path) -> None:
    python.run("import tempfile\ntempfile.mkdtemp = lambda **_: '.'")
    code = "display({'text/%d' % n: 'ä' * (1 << 20) for n in range(6)}, raw=True)"
    message = python.run(code).of("result")[0]
    assert len(json.dumps(message)) < 16 * MIB
    assert list(message["cut"]) == ["text/2", "text/3", "text/4", "text/5"]
    assert list(message["data"]) == [f"text/{n}" for n in range(6)]


def test_after_very_much_all_but_short_texts_are_cut(python: Driver) -> None:
    python.run("import tempfile\ntempfile.mkdtemp = lambda **_: '.'")
    python.run("for n in range(13): display({'text/html': 'x' * (5 << 20)}, raw=True)", until="result")
    messages = python.collect("done").of("result")
    assert all("cut" not in message for message in messages)
    code = "for n in range(13): display({'text/html': 'x' * (5 << 20)}, raw=True)\ndisplay({'text/html': 'x' * 100000, 'image/png': b'x'}, raw=True)\n5"
    reply = python.run(code)
    last, value = reply.of("result")[-2:]
    assert set(last["cut"]) == {"text/html", "image/png"}
    assert len(last["data"]["text/html"]) == 64 * 1024
    assert value["data"] == {"text/plain": "5"}


def test_where_no_file_can_be_written_the_cut_says_so(python: Driver) -> None:
    python.run("import tempfile\ndef fail(**_): raise OSError\ntempfile.mkdtemp = fail")
    message = python.run("'x' * (9 << 20)").of("result")[0]
    assert message["cut"]["text/plain"] == {"size": 9 * MIB + 2, "path": None}


def test_the_text_of_ipython_is_shown_without_a_kernel(rich_python: Driver) -> None:
    code = (
        "from IPython.display import HTML, JSON, Image, Markdown, clear_output, display, publish_display_data\n"
        "clear_output()\ndisplay(HTML('<b>a</b>'), Markdown('*a*'))\npublish_display_data({'text/html': 'b'})\n"
        "display(Image(data=b'\\x89PNG', format='png'))\nJSON({'a': 1})"
    )
    results = shown(rich_python.run(code))
    forms = [{mime: value for mime, value in data.items() if mime != "text/plain"} for data in results]
    assert forms == [
        {"text/html": "<b>a</b>"},
        {"text/markdown": "*a*"},
        {"text/html": "b"},
        {"image/png": "iVBORw=="},
        {"application/json": {"a": 1}},
    ]


def test_a_frame_is_html_and_data(rich_python: Driver) -> None:
    code = (
        "import pandas as pd\n"
        "pd.DataFrame({'n': [1, 2], 'f': [1.5, None], 's': ['ä', None], 'b': [True, False],\n"
        "    't': pd.to_datetime(['2024-01-02 03:04', None]), 'i': [float('inf'), 1], 'l': [[1], {2: 3}], 7: [1, 2]})"
    )
    data = shown(rich_python.run(code))[0]
    assert data[DATA] == {
        "n": [1, 2],
        "f": [1.5, None],
        "s": ["ä", None],
        "b": [True, False],
        "t": ["2024-01-02T03:04:00", None],
        "i": [None, 1.0],
        "l": [[1], {"2": 3}],
        "7": [1, 2],
    }
    assert data["text/html"].startswith("<div>")
    assert data["text/plain"].startswith("   n")


FRAMES = {
    "a series": ("pd.Series([1, 2], name='n')", {"n": [1, 2]}),
    "a series without a name": ("pd.Series(['a'])", {"0": ["a"]}),
    "columns of the same name": ("pd.DataFrame([[1, 2]], columns=['a', 'a'])", {"a": [1], "a.1": [2]}),
    "missing values": ("pd.DataFrame({'a': pd.array([1, None], dtype='Int64')})", {"a": [1, None]}),
    "categories": ("pd.DataFrame({'a': pd.Categorical(['x', 'y'])})", {"a": ["x", "y"]}),
    "decimals": (
        "__import__('decimal').Decimal('1.5') and pd.DataFrame({'a': [__import__('decimal').Decimal('1.5')]})",
        {"a": ["1.5"]},
    ),
    "a very large frame": ("pd.DataFrame({'a': range(300_000)})", None),
}


@pytest.mark.parametrize("case", FRAMES)
def test_the_data_of_a_frame_are_lists_of_its_columns(case: str, rich_python: Driver) -> None:
    code, data = FRAMES[case]
    result = shown(rich_python.run(f"import pandas as pd\n{code}"))[0]
    assert result.get(DATA) == data
    assert "text/html" in result


def pictures(reply: Reply) -> list[tuple[bool, str | None]]:
    """Of each result, whether it is the main one, and the kind of picture."""
    kinds = {PNG: "png", JPEG: "jpeg"}
    results: list[tuple[bool, str | None]] = []
    for message in reply.of("result"):
        data = message["data"]
        octets = base64.b64decode(data.get("image/png") or data.get("image/jpeg") or "")
        kind = next((kind for begin, kind in kinds.items() if octets.startswith(begin)), None)
        assert kind is None or f"image/{kind}" in data
        results.append((message["main"], kind))
    return results


FIGURES: dict[str, tuple[str, list[tuple[bool, str | None]]]] = {
    "one left open": ("plt.plot([1, 2]);", [(False, "png")]),
    "two left open": ("plt.plot([1, 2])\nplt.figure()\nplt.plot([1, 2]);", [(False, "png")] * 2),
    "one beside a value": ("plt.plot([1, 2])\n5", [(True, None), (False, "png")]),
    "one that is the value": ("figure, axes = plt.subplots()\naxes.plot([1, 2])\nfigure", [(True, "png")]),
    "one that was displayed": ("figure, axes = plt.subplots()\ndisplay(figure)", [(False, "png")]),
    "one that was shown": ("plt.plot([1, 2])\nplt.show()\n5", [(False, "png"), (True, None)]),
    "one that shows itself": ("figure, axes = plt.subplots()\nfigure.show()", [(False, "png")]),
    "one that was closed": ("plt.plot([1, 2])\nplt.close();", []),
    "one without anything": ("plt.figure();", []),
    "one without pyplot": ("from matplotlib.figure import Figure\nf = Figure()\nf.subplots()\nf", [(True, "png")]),
    "one by pandas": ("import pandas as pd\npd.DataFrame({'a': [1, 2]}).plot();", [(False, "png")]),
}


@pytest.mark.parametrize("case", FIGURES)
def test_a_figure_is_shown_once(case: str, rich_python: Driver) -> None:
    code, results = FIGURES[case]
    reply = rich_python.run(f"import matplotlib.pyplot as plt\n{code}")
    assert (pictures(reply), reply.error, reply.stderr) == (results, None, "")
    assert rich_python.run("plt.get_fignums()").text == "[]"


def test_a_figure_is_shown_also_after_an_error(rich_python: Driver) -> None:
    reply = rich_python.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\n1 / 0")
    assert [message["type"] for message in reply.messages][-3:] == ["result", "error", "done"]


def test_a_backend_that_was_chosen_stays(python: Driver) -> None:
    assert python.run("import os\nos.environ['MPLBACKEND']", env={"MPLBACKEND": "svg"}).text == "'svg'"


IMAGES: dict[str, tuple[str, list[tuple[bool, str | None]]]] = {
    "a picture": ("Image.new('RGB', (4, 4))", [(True, "png")]),
    "a picture of numbers": ("Image.new('F', (4, 4))", [(True, "png")]),
    "a picture of inks": ("Image.new('CMYK', (4, 4))", [(True, "png")]),
    "a photograph": ("Image.new('RGB', (4, 4)).save('a.jpg')\nImage.open('a.jpg')", [(True, "jpeg")]),
    "a picture that shows itself": ("Image.new('RGB', (4, 4)).show()", [(False, "png")]),
}


@pytest.mark.parametrize("case", IMAGES)
def test_a_picture_is_shown(case: str, rich_python: Driver) -> None:
    code, results = IMAGES[case]
    assert pictures(rich_python.run(f"from PIL import Image\n{code}")) == results


@pytest.mark.parametrize("code", ["figure", "figure.show()", "import plotly.io as pio\npio.show(figure)"])
def test_a_chart_of_plotly_is_shown(code: str, rich_python: Driver) -> None:
    results = shown(
        rich_python.run(f"import plotly.graph_objects as go\nfigure = go.Figure(go.Bar(x=['ä'], y=[2]))\n{code}")
    )
    assert len(results) == 1
    assert results[0]["application/vnd.plotly.v1+json"]["data"][0]["x"] == ["ä"]
    assert "<div" in results[0]["text/html"]


def test_a_chart_of_altair_is_shown(rich_python: Driver) -> None:
    code = "import altair as alt, pandas as pd\nalt.Chart(pd.DataFrame({'a': [1]})).mark_bar().encode(x='a')"
    data = shown(rich_python.run(code))[0]
    vega = next(value for mime, value in data.items() if mime.startswith("application/vnd.vegalite."))
    assert vega["mark"]["type"] == "bar"
    assert "text/html" in data
