"""Messages of a conversation are read in order from both ends, however they are stored."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog.models.conversations.reading import rows_of
from recallog_projections.models.conversations.tables import MESSAGES, ConversationKey
from recallog_schemas import Event, codec
from recallog_schemas.models.conversations.limits import MESSAGES_OF_CHUNK
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, run
from support.finishing import finish
from support.folding import folded, ledger_at, reading_of

pytestmark = pytest.mark.models("conversations")

BAKER = ConversationKey("village", "baker", "day-1")
OWN = event(kind="agent.spoke", session="day-1", agent="baker")
SHARED = event(kind="user.injected", session="day-1", agent="user")
OF_ANOTHER = event(kind="agent.spoke", session="day-1", agent="miller")
OF_ANOTHER_SESSION = event(kind="agent.spoke", session="day-10", agent="baker")
SEEN = (OWN, SHARED)


def ledger_of(told: list[Event]) -> MemoryLedger:
    return ledger_at([codec.encode(each.model_copy(update={"id": f"e-{n}"})) for n, each in enumerate(told)])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([OWN, OWN, SHARED, OF_ANOTHER, OF_ANOTHER_SESSION]), max_size=6 * MESSAGES_OF_CHUNK),
    st.sampled_from([1, MESSAGES_OF_CHUNK, 1000]),
    st.booleans(),
)
def test_all_messages_are_read_once_and_in_order(told: list[Event], page: int, newest_first: bool) -> None:
    async def offsets() -> list[int]:
        reading = reading_of(*folded(ledger_of(told)))
        return [row.offset async for row in rows_of(reading, BAKER, newest_first=newest_first, page=page)]

    expected = [offset for offset, each in enumerate(told) if each in SEEN]
    assert run(offsets()) == (expected[::-1] if newest_first else expected)


@pytest.mark.parametrize("newest_first", [False, True])
def test_messages_that_become_a_chunk_while_they_are_read_are_read_once(newest_first: bool) -> None:
    first, later = 3 * MESSAGES_OF_CHUNK - 1, 2 * MESSAGES_OF_CHUNK
    ledger = ledger_of([OWN] * (first + later))

    async def offsets() -> list[int]:
        projector, generation = folded(ledger, until=first)
        found: list[int] = []
        async for row in rows_of(reading_of(projector, generation), BAKER, newest_first=newest_first, page=1):
            if not found:
                await projector.catch_up(generation, first + later)
            found.append(row.offset)
        return found

    found = run(offsets())
    assert found == sorted({*found}, reverse=newest_first)
    assert {*found} >= {*range(first)}


def test_messages_are_stored_in_chunks() -> None:
    projector, generation = folded(ledger_of([OWN] * (3 * MESSAGES_OF_CHUNK)))
    chunk = finish(projector.store.scan(generation, MESSAGES.name, limit=10))
    assert len(chunk.items) == 3
