"""The ingest formats, in the order in which they are tried: the first one that recognises a file reads it.

Special formats come first: a request of a log has messages too. Formats of installed packages are special ones.
"""

from collections.abc import Mapping
from functools import cache

from recallog_projections import plugins
from recallog_schemas.errors import InvalidArgument, InvalidEvent
from recallog_service.formats import chat, chatgpt, claude, claude_code, codex, jsonl, text
from recallog_service.formats.elsewhere import ELSEWHERE, Elsewhere
from recallog_service.formats.format import Format
from recallog_service.formats.source import Sample

_SPECIAL = (jsonl.FORMAT, claude_code.FORMAT, codex.FORMAT, chatgpt.FORMAT, claude.FORMAT)
_GENERAL = (chat.FORMAT, text.FORMAT)


@cache
def installed() -> tuple[Format, ...]:
    """The formats of installed packages. Raises `SettingsError` for one that cannot be imported."""
    return tuple(plugins.load_all(plugins.FORMATS))


def by_name() -> Mapping[str, Format]:
    return {each.name: each for each in (*_SPECIAL, *installed(), *_GENERAL)}


def named(name: str) -> Format:
    """Raises `InvalidArgument` for a name that no format has."""
    known = by_name()
    if name in known:
        return known[name]
    advice = next((each.advice for each in ELSEWHERE if each.name == name), f"known are {', '.join(known)}")
    raise InvalidArgument(f"{name!r} is not a format that can be read; {advice}", path="--format")


def recognised(sample: Sample) -> Format | None:
    """The format of a file that begins like this; None if it is unknown.

    A file that a package reads which is not installed is unknown: a general format would lose most of it.
    """
    special = next((each for each in (*_SPECIAL, *installed()) if each.recognises(sample)), None)
    if special is not None or _elsewhere(sample) is not None:
        return special
    return next((each for each in _GENERAL if each.recognises(sample)), None)


def format_of(sample: Sample) -> Format:
    """As `recognised`. Raises `InvalidEvent` for a file of an unknown format."""
    found = recognised(sample)
    if found is None:
        missing = _elsewhere(sample)
        advice = missing.advice if missing else f"say which it is with --format ({', '.join(by_name())})"
        raise InvalidEvent(f"the format of this file is not recognised; {advice}", rule="format")
    return found


def _elsewhere(sample: Sample) -> Elsewhere | None:
    missing = (each for each in ELSEWHERE if each.name not in by_name())
    return next((each for each in missing if any(map(each.resembles, sample.documents))), None)
