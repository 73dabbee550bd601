"""External sources: functions of a program that find memories elsewhere, for `search(include_external=True)`.

Their results are shown apart from those of the memory. They are not ranked, stored or counted as read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from itertools import islice
from typing import Any

from recallog.retrieval.bounded_calls import Unanswered, call_within
from recallog_schemas.shortening import shorten, tokens
from recallog_schemas.views import ExternalHit, SearchPage

ExternalSource = Callable[[str, str, str, int], Any]
"""`source(space, agent, query, limit)` returns the best `limit` results for a query, best first, and may be `async`. A
result is a text, or a mapping with `text` and, if known, `id` and `score`. It must return only what the agent may read
in the space. One that is not `async`, such as a generator, runs in a thread."""
NO_SOURCE = "no external source is connected"


async def add_external(
    page: SearchPage, sources: Mapping[str, ExternalSource], names: Sequence[str], limit: int, seconds: float
) -> SearchPage:
    """`page` with the results of the sources that `names` has, or of all of them. A source that fails, or takes longer
    than `seconds`, is left out, and `external_reason` says why, as it does for an unknown name."""
    chosen = {name: sources[name] for name in names or sources if name in sources}
    asked = (_ask(name, source, page, limit, seconds) for name, source in chosen.items())
    answers = dict(zip(chosen, await asyncio.gather(*asked), strict=True))
    hits = [hit for found, _ in answers.values() for hit in found]
    reasons = [f"{name}: {reason}" for name, (_, reason) in answers.items() if reason]
    reasons += [f"{name}: no such source" for name in names if name not in sources]
    return page.model_copy(update={"external": tuple(hits), "external_reason": "; ".join(reasons) or None})


async def _ask(
    name: str, source: ExternalSource, page: SearchPage, limit: int, seconds: float
) -> tuple[Sequence[ExternalHit], str | None]:
    given, thread = (page.space, page.agent, page.query, limit), f"recallog-external-{name}"
    function = source if iscoroutinefunction(source) else lambda *asked: _read(source(*asked), limit)
    try:
        found = await call_within(seconds, thread, function, *given)
        return [_make_hit(name, each) for each in islice(found, limit)], None
    except Exception as error:  # noqa: BLE001 - code of users: the memory's own hits are shown without it
        return (), str(error) if isinstance(error, Unanswered) else type(error).__name__


def _read(found: Any, limit: int) -> Any:
    """The first results, in the thread that calls the source: a generator works while it is read."""
    return found if isinstance(found, Awaitable) else list(islice(found, limit))


def _make_hit(name: str, found: str | Mapping[str, Any]) -> ExternalHit:
    given = {"text": found} if isinstance(found, str) else found
    text = given["text"]
    f"{text}{given.get('id')}".encode()  # an answer with lone surrogates could not be sent
    preview = shorten(text)
    return ExternalHit(source=name, id=given.get("id"), preview=preview, tokens=tokens(text), score=given.get("score"))
