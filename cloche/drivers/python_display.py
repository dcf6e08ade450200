"""Rich results: each form in which a value can be shown, and how much of it goes through the channel."""

from __future__ import annotations

import binascii
import json
import math
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

VALUE_LIMIT = 8 << 20
MESSAGE_LIMIT = 16 << 20
EXECUTION_LIMIT = 64 << 20
PIECE = 64 << 10
CELLS_LIMIT = 200000
"""A frame with more is shown, but not sent as data."""
CHART = "application/vnd.cloche.chart+json"
DATA = "application/vnd.cloche.data+json"
PLOTLY = "application/vnd.plotly.v1+json"

METHODS = (
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("text/latex", "_repr_latex_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("application/pdf", "_repr_pdf_"),
    ("application/json", "_repr_json_"),
    ("application/javascript", "_repr_javascript_"),
)
BINARY = ("image/png", "image/jpeg", "image/gif", "application/pdf")


PAIR: Any = tuple
OCTETS: Any = (bytes, bytearray, memoryview)
SEQUENCES: Any = (list, tuple, set, frozenset)
MAPPING: Any = dict


class Raw(str):
    """JSON that is written already."""


def display(context: Any, *values: Any, raw: bool = False, **options: Any) -> Any:
    """As IPython's: `raw` values are dicts from MIME type to value; other options change nothing here."""
    for value in values:
        context.send_result(dict(value) if raw else bundle(context, value), main=False)
    return Handle(context) if options.get("display_id") else None


class Handle:
    """What code gets that wants to show another value in the place of the first: it is shown after it."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def display(self, value: Any, **options: Any) -> None:
        display(self.context, value)

    def update(self, value: Any, **options: Any) -> None:
        display(self.context, value)


def bundle(context: Any, value: Any) -> dict[str, Any]:
    """MIME type to value: text, octets, or what JSON can say."""
    forms: dict[str, Any] = {"text/plain": context.text_of(value)}
    if isinstance(value, type):
        return forms
    troubles: list[str] = []
    forms.update(ask(value, "_repr_mimebundle_", troubles, include=None, exclude=None) or {})
    special = next((SPECIAL[name] for name in names_of(value) if name in SPECIAL), None)
    for mime, method in METHODS:
        if mime not in forms:
            data = ask(value, method, troubles)
            if data is not None:
                forms[mime] = data
    if special:
        try:
            special(context, value, forms)
        except Exception as error:
            troubles.append("%s: %s" % (type(error).__name__, error))
    forms["text/plain"] = "\n".join([str(forms["text/plain"]), *("(%s)" % trouble for trouble in troubles)])
    return forms


def ask(value: Any, method: str, troubles: list[str], **options: Any) -> Any:
    """What one of its methods returns; of the class, as some objects seem to have methods of any name."""
    if not hasattr(value.__class__, method):
        return None
    try:
        data = getattr(value, method)(**options)
    except NotImplementedError:
        return None
    except Exception as error:
        troubles.append("%s raised %s: %s" % (method, type(error).__name__, error))
        return None
    return data[0] if isinstance(data, PAIR) and len(data) == 2 else data  # the second are its metadata


def names_of(value: Any) -> list[tuple[str, str]]:
    """Package and name of its classes: nothing is imported to know them."""
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__]


def add_frame(context: Any, frame: Any, forms: dict[str, Any]) -> None:
    if frame.size > CELLS_LIMIT:
        return
    columns: dict[str, list[Any]] = {}
    for number, name in enumerate(frame.columns):
        label = str(name)
        while label in columns:
            label += ".1"
        columns[label] = [plain(cell) for cell in frame.iloc[:, number].tolist()]
    forms[DATA] = columns


def add_series(context: Any, series: Any, forms: dict[str, Any]) -> None:
    frame = series.to_frame()
    forms["text/html"] = frame._repr_html_()
    add_frame(context, frame, forms)


def add_picture(context: Any, picture: Any, forms: dict[str, Any]) -> None:
    """One of its two forms: that in which it was made."""
    import io

    if picture.format == "JPEG" and forms.get("image/jpeg"):
        del forms["image/png"]
        return
    forms.pop("image/jpeg", None)
    if "image/png" not in forms:
        file = io.BytesIO()
        picture.convert("RGB").save(file, "PNG")
        forms["image/png"] = file.getvalue()


def add_figure(context: Any, figure: Any, forms: dict[str, Any]) -> None:
    import io

    context.shown.append(figure)
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    forms["image/png"] = file.getvalue()
    chart = context.part("charts")["chart_of"](figure)
    if chart:
        forms[CHART] = chart


def add_plotly(context: Any, figure: Any, forms: dict[str, Any]) -> None:
    forms[PLOTLY] = Raw(figure.to_json())
    forms["text/html"] = figure.to_html(full_html=False, include_plotlyjs="cdn")


def add_altair(context: Any, chart: Any, forms: dict[str, Any]) -> None:
    """Its own renderer makes HTML only, unless it is told otherwise."""
    specification = chart.to_dict()
    version = str(specification.get("$schema", "")).rpartition("/v")[2].partition(".")[0]
    forms["application/vnd.vegalite.v%s+json" % (version or "5")] = specification


SPECIAL: dict[tuple[str, str], Callable[[Any, Any, dict[str, Any]], None]] = {
    ("pandas", "DataFrame"): add_frame,
    ("pandas", "Series"): add_series,
    ("PIL", "Image"): add_picture,
    ("matplotlib", "Figure"): add_figure,
    ("plotly", "BaseFigure"): add_plotly,
    ("altair", "TopLevelMixin"): add_altair,
}


def show_figures(context: Any) -> None:
    """Those that are open, and closes them; without any axes there is nothing to see."""
    pyplot = sys.modules["matplotlib.pyplot"]
    try:
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if figure not in context.shown and (figure.axes or figure.lines):
                context.send_result(bundle(context, figure), main=False)
    finally:
        pyplot.close("all")
        context.shown.clear()


def prepare(context: Any, module: Any) -> None:
    """What this module would show on a screen or in a kernel becomes a result."""

    def show(value: Any, *_: Any, **__: Any) -> None:
        context.display(value)

    def show_all(*_: Any, **__: Any) -> None:
        show_figures(context)

    def show_data(data: dict[str, Any], *_: Any, **__: Any) -> None:
        context.display(data, raw=True)

    def do_nothing(*_: Any, **__: Any) -> None:
        pass

    name = module.__name__
    if name == "matplotlib.pyplot":
        module.show, module.Figure.show = show_all, show
        context.part("charts")["keep_boxes"](module.Axes)
    elif name == "plotly.basedatatypes":
        module.BaseFigure.show = show
    elif name in ("plotly.io", "PIL.ImageShow"):
        module.show = show
    else:
        own: tuple[tuple[str, Any], ...] = (
            ("display", context.display),
            ("update_display", show),
            ("publish_display_data", show_data),
            ("clear_output", do_nothing),
        )
        for key, function in own:
            if hasattr(module, key):
                setattr(module, key, function)


def encode(context: Any, forms: dict[str, Any]) -> tuple[str, str]:
    """The members of `data` and of `cut`; what is too large goes into a file."""
    data: list[str] = []
    cut: list[str] = []
    total = 0
    for mime, value in forms.items():
        try:
            form = Form(mime, value)
        except (ValueError, TypeError, RecursionError):
            continue  # what JSON cannot say in any way
        is_short = form.is_text and form.size <= PIECE
        fits = form.size <= VALUE_LIMIT and total + form.size < MESSAGE_LIMIT - (1 << 20)
        if fits and (context.sent + total < EXECUTION_LIMIT or is_short):
            text = form.text
        else:
            octets = form.octets
            cut.append('%s: {"size": %d, "path": %s}' % (json.dumps(mime), len(octets), keep(context, mime, octets)))
            text = form.piece
        if text and total + len(text) < MESSAGE_LIMIT:
            total += len(text)
            data.append("%s: %s" % (json.dumps(mime), text))
    return ", ".join(data), ", ".join(cut)


class Form:
    """One value as it would be sent: `text` is its JSON, `octets` what a file of it has."""

    def __init__(self, mime: str, value: Any) -> None:
        self.is_text = False
        self.value: Any = value
        if isinstance(value, OCTETS) or mime in BINARY:
            self.value = value if isinstance(value, OCTETS) else binascii.a2b_base64(value)
            self.text = '"%s"' % binascii.b2a_base64(self.value, newline=False).decode("ascii")
        elif mime.startswith("application/") and mime.endswith(("/json", "+json")):
            self.value = self.text = dump(value)
        else:
            self.is_text = True
            self.value = value if isinstance(value, str) else str(value)
            # What is certainly too long need not be written out to be measured.
            self.text = "" if len(self.value) > VALUE_LIMIT else json.dumps(self.value)
        self.size = len(self.text or self.value)

    @property
    def octets(self) -> bytes:
        return self.value.encode("utf-8", "backslashreplace") if isinstance(self.value, str) else bytes(self.value)

    @property
    def piece(self) -> str:
        """What stands for it in the message."""
        return json.dumps(self.octets[:PIECE].decode("utf-8", "ignore")) if self.is_text else ""


def keep(context: Any, mime: str, octets: bytes) -> str:
    """The path of a file of its own, as JSON; null where it could not be written."""
    import tempfile

    kind = mime.replace("+", "/").split("/")[-1]
    try:
        if not (context.folder and os.path.isdir(context.folder)):
            context.folder = tempfile.mkdtemp(prefix="cloche-", dir="/tmp")
        file, path = tempfile.mkstemp(suffix="." + kind.replace("plain", "txt"), dir=context.folder)
    except OSError:
        return "null"
    try:
        with open(file, "wb") as whole:
            whole.write(octets)
    except OSError:
        os.unlink(path)
        return "null"
    return json.dumps(path)


def dump(value: Any) -> str:
    if isinstance(value, Raw):
        return value if value.isascii() else json.dumps(json.loads(value))
    try:
        return json.dumps(value, allow_nan=False)
    except (ValueError, TypeError):
        return json.dumps(plain_all(value), allow_nan=False)


def plain_all(value: Any) -> Any:
    if isinstance(value, MAPPING):
        return {str(key): plain_all(item) for key, item in value.items()}
    if isinstance(value, SEQUENCES):
        return [plain_all(item) for item in value]
    return plain(value)


def plain(value: Any) -> Any:
    """As JSON says it: times in ISO 8601, null for what is no number, text for all that it has no word for."""
    if isinstance(value, (MAPPING, *SEQUENCES)):
        return plain_all(value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return plain_all(value.tolist()) if hasattr(value, "tolist") else text_in(value)


def text_in(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        return "<%s whose str raised %s>" % (type(value).__name__, type(error).__name__)
