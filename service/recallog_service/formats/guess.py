"""Errors for files that are not in the given format, or not in any known format."""

from importlib import import_module
from typing import Any

from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.source import Sample

_ALL = "recallog ingest recognises the format of a file without --format, and --formats lists them"


def wrong_format(expected: str, document: object = None) -> InvalidEvent:
    """The error for a whole file: what was expected, and which `--format` to try."""
    likely = guess(document)
    return InvalidEvent(f"expected {expected}; {f'try {likely}' if likely else _ALL}", rule="format")


def guess(document: object) -> str:
    """The option that would read `document` (parsed JSON); "" if it is unknown."""
    registry = import_module(f"{__package__}.registry")  # late: its formats raise `wrong_format`
    found = registry.format_like(Sample(tuple(document) if isinstance(document, list) else (document,)))
    return f"--format {found}" if found else ""


def objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list; empty if `value` is not one."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
