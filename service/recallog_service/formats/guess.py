"""Guesses the format of a file that is not in the format that was named, for the error message."""

from typing import Any

from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.elsewhere import ELSEWHERE

_ALL = "recallog ingest recognises the format of a file without --format, and --help lists the formats"
_MESSAGES = "messages"


def wrong_format(expected: str, document: object = None) -> InvalidEvent:
    """The error for a whole file: what was expected, and which `--format` to try."""
    likely = guess(document)
    return InvalidEvent(f"expected {expected}; {f'try {likely}' if likely else _ALL}", rule="format")


def guess(document: object) -> str:
    """The options that would read `document` (parsed JSON), judged by its first element; "" if it is unknown."""
    first = document[0] if isinstance(document, list) and document else document
    if is_message(first) or (isinstance(first, list) and first and is_message(first[0])):
        return "--format chat"
    if not isinstance(first, dict):
        return ""
    if "kind" in first:
        return "--format jsonl with one event per line"
    if isinstance(first.get("mapping"), dict):
        return "--format chatgpt"
    if isinstance(first.get("chat_messages"), list):
        return "--format claude"
    elsewhere = next((each.name for each in ELSEWHERE if each.resembles(first)), None)
    if elsewhere is not None:
        return f"--format {elsewhere}"
    return "" if key_of_messages(first) is None else "--format chat"


def key_of_messages(document: object) -> str | None:
    """The key under which an object has a list of messages: "messages", else the first one that has one."""
    if not isinstance(document, dict):
        return None
    if isinstance(document.get(_MESSAGES), list):
        return _MESSAGES
    found = (key for key, value in document.items() if isinstance(value, list) and value and is_message(value[0]))
    return next(found, None)


def is_message(value: object) -> bool:
    """Whether `value` is a message of a model's API."""
    return isinstance(value, dict) and "role" in value


def objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list; empty if `value` is not one."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
