"""Templates: their environment and filters. Stored texts are untrusted and are escaped here."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup, escape

from recallog.version import __version__
from recallog_schemas import kinds
from recallog_schemas.invented_times import is_invented
from recallog_schemas.models import import_parts
from recallog_schemas.visible import visible
from recallog_service.console.page import ROOT

STATIC = Path(__file__).with_name("static")
CUT_CHARS = 2_000
"""Characters of a text that are shown, which bounds the size of a page; the page of an event shows the whole text."""
BEGIN_CHARS = 400
"""Characters of a payload that a page of events shows."""
FOLD_CHARS, FOLD_LINES = 400, 5
"""A text with more characters or lines is folded."""
YEAR_SECONDS = 365 * 86_400


@cache
def environment() -> Environment:
    """The templates of the console, and of memory models under the models' names."""
    of_models = {
        part.__name__.split(".")[-2]: FileSystemLoader(Path(str(part.__file__)).with_name("templates"))
        for part in import_parts("recallog_service", "panels")
    }
    found = Environment(
        autoescape=True,
        auto_reload=False,
        finalize=_show_value,
        loader=ChoiceLoader([FileSystemLoader(Path(__file__).with_name("templates")), PrefixLoader(of_models)]),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    found.globals |= {"url": url, "static": static_url, "version": __version__}
    found.filters |= {"ago": ago, "bytes": bytes_of, "exactly": exactly, "fold": is_long, "number": number}
    found.filters |= {"begin": begin_of, "json": json_of, "role": role_of, "shell": shlex.quote}
    found.globals |= {"CUT_CHARS": CUT_CHARS, "FOLD_CHARS": FOLD_CHARS, "FOLD_LINES": FOLD_LINES}
    return found


def render(template: str, known: Mapping[str, Any]) -> str:
    """The output of a template with the variables in `known`, and the macros as `ui`."""
    found = environment()
    macros = found.get_template("macros.html").make_module(dict(known))
    return found.get_template(template).render({**known, "ui": macros})


def _show_value(value: Any) -> Any:
    """A value as a template writes it: characters that are invisible or change the order of others are escaped."""
    return visible(value) if type(value) is str else value


def exactly(value: str) -> Markup:
    """A text unchanged except for HTML escapes: for form values, which are sent back."""
    return escape(value)


def url(path: str, given: Mapping[str, Any] | None = None, **changed: Any) -> str:
    """The URL of a page by its path, such as `/space`, with the arguments `given`, overridden by `changed`.

    Arguments that are None or "" are left out.
    """
    arguments = {name: value for name, value in {**(given or {}), **changed}.items() if value not in (None, "")}
    query = urlencode(arguments, doseq=True, errors="surrogatepass")
    found = "/" if path == "/" else f"{ROOT}{path}"
    return f"{found}?{query}" if query else found


@cache
def static_url(name: str) -> str:
    """The URL of a static file. It contains a digest of the file, because browsers cache it for a year."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"{ROOT}/static/{name}?v={digest}"


def number(value: int) -> str:
    """A number with thousands separators."""
    return f"{value:,}"


def bytes_of(size: float) -> str:
    """A size in bytes: `1.5 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1_000:
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1_000
    return f"{size:,.1f} TB"


def ago(at: datetime) -> str:
    """The distance of a time from now: `5 min ago`, or `in 5 min` if it is ahead; its date if that is more than a year;
    `time unknown` if ingest invented the time.
    """
    if is_invented(at):
        return "time unknown"
    seconds = (datetime.now(UTC) - at).total_seconds()
    passed = abs(seconds)
    for most, unit, word in ((60, 1, "s"), (3_600, 60, "min"), (86_400, 3_600, "h"), (YEAR_SECONDS, 86_400, "d")):
        if passed < most:
            amount = f"{int(passed // unit):,} {word}"
            return f"in {amount}" if seconds < 0 else f"{amount} ago"
    return f"{at:%Y-%m-%d}"


def json_of(value: Any) -> str:
    """A JSON value on several lines."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def begin_of(value: Any) -> str:
    """The first characters of a JSON value. The rest is not rendered."""
    return msgspec.json.encode(value)[: 4 * BEGIN_CHARS].decode(errors="ignore")[:BEGIN_CHARS]


def role_of(kind: str) -> str:
    """The role of a kind in the catalogue; see `KindView.role`."""
    return kinds.kind_of(kind).role


def is_long(text: str) -> bool:
    """Whether a text is folded."""
    return len(text) > FOLD_CHARS or text.count("\n", 0, FOLD_CHARS) >= FOLD_LINES
