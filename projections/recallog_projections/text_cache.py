"""A cache for functions of texts that a fold calls several times for one event."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

from recallog_schemas import limits

Others = ParamSpec("Others")
Result = TypeVar("Result")


def cached_if_short(function: Callable[Concatenate[str, Others], Result]) -> Callable[Concatenate[str, Others], Result]:
    """Cache the results for texts of up to `limits.CACHED_TEXT_CHARS_MAX` characters, so that the cache stays small."""
    cached = lru_cache(maxsize=limits.CACHED_TEXTS_MAX)(function)

    @wraps(function)
    def call(text: str, /, *others: Others.args, **named: Others.kwargs) -> Result:
        if len(text) > limits.CACHED_TEXT_CHARS_MAX:
            return function(text, *others, **named)
        return cached(text, *others, **named)  # type: ignore[arg-type]

    return call
