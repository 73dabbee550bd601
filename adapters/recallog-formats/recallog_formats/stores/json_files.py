"""Stores that are one JSON file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recallog import InvalidArgument


def load_json(path: Path, expected: str) -> Any:
    """The document of a file, or the list of its lines if it is JSON Lines; a line that is not JSON stays a text.

    Raises `InvalidArgument` if the file cannot be read, is not JSON, or is nested too deeply.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"cannot read {path}: {error}; expected {expected}", path="PATH") from None
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidArgument(f"{path} is nested too deeply; expected {expected}", path="PATH") from None
    except ValueError:
        lines = [_line(line) for line in text.splitlines() if line.strip()]
    if not any(isinstance(line, dict) for line in lines):
        raise InvalidArgument(f"{path} is not JSON; expected {expected}", path="PATH")
    return lines


def _line(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line


def list_in(document: object, *keys: str) -> Sequence[object] | None:
    """The list itself, or the first list among the fields `keys` of an object; None if there is none."""
    if isinstance(document, list):
        return document
    values = (document.get(key) for key in keys) if isinstance(document, dict) else ()
    return next((value for value in values if isinstance(value, list)), None)
