"""An entry and what it was made from are one hit."""

from collections.abc import Sequence

import pytest

from recallog import Position
from recallog.retrieval.said_once import said_once
from recallog_schemas.views import RecallHit
from support.events import event

pytestmark = pytest.mark.models("long_term")


def hits(*given: str) -> list[RecallHit]:
    """Hits from their ids: an event, or an entry and its sources as `id=source,source`."""
    found = []
    for each in given:
        id_, is_entry, sources = each.partition("=")
        payload = {"text": id_, "type": "fact", "sources": sources.split(",")} if is_entry else {"text": id_}
        made = event("memory.retained" if is_entry else "agent.spoke", id=id_, payload=payload)
        found.append(
            RecallHit(
                position=Position(0, 0),
                event=made,
                text=id_,
                score=1,
                parts={},
                similarity=None,
                source="views",
                weak=False,
            )
        )
    return found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a", "b"], {"a": (), "b": ()}),
        (["f=a", "a", "b"], {"f": ("a",), "b": ()}),
        (["a", "f=a", "b"], {"a": ("f",), "b": ()}),
        (["a", "f=a,b", "b"], {"a": ("f",), "b": ()}),
        (["a", "b", "f=a,b"], {"a": ("f",), "b": ()}),
        (["f=a,b", "a", "b"], {"f": ("a", "b")}),
        (["f=a", "g=a", "a"], {"f": ("a",), "g": ()}),
        (["s=f,g", "f=a", "g=a", "a"], {"s": ("f", "g"), "a": ()}),
        (["f=x", "b"], {"f": (), "b": ()}),
        ([], {}),
    ],
)
def test_only_the_better_of_two_remains(given: Sequence[str], expected: dict[str, Sequence[str]]) -> None:
    assert {hit.event.id: hit.also for hit in said_once(hits(*given))} == expected
