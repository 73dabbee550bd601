"""Text rules: functions from the payload of an event to its text, each named by a short description of its rule."""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from recallog_schemas import limits

TextRule = Callable[[Mapping[str, Any]], str]
"""From a payload to its text; "" if it has none. Its `__name__` describes the rule to readers."""

_PATH = r"[\w-]+(?:\.[\w-]+)*"
_FIELD = re.compile(_PATH)
_TEMPLATE = re.compile(rf"(?P<escaped>{{{{|}}}})|{{(?P<path>{_PATH})}}|(?P<stray>[{{}}])")


def first_of(*fields: str) -> TextRule:
    """The first of `fields` that holds a string."""

    def text(payload: Mapping[str, Any]) -> str:
        for field in fields:
            value = payload.get(field)
            if isinstance(value, str):
                return value
        return ""

    return _named(text, " or ".join(f"{{{field}}}" for field in fields))


def tool_text(payload: Mapping[str, Any]) -> str:
    """The tool and its result, cut at 800 characters."""
    result = payload.get("result")
    if result is None:
        return str(payload["tool"])[: limits.TOOL_TEXT_CHARS_MAX]
    words = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return f"{payload['tool']}: {words}"[: limits.TOOL_TEXT_CHARS_MAX]


tool_text.__name__ = "{tool}: {result}"


@lru_cache(maxsize=1024)
def declared(rule: str) -> TextRule:
    """The rule that a space declares: a payload field (`note`, `order.item`), or a template (`{customer} ordered`).

    A placeholder is a plain lookup through JSON objects. A string is inserted as it is, anything else as compact JSON,
    a missing field or null as "". `{{` and `}}` are literal braces. The text is cut at 8,000 characters. Raises
    `ValueError` for anything else, such as format specifications.
    """
    parts = _parts(f"{{{rule}}}" if _FIELD.fullmatch(rule) else rule)
    if not any(path for _, path in parts):
        raise ValueError(f"{rule!r} names no payload field")

    def text(payload: Mapping[str, Any]) -> str:
        found, length = [], 0
        for literal, path in parts:
            part = literal if path is None else _value(payload, path)[: limits.DECLARED_TEXT_CHARS_MAX]
            found.append(part)
            length += len(part)
            if length >= limits.DECLARED_TEXT_CHARS_MAX:  # no need to write more large values as JSON
                break
        return "".join(found)[: limits.DECLARED_TEXT_CHARS_MAX]

    return _named(text, rule)


def _parts(template: str) -> list[tuple[str, list[str] | None]]:
    """Literal texts, and the paths of placeholders."""
    parts: list[tuple[str, list[str] | None]] = []
    end = 0
    for found in _TEMPLATE.finditer(template):
        if found["stray"]:
            raise ValueError(f"a single {found['stray']} at character {found.start() + 1} belongs to no placeholder")
        parts.append((template[end : found.start()], None))
        parts.append((found["escaped"][0], None) if found["escaped"] else ("", found["path"].split(".")))
        end = found.end()
    parts.append((template[end:], None))
    return parts


def _value(payload: Mapping[str, Any], path: list[str]) -> str:
    value: Any = payload
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _named(rule: TextRule, description: str) -> TextRule:
    rule.__name__ = description
    return rule
