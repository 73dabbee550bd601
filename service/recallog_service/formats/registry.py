"""The ingest formats, in the order in which they are tried: the first one that recognises a file reads it."""

from collections.abc import Mapping

from recallog_schemas.errors import InvalidArgument, InvalidEvent
from recallog_service.formats import (
    anthropic,
    chat,
    chatgpt,
    claude,
    claude_code,
    codex,
    jsonl,
    langchain,
    locomo,
    openai,
    swe_agent,
    text,
)
from recallog_service.formats.format import Format
from recallog_service.formats.source import Sample

FORMATS: tuple[Format, ...] = (
    jsonl.FORMAT,
    locomo.FORMAT,
    claude_code.FORMAT,
    codex.FORMAT,
    chatgpt.FORMAT,
    claude.FORMAT,
    swe_agent.FORMAT,
    langchain.FORMAT,
    openai.FORMAT,
    anthropic.FORMAT,
    chat.FORMAT,
    text.FORMAT,
)
"""Special ones first: a request of a log has messages too."""

BY_NAME: Mapping[str, Format] = {each.name: each for each in FORMATS}


def named(name: str) -> Format:
    """Raises `InvalidArgument` for a name that no format has."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise InvalidArgument(f"{name!r} is not a format; known are {', '.join(BY_NAME)}", path="--format") from None


def recognised(sample: Sample) -> Format | None:
    """The format of a file that begins like this; None if it is unknown."""
    return next((each for each in FORMATS if each.recognises(sample)), None)


def format_of(sample: Sample) -> Format:
    """As `recognised`. Raises `InvalidEvent` for a file of an unknown format."""
    found = recognised(sample)
    if found is None:
        known = ", ".join(BY_NAME)
        raise InvalidEvent(
            f"the format of this file is not recognised; say which it is with --format ({known})", rule="format"
        )
    return found
