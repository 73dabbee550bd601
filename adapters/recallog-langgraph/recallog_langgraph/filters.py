"""The filters and the conditions of LangGraph's searches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.store.base import MatchCondition

_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "$gt": lambda one, other: one > other,
    "$gte": lambda one, other: one >= other,
    "$lt": lambda one, other: one < other,
    "$lte": lambda one, other: one <= other,
}


def passes(value: Mapping[str, Any], filter: Mapping[str, Any] | None) -> bool:
    """Whether a value meets all conditions of a filter."""
    return all(_is(value.get(field), wanted) for field, wanted in (filter or {}).items())


def _is(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compare(found, name, other) for name, other in wanted.items())
        return isinstance(found, Mapping) and all(_is(found.get(name), other) for name, other in wanted.items())
    if isinstance(wanted, list | tuple):
        same_length = isinstance(found, list | tuple) and len(found) == len(wanted)
        return same_length and all(map(_is, found, wanted))
    return bool(found == wanted)


def _compare(found: Any, operator: str, other: Any) -> bool:
    if operator == "$eq":
        return bool(found == other)
    if operator == "$ne":
        return bool(found != other)
    if operator not in _COMPARED:
        raise ValueError(f"{operator}: is not one of $eq, $ne, {', '.join(_COMPARED)}")
    try:
        return _COMPARED[operator](float(found), float(other))
    except (TypeError, ValueError):  # the value does not have the field, or it is not a number
        return False


def matches(namespace: Sequence[str], condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends with the labels of a condition; `*` matches any label."""
    path = condition.path
    if len(path) > len(namespace):
        return False
    if condition.match_type == "prefix":
        labels = namespace[: len(path)]
    elif condition.match_type == "suffix":
        labels = namespace[len(namespace) - len(path) :]
    else:
        raise ValueError(f"{condition.match_type}: is neither prefix nor suffix")
    return all(wanted in ("*", label) for label, wanted in zip(labels, path, strict=True))
