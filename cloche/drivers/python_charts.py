"""Charts: what a figure of matplotlib shows, as numbers."""

from __future__ import annotations

import math
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

POINTS_LIMIT = 100000
UNIT = re.compile(r"[(\[]([^()\[\]]+)[)\]]\s*$")
CONVERTERS = {
    "StrCategoryConverter": "categorical",
    "DateConverter": "datetime",
    "_SwitchableDateConverter": "datetime",
}
SCALES = ("linear", "log", "symlog", "logit", "function", "functionlog", "asinh")


def chart_of(figure: Any) -> dict[str, Any] | None:
    """None of a figure without axes, or with so many points that nobody wants them as text."""
    try:
        charts = [chart for axes in figure.axes for chart in [chart_of_axes(axes)] if chart]
    except Exception:
        return None  # the picture is there all the same
    if len(charts) < 2:
        return charts[0] if charts else None
    return {"type": "superchart", "title": figure.get_suptitle() or None, "elements": charts}


def chart_of_axes(axes: Any) -> dict[str, Any] | None:
    if axes.get_label() == "<colorbar>":
        return None
    kind, elements = elements_of(axes)
    chart: dict[str, Any] = {"type": kind, "title": axes.get_title() or None, "elements": elements}
    if kind in ("line", "scatter", "bar", "box_and_whisker"):
        for axis in (axes.xaxis, axes.yaxis):
            label = axis.get_label_text()
            unit = UNIT.search(label)
            chart[axis.axis_name + "_label"] = label or None
            chart[axis.axis_name + "_unit"] = unit[1] if unit else None
    if kind in ("line", "scatter"):
        for axis in (axes.xaxis, axes.yaxis):
            chart.update(ticks_of(axis))
    return chart


def elements_of(axes: Any) -> tuple[str, list[dict[str, Any]]]:
    """The kind and its elements; of several kinds in one there is no word."""
    boxes = getattr(axes, "cloche_boxes", None)
    if boxes:
        return "box_and_whisker", [box_of(number, box) for number, box in enumerate(boxes)]
    if axes.name != "rectilinear":
        return "unknown", []
    kinds = {
        "line": [line for line in axes.lines if line.get_transform() == axes.transData],
        "scatter": [dots for dots in axes.collections if type(dots).__name__ == "PathCollection"],
        "pie": [patch for patch in axes.patches if type(patch).__name__ == "Wedge"],
        "bar": [bars for bars in axes.containers if type(bars).__name__ == "BarContainer"],
    }
    there = [kind for kind, artists in kinds.items() if artists]
    if len(there) != 1:
        return "unknown", []
    kind = there[0]
    return kind, list(READERS[kind](axes, kinds[kind]))


def read_lines(axes: Any, lines: Iterable[Any]) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(lines):
        points = points_of(axes, line.get_xdata(orig=True), line.get_ydata(orig=True))
        yield {"label": label_of(line, "Line %d" % number), "points": points}


def read_dots(axes: Any, collections: Iterable[Any]) -> Iterable[dict[str, Any]]:
    for number, dots in enumerate(collections):
        offsets = dots.get_offsets().tolist()
        xs = [name_on(axes.xaxis, x) for x, _ in offsets]
        ys = [name_on(axes.yaxis, y) for _, y in offsets]
        yield {"label": label_of(dots, "Dots %d" % number), "points": points_of(axes, xs, ys)}


def read_wedges(axes: Any, wedges: Iterable[Any]) -> Iterable[dict[str, Any]]:
    for wedge in wedges:
        angle = wedge.theta2 - wedge.theta1
        yield {"label": label_of(wedge, ""), "angle": round(float(angle), 4), "radius": float(wedge.r)}


def read_bars(axes: Any, containers: Iterable[Any]) -> Iterable[dict[str, Any]]:
    for number, bars in enumerate(containers):
        group = label_of(bars, "Group %d" % number)
        upright = bars.orientation != "horizontal"
        for bar in bars.patches:
            middle = bar.get_x() + bar.get_width() / 2 if upright else bar.get_y() + bar.get_height() / 2
            name = name_on(axes.xaxis if upright else axes.yaxis, middle)
            value = bar.get_height() if upright else bar.get_width()
            label = name if isinstance(name, str) else "%.6g" % name
            yield {"label": label, "group": group, "value": plain(value)}


READERS = {"line": read_lines, "scatter": read_dots, "pie": read_wedges, "bar": read_bars}


def box_of(number: int, box: dict[str, Any]) -> dict[str, Any]:
    names = {"min": "whislo", "first_quartile": "q1", "median": "med", "third_quartile": "q3", "max": "whishi"}
    element: dict[str, Any] = {"label": str(box.get("label") or number + 1)}
    element.update({name: plain(box[key]) for name, key in names.items()})
    element["outliers"] = [plain(value) for value in box.get("fliers", ())]
    return element


def keep_boxes(axes: Any) -> None:
    """Of a box only its lines stay in a figure, so the numbers are noted when it is drawn."""
    draw = axes.bxp

    def bxp(self: Any, bxpstats: Any, *args: Any, **options: Any) -> Any:
        self.cloche_boxes = [*getattr(self, "cloche_boxes", ()), *bxpstats]
        return draw(self, bxpstats, *args, **options)

    axes.bxp = bxp


def points_of(axes: Any, xs: Any, ys: Any) -> list[list[Any]]:
    if len(xs) > POINTS_LIMIT:
        raise ValueError("too many points")
    return [[plain(x), plain(y)] for x, y in zip(xs, ys)]


def label_of(artist: Any, otherwise: str) -> str:
    label = str(artist.get_label())
    return otherwise if label.startswith("_") else label


def scale_of(axis: Any) -> str:
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    scale = CONVERTERS.get(type(converter).__name__) or axis.get_scale()
    return scale if scale in SCALES or scale in CONVERTERS.values() else "unknown"


def ticks_of(axis: Any) -> dict[str, Any]:
    ticks = [float(tick) for tick in axis.get_ticklocs()]
    scale, name = scale_of(axis), axis.axis_name
    return {
        name + "_ticks": [name_on(axis, tick) for tick in ticks] if scale == "datetime" else ticks,
        name + "_tick_labels": list(axis.get_major_formatter().format_ticks(ticks)),
        name + "_scale": scale,
    }


def name_on(axis: Any, place: float) -> Any:
    """What stands at a place of an axis: a name, a time, or the number itself."""
    scale = scale_of(axis)
    if scale == "datetime":
        return sys.modules["matplotlib.dates"].num2date(place).isoformat()
    formatter = axis.get_major_formatter()
    if scale == "categorical" or type(formatter).__name__ in ("FixedFormatter", "FuncFormatter"):
        for tick, label in zip(axis.get_ticklocs(), formatter.format_ticks(axis.get_ticklocs())):
            if abs(tick - place) < 1e-6 and label:
                return label
    return place


def plain(value: Any) -> Any:
    """As JSON says it."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (int, float)):
        return float(value) if math.isfinite(value) else None
    return str(value)
