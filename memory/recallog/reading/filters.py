"""Filters: conditions on the fields of a memory, written as JSON. Each is compiled into one predicate over events.

An entry is judged as the event that an answer shows for it, so that a filter means the same in all operations.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from difflib import get_close_matches
from operator import attrgetter, ge, gt, le, lt
from typing import Any

import msgspec

from recallog_projections.views.trust import SourceClasses
from recallog_schemas import Event, limits
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.kinds.trust import CLASSES, TRUST, rank_of
from recallog_schemas.names import in_nfc
from recallog_schemas.validation import time_of

Passes = Callable[[Event], bool]
"""Whether an event passes a filter."""
_Value = Callable[[Event], Any]
_Test = Callable[[Any], bool]
"""Whether the value of a field fulfils a condition."""

_NAMES = ("id", "agent", "session", "subject")
"""Fields of the envelope that contain names, which are stored in one Unicode form."""
_ENVELOPE = (*_NAMES, "kind", "turn", "at")
_PAYLOAD = ("type", "category", "entity", "source", "topic", "confidence", "importance", "priority")
_TAGS, _METADATA, _ROOTS = "tags", "metadata", ("metadata", "payload")
FIELDS = (*_ENVELOPE, *_PAYLOAD, _TAGS, TRUST, *_ROOTS)
_DEFAULTS = SourceClasses()

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
OPERATORS = ("$eq", "$ne", "$in", "$nin", *_ORDERS, "$exists", "$contains", "$not")
_CONNECTIVES = ("$and", "$or", "$not")


def plain(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A filter as JSON, with times as texts. Raises `InvalidArgument` if it is not a filter."""
    try:
        found: Mapping[str, Any] = msgspec.to_builtins(given)
    except (TypeError, RecursionError) as error:
        raise _invalid("filter", f"should be JSON: {error}", "json") from None
    _check_depth(found)
    compile_filter(found)
    size = len(msgspec.json.encode(found))
    if size > limits.FILTER_BYTES_MAX:
        raise _invalid("filter", f"has {size:,} bytes as JSON, and at most {limits.FILTER_BYTES_MAX:,} are allowed")
    return found


def compile_filter(given: Mapping[str, Any], path: str = "filter", sources: SourceClasses = _DEFAULTS) -> Passes:
    """The predicate of a filter that `plain` has returned, with the source classes of a space. Raises
    `InvalidArgument`, which names the wrong part."""
    return _all([passes for name, value in given.items() for passes in _parts(name, value, f"{path}.{name}", sources)])


def names_trust(given: Mapping[str, Any]) -> bool:
    """Whether a filter may depend on the source classes of a space."""
    return TRUST in str(given)


def _parts(name: object, value: Any, path: str, sources: SourceClasses) -> Iterator[Passes]:
    if name == "$not":
        negated = compile_filter(_mapping(value, path), path, sources)
        yield lambda event: not negated(event)
    elif name in _CONNECTIVES:
        of_each = [
            compile_filter(_mapping(each, f"{path}.{number}"), f"{path}.{number}", sources)
            for number, each in enumerate(_list(value, path, "filters"))
        ]
        yield _all(of_each) if name == "$and" else lambda event: any(passes(event) for passes in of_each)
    else:
        yield from _of_field(_place(name, path), value, path, sources)


def _of_field(place: Sequence[str], value: Any, path: str, sources: SourceClasses) -> Iterator[Passes]:
    """The conditions on one field, or on its parts if `value` is an object that names them."""
    if value == {}:
        raise _invalid(path, "should be a value, or an object with operators")
    if not isinstance(value, Mapping) or any(str(key).startswith("$") for key in value):
        test = _test(place, value, path)
        value_of = sources.class_of if place == (TRUST,) else _value_of(place)
        yield lambda event: test(value_of(event))
        return
    for key, inner in value.items():
        if not isinstance(key, str) or f"${key}" in OPERATORS or place[0] not in _ROOTS:
            raise _wrong_part(place, key, path)
        yield from _of_field((*place, key), inner, f"{path}.{key}", sources)


def _test(place: Sequence[str], value: Any, path: str) -> _Test:
    """The test of a field: equality with a value, or all operators of an object."""
    if not isinstance(value, Mapping):
        return _equal(_operand(place, value, path))
    tests = [_of_operator(name, place, each, f"{path}.{name}") for name, each in value.items()]
    return lambda found: all(test(found) for test in tests)


def _of_operator(name: object, place: Sequence[str], value: Any, path: str) -> _Test:
    match name:
        case "$eq":
            return _equal(_operand(place, value, path))
        case "$ne":
            return _negate(_equal(_operand(place, value, path)))
        case "$in" | "$nin":
            tests = [_equal(_operand(place, each, path)) for each in _list(value, path, "values")]
            within: _Test = lambda found: any(test(found) for test in tests)  # noqa: E731
            return within if name == "$in" else _negate(within)
        case "$gt" | "$gte" | "$lt" | "$lte":
            return _compile_order(_ORDERS[name], _operand(place, value, path), place, path)
        case "$exists":
            if not isinstance(value, bool):
                raise _invalid(path, "should be true or false")
            return lambda found: (found is not None) is value
        case "$contains":
            wanted = _operand(place, value, path)
            return lambda found: _contains(found, wanted)
        case "$not":
            return _negate(_test(place, _mapping(value, path), path))
    raise _unknown(name, path, "an operator", OPERATORS)


