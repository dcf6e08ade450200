"""Charts of matplotlib in a Python context, as numbers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.driver import Driver

CHART = "application/vnd.cloche.chart+json"

ALIKE = {
    "lines": (
        "plt.plot([1, 2, 3], [4, 5, 6], label='a')\nplt.plot([1, 2], [1, 2])\n"
        "plt.title('T')\nplt.xlabel('X (s)')\nplt.ylabel('Y [m]');"
    ),
    "a line over days": "import datetime as d\nplt.plot([d.date(2024, 1, 1), d.date(2024, 1, 2)], [1, 2]);",
    "a line over names": "plt.plot(['a', 'b'], [1, 2]);",
    "a line of two logarithms": "plt.plot([1, 10], [1, 10])\nplt.xscale('log')\nplt.yscale('log');",
    "dots": "plt.scatter([1, 2], [3, 4], label='a');",
    "bars": "plt.bar(['a', 'b'], [1, 2.5], label='g');",
    "lying bars": "plt.barh(['a', 'b'], [1, 2]);",
    "a pie": "plt.pie([1, 2, 3], labels=['x', 'y', 'z'])\nplt.title('P');",
    "a pie without labels": "plt.pie([1, 2]);",
    "several axes": (
        "f, (a, b) = plt.subplots(1, 2)\na.plot([1, 2])\nb.bar(['a', 'b'], [3, 4])\na.set_title('l')\nf.suptitle('S');"
    ),
    "a picture": "plt.imshow([[1, 2], [3, 4]]);",
}
"""Those of which e2b-charts says the same."""


@pytest.mark.parametrize("case", ALIKE)
def test_a_chart_is_what_e2b_makes_of_it(case: str, rich_python: Driver) -> None:
    chart = chart_of(rich_python, f"import matplotlib.pyplot as plt\n{ALIKE[case]}")
    call = "print(json.dumps(e2b_charts.chart_figure_to_dict(plt.gcf())))"
    quiet = "with warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    import e2b_charts"
    code = f"import json, warnings\n{ALIKE[case]}\n{quiet}\n    {call}"
    assert chart == json.loads(rich_python.run(code).stdout)


def line(label: str, *points: list[Any]) -> dict[str, Any]:
    return {"label": label, "points": list(points)}


def bar(label: str, value: float, group: str = "Group 0") -> dict[str, Any]:
    return {"label": label, "group": group, "value": value}


def box(label: str, *numbers: float, outliers: list[float]) -> dict[str, Any]:
    names = ("min", "first_quartile", "median", "third_quartile", "max")
    return {"label": label, **dict(zip(names, numbers, strict=True)), "outliers": outliers}


ELEMENTS: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "stacked bars": (
        "plt.bar([1, 2], [1, 2], label='m')\nplt.bar([1, 2], [3, 4], bottom=[1, 2], label='w');",
        "bar",
        [bar("1", 1, "m"), bar("2", 2, "m"), bar("1", 3, "w"), bar("2", 4, "w")],
    ),
    "bars at named places": (
        "plt.bar([0, 1], [1, 2])\nplt.xticks([0, 1], ['a', 'b']);",
        "bar",
        [bar("a", 1), bar("b", 2)],
    ),
    "one bar": ("plt.bar(['a'], [3]);", "bar", [bar("a", 3)]),
    "bars with errors": ("plt.bar(['a', 'b'], [3, 4], yerr=[1, 1]);", "bar", [bar("a", 3), bar("b", 4)]),
    "a histogram": ("plt.hist([0, 0, 2], bins=2);", "bar", [bar("0.5", 2), bar("1.5", 1)]),
    "boxes": (
        "plt.boxplot([[1, 2, 3, 4, 100], [2, 3, 4]], tick_labels=['a', 'b']);",
        "box_and_whisker",
        [box("a", 1, 2, 3, 4, 4, outliers=[100]), box("b", 2, 2.5, 3, 3.5, 4, outliers=[])],
    ),
    "lying boxes": (
        "plt.boxplot([[2, 3, 4]], orientation='horizontal');",
        "box_and_whisker",
        [box("1", 2, 2.5, 3, 3.5, 4, outliers=[])],
    ),
    "a line with a gap": ("plt.plot([1, 2], [3, float('nan')]);", "line", [line("Line 0", [1, 3], [2, None])]),
    "a line beside a rule": ("plt.plot([1], [2])\nplt.axhline(5);", "line", [line("Line 0", [1, 2])]),
    "dots over names": ("plt.scatter(['a', 'b'], [3, 4]);", "scatter", [line("Dots 0", ["a", 3], ["b", 4])]),
    "a line and dots": ("plt.plot([1], [2])\nplt.scatter([1], [2]);", "unknown", []),
    "a picture with its colours": ("plt.imshow([[1, 2]])\nplt.colorbar();", "unknown", []),
    "a line in space": ("plt.figure().add_subplot(projection='3d').plot([1], [2], [3]);", "unknown", []),
}


@pytest.mark.parametrize("case", ELEMENTS)
def test_a_chart_has_elements(case: str, rich_python: Driver) -> None:
    code, kind, elements = ELEMENTS[case]
    chart = chart_of(rich_python, f"import matplotlib.pyplot as plt\n{code}")
    assert (chart["type"], chart["elements"]) == (kind, elements)


def test_a_chart_of_very_many_points_is_only_a_picture(rich_python: Driver) -> None:
    reply = rich_python.run("import matplotlib.pyplot as plt\nplt.plot(range(200_000));")
    assert list(reply.of("result")[0]["data"]) == ["text/plain", "image/png"]


def chart_of(python: Driver, code: str) -> dict[str, Any]:
    reply = python.run(code)
    assert reply.error is None, reply.error
    return reply.of("result")[0]["data"][CHART]
