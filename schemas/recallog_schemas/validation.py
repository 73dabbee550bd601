"""Functions that validators share: for the first rule that pydantic found broken, for texts, and for times."""

import re
import reprlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import PydanticCustomError, from_json

from recallog_schemas.names import COMMON, OTHER

KIND_PATTERN = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"
"""How kinds of events are named."""
NOT_BLANK = r"\S"
"""The pattern of a text that is not only white space."""
NOT_A_KIND = "is not a kind: words of a-z, 0-9 and _ with dots between, for example agent.spoke"

_OF_PYDANTIC = re.compile(r"^(Input|String|List) (?=should )|^Value error, |, unable to (parse|interpret) .*")
"""Parts of pydantic's messages that are left out."""


_NOT_IN_PATHS = frozenset({"[key]", OTHER})
"""What pydantic adds to the path of an error: the first one if the name of a field is invalid."""


class BrokenRule(NamedTuple):
    """One broken rule."""

    path: str
    """The field: names and list indexes, joined by dots."""
    rule: str
    """A stable word for the rule: pydantic's type of the error."""
    message: str
    """What is wrong, without the path."""


def first_problem(error: ValidationError, *, with_value: bool = False) -> BrokenRule:
    """The first broken rule; if `with_value` is set, the message shows the invalid value."""
    first: Any = next(each for each in error.errors(include_url=False) if COMMON not in each["loc"])
    context = first.get("ctx", {})
    path = context.get("path") or ".".join(str(part) for part in first["loc"] if part not in _NOT_IN_PATHS)
    shown = _show_value(first["input"])
    if "fault" in context:  # of a name, which the message has
        return BrokenRule(path, first["type"], first["msg"])
    if context.get("pattern") == KIND_PATTERN:
        return BrokenRule(path, first["type"], f"{shown} {NOT_A_KIND}")
    if first["type"] == "string_unicode":
        return BrokenRule(path, first["type"], f"is not valid text: {shown}" if with_value else "is not valid text")
    if first["type"] == "missing":
        return BrokenRule(path, first["type"], "is required")
    if context.get("pattern") == NOT_BLANK:
        return BrokenRule(path, first["type"], "must not be blank")
    if first["type"] == "too_long":
        return BrokenRule(path, first["type"], f"at most {context['max_length']:,}, not {len(first['input']):,}")
    is_no_list = first["type"] == "sequence_str" or context.get("class") == "Sequence"
    message = "should be a list" if is_no_list else re.sub(_OF_PYDANTIC, "", first["msg"])
    return BrokenRule(path, first["type"], f"{message}, not {shown}" if with_value else message)


def _show_value(value: object) -> str:
    """A value in an error message, shortened."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python does not write out an integer of more than 4,300 digits
        return "a number of thousands of digits"


def is_text(text: str) -> bool:
    """Whether `text` can be encoded in UTF-8, as ids must be: undecodable bytes of a command line cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def not_text(value: Any, path: str = "") -> str | None:
    """The path of the first text in a JSON value that UTF-8 cannot represent; None if there is none."""
    if isinstance(value, str):
        return None if is_text(value) else path
    if isinstance(value, Mapping):
        if not all(is_text(key) for key in value if isinstance(key, str)):
            return path
        inner: Iterable[tuple[Any, Any]] = value.items()
    else:
        inner = enumerate(value) if isinstance(value, list | tuple) else ()
    paths = (not_text(item, f"{path}.{key}".lstrip(".")) for key, item in inner)
    return next((found for found in paths if found is not None), None)


def json_of(text: str) -> Any:
    """The value of a JSON text that a caller gave. Raises `ValueError`, also if it is nested too deeply."""
    return from_json(text.encode(), allow_inf_nan=False)


def time_of(value: object) -> datetime:
    """A time with its zone, from a time or an ISO 8601 text. Raises `PydanticCustomError`, a `ValueError`."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise PydanticCustomError("time", "should be a time, for example 2026-03-01T12:00:00Z") from None
    if not isinstance(value, datetime):
        raise PydanticCustomError("time", "should be a time, for example 2026-03-01T12:00:00Z")
    if value.utcoffset() is None:
        raise PydanticCustomError("time_zone", "a time needs its zone, for example 2026-03-01T12:00:00Z")
    return value
