"""What a file looks like that is not the format it was said to be."""

from recallog_schemas.errors import InvalidEvent

_ALL = "--format jsonl reads one event a line, chat conversations, locomo the LoCoMo data set"


def wrong_format(expected: str, document: object = None) -> InvalidEvent:
    """The error for a file as a whole: what was expected, and which `--format` the user should try."""
    likely = guess(document)
    return InvalidEvent(f"expected {expected}; {f'try {likely}' if likely else _ALL}", rule="format")


def guess(document: object) -> str:
    """The options that would read `document` (parsed JSON), "" where nothing comes to mind. Looks at the first only."""
    first = document[0] if isinstance(document, list) and document else document
    if _is_message(first) or (isinstance(first, list) and first and _is_message(first[0])):
        return "--format chat"
    if not isinstance(first, dict):
        return ""
    if "kind" in first:
        return "--format jsonl with one event a line"
    if isinstance(first.get("conversation"), dict):
        return "--format locomo"
    for key, value in first.items():
        if isinstance(value, list) and value and _is_message(value[0]):
            return "--format chat" if key == "messages" else f"--format chat --messages-key {key}"
    return ""


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in value
