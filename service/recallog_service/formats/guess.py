"""Guesses the format of a file that is not in the format that was named, for the error message."""

from recallog_schemas.errors import InvalidEvent

_ALL = "--format jsonl reads one event per line, chat reads conversations, locomo reads the LoCoMo data set"


def wrong_format(expected: str, document: object = None) -> InvalidEvent:
    """The error for a whole file: what was expected, and which `--format` to try."""
    likely = guess(document)
    return InvalidEvent(f"expected {expected}; {f'try {likely}' if likely else _ALL}", rule="format")


def guess(document: object) -> str:
    """The options that would read `document` (parsed JSON), judged by its first element; "" if it is unknown."""
    first = document[0] if isinstance(document, list) and document else document
    if _is_message(first) or (isinstance(first, list) and first and _is_message(first[0])):
        return "--format chat"
    if not isinstance(first, dict):
        return ""
    if "kind" in first:
        return "--format jsonl with one event per line"
    if isinstance(first.get("conversation"), dict):
        return "--format locomo"
    if isinstance(first.get("mapping"), dict) or isinstance(first.get("chat_messages"), list):
        return "--format chat"
    for key, value in first.items():
        if isinstance(value, list) and value and _is_message(value[0]):
            return "--format chat" if key == "messages" else f"--format chat --messages-key {key}"
    return ""


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in value
