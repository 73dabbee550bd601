"""Names of spaces and agents: the rule for them, their one form, and several of them in one text.

A name is what an identity provider calls a person or a tenant: 1 to 256 bytes of UTF-8, in NFC. This module is the only
place that knows the rule. docs/adr/0096-names-are-those-that-people-have.md gives the reason for each part.
"""

import re
import reprlib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import quote, unquote

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from recallog_schemas import limits

Value = TypeVar("Value")

RULE = "string_pattern_mismatch"
"""The name of the rule in errors, and in dead letters of earlier versions."""

PLAIN_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@/-]{0,127}$"
"""Names that need no further check. Earlier versions had no others."""

SCHEMA_PATTERN = r"^[^\s\x00-\x1f\x7f*]([^\x00-\x1f\x7f*]*[^\s\x00-\x1f\x7f*])?$"
"""The pattern of names in JSON Schemas. It matches every name, and some texts that are not names."""

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029"  # control characters, and ends of lines
    # Format characters:
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    # Invisible characters:
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0\ufe00-\ufe0e\U000e0100-\U000e01ef"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"  # surrogates and noncharacters
)
"""A list of its own, because all versions of Python must refuse the same names, or folds would differ."""
_BLANK = " \xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
_BLANK_END = re.compile(f"^[{_BLANK}]|[{_BLANK}]$")
_RESERVED = frozenset({".", "..", "-"})
"""Clients and proxies remove the first two from paths; for commands the third one means standard input."""
_SAFE = "/@"
"""Besides these, `quote` leaves letters, digits and `_ . - ~` as they are: plain names are their own quotation."""

_is_plain = re.compile(PLAIN_PATTERN).fullmatch


def is_plain(text: str) -> bool:
    """Whether `text` is a name of the alphabet of earlier versions."""
    return _is_plain(text) is not None


def in_nfc(value: Value) -> Value:
    """A name or an id in the one form of all its spellings; also each text of a list, and each key of a dict.

    Of two keys that become one, the last one counts. Anything else stays as it is.
    """
    given: Any = value
    if isinstance(given, list | tuple):
        given = [_compose_name(each) for each in given] if isinstance(given, list) else tuple(map(_compose_name, given))
    elif isinstance(given, dict):
        given = {_compose_name(key): item for key, item in given.items()}
    return cast("Value", _compose_name(given))


def _compose_name(value: Any) -> Any:
    return unicodedata.normalize("NFC", value) if isinstance(value, str) and not value.isascii() else value


def fault(text: str) -> str:
    """The first rule of names that `text`, in NFC, breaks, in words; "" if it breaks none."""
    if _is_plain(text):
        return ""
    if not text:
        return "it is empty"
    if unseen := _UNSEEN.search(text):
        return f"it has the character U+{ord(unseen[0]):04X}, a control, format or line character"
    if _BLANK_END.search(text):
        return "it begins or ends with a blank"
    if "*" in text:
        return "it has a *, which stands for any name in grants"
    if text in _RESERVED:
        return "in a path or a command it means something else"
    size = len(text.encode())
    return f"it has {size:,} bytes in UTF-8, at most {limits.NAME_BYTES_MAX}" if size > limits.NAME_BYTES_MAX else ""


def is_name(text: str) -> bool:
    """Whether `text`, in NFC, can name a space or an agent."""
    return not fault(text)


def check_name(value: Value) -> Value:
    """A name in NFC; also None, and each name of a list. Raises `PydanticCustomError`, a `ValueError`."""
    name = in_nfc(value)
    for each in name if isinstance(name, list | tuple) else [name]:
        if isinstance(each, str) and (broken := fault(each)):
            raise PydanticCustomError(
                RULE, "{name} is not a name: {fault}", {"name": reprlib.repr(each), "fault": broken}
            )
    return name


COMMON, OTHER = "[common]", "[other]"
"""What pydantic adds to the path of an error of a text: once for each of the ways in which it was validated."""


@dataclass(frozen=True, eq=False)
class OneForm:
    """Metadata of a type whose texts name or identify something: they are converted to one form."""

    validated: Callable[[Any], Any]
    common: str
    """A pattern of texts that need no call into Python, which would make an event slower."""
    schema: Mapping[str, Any]
    """What JSON Schemas say of the texts."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        given = handler(source)
        other = core_schema.no_info_before_validator_function(self.validated, given)
        if given["type"] != "str":
            return other
        common: Any = {**given, "pattern": self.common}
        return core_schema.union_schema([(common, COMMON), (other, OTHER)], mode="left_to_right")

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        inner = schema["choices"][1][0] if schema["type"] == "union" else schema
        found = handler(inner)
        for each in found.get("anyOf", [found]):
            text = each.get("items", each)
            if text.get("type") == "string":
                text |= self.schema
        return found


IN_NFC = OneForm(in_nfc, r"^[\x00-\x7f]*$", {})
"""For ids, and for all names except those of spaces and agents."""
NAME = OneForm(check_name, PLAIN_PATTERN, {"pattern": SCHEMA_PATTERN, "maxLength": limits.NAME_BYTES_MAX})
"""For the names of spaces and agents."""


def join_names(separator: str, *names: str) -> str:
    """Names in one text, which `split` takes apart again. Different names never give the same text.

    Names of the alphabet of earlier versions are written as they are; `separator` must not be in it.
    """
    return separator.join(name if _is_plain(name) else quote(name, _SAFE) for name in names)


def split(separator: str, text: str, count: int) -> list[str]:
    """The first names in a text of `join_names`, and its rest: at most `count` parts."""
    return [unquote(part) for part in text.split(separator, count - 1)]
