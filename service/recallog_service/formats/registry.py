"""The ingest formats, in the order in which they are tried: a file is read by the first one whose structure matches.

Specific formats come first, because a logged request has messages too. Formats of installed packages are specific.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from recallog_projections import plugins
from recallog_schemas.errors import InvalidArgument, InvalidEvent
from recallog_service.formats import chat, chatgpt, claude_code, codex, jsonl, langsmith, opentelemetry, swe_agent, text
from recallog_service.formats.declared import declared_in
from recallog_service.formats.elsewhere import ELSEWHERE, Elsewhere
from recallog_service.formats.format import Format
from recallog_service.formats.source import Sample

_DECLARED = declared_in(files(__package__) / "declared.toml")
_SPECIAL = (
    jsonl.FORMAT,
    claude_code.FORMAT,
    codex.FORMAT,
    chatgpt.FORMAT,
    opentelemetry.FORMAT,
    langsmith.FORMAT,
    swe_agent.FORMAT,
    *(each for name, each in _DECLARED.items() if name != "responses"),
)
_GENERAL = (_DECLARED["responses"], chat.FORMAT, text.FORMAT)
_NEAR = 0.5
"""The share of a structure that a file must match before its faults are reported."""


@cache
def load_installed() -> tuple[Format, ...]:
    """The formats of installed packages. Raises `SettingsError` for one that cannot be imported."""
    return tuple(plugins.load_all(plugins.FORMATS))


def by_name() -> Mapping[str, Format]:
    return {each.name: each for each in (*_SPECIAL, *load_installed(), *_GENERAL)}


def find_format(name: str) -> Format:
    """Raises `InvalidArgument` for a name that no format has."""
    known = by_name()
    if name in known:
        return known[name]
    advice = ELSEWHERE[name].advice if name in ELSEWHERE else f"known are {', '.join(known)}"
    raise InvalidArgument(f"{name!r} is not a format that can be read; {advice}", path="--format")


def recognise(sample: Sample) -> Format | None:
    """The format of a file with this beginning; None if it is unknown.

    A file for a package that is not installed is unknown: a general format would lose most of its content.
    """
    if sample.is_blank or (sample.is_list and not sample.documents):
        return chat.FORMAT if sample.is_list else jsonl.FORMAT
    special = next((each for each in (*_SPECIAL, *load_installed()) if each.structure.fits(sample)), None)
    if special is not None or _elsewhere(sample) is not None:
        return special
    return next((each for each in _GENERAL if each.structure.fits(sample)), None)


def format_like(sample: Sample) -> str | None:
    """The name of the format of a file with this beginning, even if its package is not installed."""
    found = recognise(sample) or _elsewhere(sample)
    return found.name if found else None


def format_of(sample: Sample) -> Format:
    """As `recognise`. Raises `InvalidEvent` for a file of an unknown format."""
    found = recognise(sample)
    if found is None:
        missing = _elsewhere(sample)
        named = "say which it is with --format; recallog ingest --formats lists all"
        advice = missing.advice if missing else f"{_nearest(sample)}{named}"
        raise InvalidEvent(f"the format of this file is not recognised; {advice}", rule="format")
    return found


def _nearest(sample: Sample) -> str:
    """A sentence with the format that a file resembles most and the first difference; "" if it resembles none."""
    near = [(*each.structure.lacks(sample), each.name) for each in (*_GENERAL, *_SPECIAL, *load_installed())]
    share, fault, name = max(near, key=lambda each: each[0])
    return f"it resembles {name}, but {fault}; " if share >= _NEAR else ""


def _elsewhere(sample: Sample) -> Elsewhere | None:
    missing = (each for name, each in ELSEWHERE.items() if name not in by_name())
    return next((each for each in missing if each.structure.fits(sample)), None)
