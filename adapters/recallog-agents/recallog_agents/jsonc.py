"""Changes of JSON files with comments: members are added, replaced or removed, and all other bytes are kept.

A library that loads and dumps would lose comments, indentation and line ends. This module finds the places of the
values in a file, and edits the text between them. Comments and commas at the end of a list are allowed, as in VS Code.
A file in strict JSON stays strict JSON.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_TRIVIA = re.compile(r"(?:\s|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE = re.compile(r"(?:[^\S\n\r]|//[^\n\r]*|/\*[^\n\r]*?\*/)*")
_SCALAR = json.JSONDecoder()
_DEPTH_MAX = 100
_DEFAULT_INDENT = "  "

Path = Sequence[str | int]
"""Names of members, and indices of elements, outermost first."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value and its place in a text."""

    start: int
    end: int
    value: Any
    items: "Sequence[Item] | None" = None
    """The members of an object, or the elements of an array; None for other values."""


@dataclass(frozen=True, slots=True)
class Item:
    """A member of an object, or an element of an array."""

    start: int
    name: str | None
    """None for an element."""
    value: Value
    comma: int | None
    """The place of the comma after it; None if there is none."""

    @property
    def end(self) -> int:
        return self.value.end


def parse(text: str) -> Value:
    """The value of a text with its places. Raises `ValueError` with line and column."""
    value = _value(text, _skipped(text, 0), 0)
    end = _skipped(text, value.end)
    if end < len(text):
        raise _problem(text, end, "nothing more")
    return value


def at(value: Value, path: Path) -> Value | None:
    """The value of the member at a path; None if there is none."""
    for name in path:
        items = value.items or ()
        found = _named(value, name) if isinstance(name, str) else items[name] if name < len(items) else None
        if found is None:
            return None
        value = found.value
    return value


def put(text: str, path: Path, value: Any) -> str:
    """The text with `value` as the member at `path`. Missing objects on the way are added."""
    root = parse(text)
    for depth in range(len(path)):
        parent = at(root, path[:depth])
        if parent is None or at(root, path[: depth + 1]) is not None:
            continue
        for name in reversed(path[depth + 1 :]):
            value = {name: value}
        return _with_item(text, root, parent, f"{json.dumps(path[depth], ensure_ascii=False)}: ", value)
    present = at(root, path)
    if present is None or present.value == value:
        return text
    written = _written(text, root, value, _indent_of_line(text, present.start), _is_on_one_line(text, present))
    return text[: present.start] + written + text[present.end :]


def append(text: str, path: Path, value: Any) -> str:
    """The text with an element appended to the array at `path`, which is added if it is missing."""
    root = parse(text)
    array = at(root, path)
    return put(text, path, [value]) if array is None else _with_item(text, root, array, "", value)


def remove(text: str, path: Path, index: int | None = None) -> str:
    """The text without the member at `path`, or without an element of the array there."""
    root = parse(text)
    parent = at(root, path if index is not None else path[:-1])
    if parent is None or not parent.items:
        return text
    found = [n for n, item in enumerate(parent.items) if (item.name == path[-1] if index is None else n == index)]
    return _without_item(text, parent, found[0]) if found else text


def _with_item(text: str, root: Value, parent: Value, lead: str, value: Any) -> str:
    """The text with an item appended to an object or an array."""
    one_line = _is_on_one_line(text, parent) and bool(parent.items or (root.items and _is_on_one_line(text, root)))
    newline = "\r\n" if "\r\n" in text else "\n"
    own = _indent_of_line(text, parent.start)
    if not parent.items:
        # Comments in it stay before the new item.
        inside = text[parent.start + 1 : parent.end - 1].rstrip()
        indent = own + _unit(text, root)
        written = lead + _written(text, root, value, indent, one_line)
        body = written if one_line else f"{newline}{indent}{written}{newline}{own}"
        return text[: parent.start + 1] + inside + body + text[parent.end - 1 :]
    last = parent.items[-1]
    if one_line:
        written = lead + _written(text, root, value, own, one_line)
        return f"{text[: last.end]}, {written}{text[last.end :]}"
    indent = _indent_of_line(text, last.start)
    written = lead + _written(text, root, value, indent, one_line)
    after = last.end if last.comma is None else last.comma + 1
    end = _end_of_line(text, after)
    comma, closing = (",", "") if last.comma is None else ("", ",")
    return f"{text[: last.end]}{comma}{text[last.end : end]}{newline}{indent}{written}{closing}{text[end:]}"


