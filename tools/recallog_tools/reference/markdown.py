"""Markdown: tables, code blocks and links."""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from recallog_schemas.names import SCHEMA_PATTERN


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell is escaped."""
    lines = [columns, ["---"] * len(columns), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def block(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text}\n```"


def code(text: str) -> str:
    """Code within a line."""
    return f"`{text}`"


def sections(parts: Iterable[str]) -> str:
    """The parts of a page that are not empty, with blank lines between them."""
    return "\n\n".join(part for part in parts if part) + "\n"


def docstring(documented: object) -> str:
    """The own docstring of a class or a function; "" if it has none."""
    return inspect.cleandoc(getattr(documented, "__doc__", None) or "")


def bounds(schema: dict[str, Any]) -> str:
    """What the JSON Schema of a parameter says besides its type; "" for a choice of several types."""
    choices = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    if len(choices) != 1:
        return ""
    (only,) = choices
    if only.get("pattern") == SCHEMA_PATTERN:
        return "a [name](README.md#names)"
    found = (
        _range(only.get("minimum"), only.get("maximum"), "") or _range(_above(only), None, ""),
        _range(only.get("minLength"), only.get("maxLength"), " characters"),
        _range(only.get("minItems"), only.get("maxItems"), " items"),
    )
    return ", ".join(part for part in found if part)


def _above(schema: dict[str, Any]) -> str | None:
    return f"more than {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else None


def _range(least: Any, most: Any, unit: str) -> str:
    if isinstance(least, str):
        return least
    if least is not None and most is not None:
        return f"{least:,} to {most:,}{unit}"
    if least is not None:
        return f"at least {least:,}{unit}"
    return f"at most {most:,}{unit}" if most is not None else ""