def _negate(test: _Test) -> _Test:
    return lambda found: not test(found)


def _all(of_each: Sequence[Passes]) -> Passes:
    return of_each[0] if len(of_each) == 1 else lambda event: all(passes(event) for passes in of_each)


# Fields


def _place(name: object, path: str) -> Sequence[str]:
    """The root of a field and the keys below it: `metadata.city`."""
    root, _, below = name.partition(".") if isinstance(name, str) else ("", "", "")
    if root not in FIELDS or (below and root not in _ROOTS):
        known = _CONNECTIVES if str(name).startswith("$") or f"${str(name).casefold()}" in _CONNECTIVES else FIELDS
        raise _unknown(name, path, "a field", known)
    return (root, *below.split(".")) if below else (root,)


def _value_of(place: Sequence[str]) -> _Value:
    """A function that reads a field of an event. It returns None if the event does not have the field."""
    root, *below = place
    if root in _ENVELOPE:
        return attrgetter(root)
    if root == _TAGS:
        return lambda event: event.payload.get(_TAGS, _below(event.payload, (_METADATA, _TAGS)))
    keys = below if root == "payload" else place
    return lambda event: _below(event.payload, keys)


def _below(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


# Values


def _operand(place: Sequence[str], value: Any, path: str) -> Any:
    """A value to compare with a field, in the form that events have."""
    if isinstance(value, float) and not math.isfinite(value):
        raise _invalid(path, "should be a number; JSON has no NaN and no infinity")
    if place == ("at",) and value is not None:
        try:
            return time_of(value)
        except ValueError as error:
            raise _invalid(path, str(error), "time") from None
    if isinstance(value, Mapping):
        raise _invalid(path, "should be a value, not an object; name its parts with dots")
    if place == (TRUST,) and value not in CLASSES:
        raise _invalid(path, f"is not a source class; there are {', '.join(CLASSES)}")
    return in_nfc(value) if place[0] in _NAMES and isinstance(value, str) else value


def _equal(wanted: Any) -> _Test:
    return lambda found: _is_same(found, wanted)


def _is_same(found: Any, wanted: Any) -> bool:
    """Whether two JSON values are equal. In Python, True equals 1."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, list | tuple) and isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(_is_same, found, wanted))
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(_is_same(found[key], each) for key, each in wanted.items())
    return bool(found == wanted)


def _contains(found: Any, wanted: Any) -> bool:
    """Whether a list contains an element, or a text a substring."""
    if isinstance(found, list | tuple):
        return any(_is_same(each, wanted) for each in found)
    return isinstance(found, str) and isinstance(wanted, str) and wanted in found


def _compile_order(order: Callable[[Any, Any], bool], wanted: Any, place: Sequence[str], path: str) -> _Test:
    """A comparison of numbers, of texts, of times or of source classes. Values of other types never pass."""
    if place == (TRUST,):
        return lambda found: order(rank_of(found), rank_of(wanted))
    if _is_number(wanted):
        return lambda found: _is_number(found) and order(found, wanted)
    if isinstance(wanted, datetime):
        return lambda found: order(found, wanted)
    if not isinstance(wanted, str):
        raise _invalid(path, "should be a number, a text or a time")
    moment = _moment(wanted)

    def test(found: Any) -> bool:
        if not isinstance(found, str):
            return False
        other = None if moment is None else _moment(found)
        return order(found, wanted) if moment is None or other is None else order(other, moment)

    return test


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _moment(text: str) -> datetime | None:
    """The time that a text states; None for other texts, and for a time without its zone."""
    if text[4:5] == "-":  # few texts are times
        with suppress(ValueError):
            return time_of(text)
    return None


# Errors


def _check_depth(value: Any, depth: int = 0) -> None:
    if depth > limits.FILTER_DEPTH_MAX:
        raise _invalid("filter", f"is nested deeper than {limits.FILTER_DEPTH_MAX} levels", "depth")
    if isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            _check_depth(each, depth + 1)


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _invalid(path, "should be a JSON object")
    return value


def _list(value: Any, path: str, of: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple) or not value:
        raise _invalid(path, f"should be a list of {of}, of at least one")
    return value


def _wrong_part(place: Sequence[str], key: object, path: str) -> InvalidArgument:
    where = ".".join((*place, str(key)))
    if isinstance(key, str) and f"${key}" in OPERATORS:
        part = f" A part of this name is {where}" if place[0] in _ROOTS else ""
        return _invalid(f"{path}.{key}", f"did you mean ${key}?{part}", "operator")
    return _invalid(f"{path}.{key}", f"{place[0]} has no parts; compare it with a value, or with operators: $gt")


def _unknown(name: object, path: str, what: str, known: Sequence[str]) -> InvalidArgument:
    first, _, key = str(name).partition(".")
    if known is FIELDS and key and (roots := get_close_matches(first, _ROOTS, 1)):
        return _invalid(path, f"is not {what}; did you mean {roots[0]}.{key}?", "unknown")
    # Names from other filter languages: `AND`, `gte`.
    dollared = f"${str(name).casefold()}"
    near = [dollared] if dollared in known else get_close_matches(str(name), known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    own = f" For a key of the metadata, write {_METADATA}.{name}" if known is FIELDS else ""
    return _invalid(path, f"is not {what}; {hint}{own}", "unknown")


def _invalid(path: str, message: str, rule: str = "filter") -> InvalidArgument:
    return InvalidArgument(f"{path}: {message}", path=path, rule=rule)