def _end_of_line(text: str, index: int) -> int:
    """The end of the line, if only a comment follows on it; else `index`."""
    rest = _REST_OF_LINE.match(text, index)
    end = index if rest is None else rest.end()
    return end if text[end : end + 1] in ("", "\n", "\r") else index


def _without_item(text: str, parent: Value, number: int) -> str:
    items = parent.items or ()
    item, previous = items[number], items[number - 1] if number else None
    end = item.end if item.comma is None else item.comma + 1
    gone: list[tuple[int, int]] = []
    if item.comma is None and previous is not None and previous.comma is not None:
        gone.append((previous.comma, previous.comma + 1))
    before, after = text[: item.start].rstrip(" \t"), text[end : _end_of_line(text, end)]
    if not before.endswith("\n"):
        spaces = len(text[end:]) - len(text[end:].lstrip(" \t")) if item.comma is not None else 0
        gone.append((item.start if item.comma is not None else len(before), end + spaces))
    elif after.strip() or text[end + len(after) : end + len(after) + 1] not in ("\n", "\r"):
        gone.append((item.start, end))  # its last line contains something else, for example a comment
    else:
        gone.append((len(before.removesuffix("\n").removesuffix("\r")), end + len(after)))
    inside, index = "", parent.start + 1
    for first, last in gone:
        inside, index = inside + text[index:first], last
    inside += text[index : parent.end - 1]
    return text[: parent.start + 1] + (inside if inside.strip() else "") + text[parent.end - 1 :]


def _written(text: str, root: Value, value: Any, indent: str, one_line: bool) -> str:
    """A value as JSON in the style of the text, for a line that is indented by `indent`."""
    if one_line:
        return json.dumps(value, ensure_ascii=False)
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=_unit(text, root)).replace("\n", newline + indent)


def _unit(text: str, root: Value) -> str:
    """The text that indents each level."""
    indent = _indent_of_line(text, root.items[0].start) if root.items and not _is_on_one_line(text, root) else ""
    return indent or _DEFAULT_INDENT


def _indent_of_line(text: str, index: int) -> str:
    line = text[max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1 : index]
    return line[: len(line) - len(line.lstrip())]


def _is_on_one_line(text: str, value: Value) -> bool:
    return "\n" not in text[value.start : value.end]


def _named(value: Value, name: str) -> Item | None:
    return next((item for item in value.items or () if item.name == name), None)


def _value(text: str, index: int, depth: int) -> Value:
    if depth > _DEPTH_MAX:
        raise _problem(text, index, f"at most {_DEPTH_MAX} levels")
    if text[index : index + 1] in ("{", "["):
        return _container(text, index, depth)
    try:
        value, end = _SCALAR.raw_decode(text, index)
    except ValueError:
        raise _problem(text, index, "a value") from None
    return Value(index, end, value)


def _container(text: str, start: int, depth: int) -> Value:
    is_object = text[start] == "{"
    closing, items = "}" if is_object else "]", list[Item]()
    index = _skipped(text, start + 1)
    while text[index : index + 1] != closing:
        if items and items[-1].comma is None:
            raise _problem(text, index, f"a comma or {closing}")
        begin, name = index, None
        if is_object:
            name, index = _name(text, index)
            if any(item.name == name for item in items):
                raise _problem(text, begin, f"each name once, and {json.dumps(name)} is there twice")
        value = _value(text, index, depth + 1)
        index = _skipped(text, value.end)
        comma = index if text[index : index + 1] == "," else None
        items.append(Item(begin, name, value, comma))
        index = index if comma is None else _skipped(text, comma + 1)
    found: Any = {item.name: item.value.value for item in items} if is_object else [item.value.value for item in items]
    return Value(start, index + 1, found, items)


def _name(text: str, index: int) -> tuple[str, int]:
    """The name of a member, and the place where its value begins."""
    if text[index : index + 1] != '"':
        raise _problem(text, index, "a name in double quotes")
    try:
        name, end = _SCALAR.raw_decode(text, index)
    except ValueError:
        raise _problem(text, index, "a name in double quotes") from None
    colon = _skipped(text, end)
    if text[colon : colon + 1] != ":":
        raise _problem(text, colon, "a colon")
    return str(name), _skipped(text, colon + 1)


def _skipped(text: str, index: int) -> int:
    """The index after white space and comments."""
    found = _TRIVIA.match(text, index)
    return index if found is None else found.end()


def _problem(text: str, index: int, expected: str) -> ValueError:
    line, column = text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
    return ValueError(f"line {line}, column {column}: expected {expected}")
