"""Progressive disclosure compared with a brute-force search of the ledger's bytes."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog.queries import previews
from recallog.queries.previews import AroundRequest
from recallog.reading.readings import SpaceReading
from recallog.retrieval import recall as recalling
from recallog.retrieval.query import RecallQuery
from recallog_projections.views import builtin
from recallog_schemas.errors import OutOfRange
from recallog_schemas.views import AroundView, SearchPage
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import MOMENT
from support.folding import NEVER_SEEN, about, finish, folded, reading_of
from support.oracle import Expected, ExpectedEvent, expect, understood
from support.random_events import AGENTS, SPACES, random_ledger

pytestmark = pytest.mark.models("all")

READERS = (*AGENTS, "ghost", NEVER_SEEN)
QUERIES = ("bread", "the BREAD of the mill", "word 7", "bäcker straße", "what did the judge say?")


@dataclass(frozen=True)
class Recorded:
    """A ledger, and views of it that may hold fewer events."""

    values: list[bytes]
    unique_ids: bool
    kept: int
    happened_by: datetime | None

    @cached_property
    def ledger(self) -> MemoryLedger:
        """Each record under its space, as time travel reads it."""
        ledger = MemoryLedger(unique_ids=self.unique_ids)
        for data in self.values:
            verdict = understood(data)
            ledger.append_bytes(data, None if isinstance(verdict, str) else verdict[0]["space"])
        return ledger

    @cached_property
    def reading(self) -> SpaceReading:
        generation = folded(self.ledger, builtin.projections(self.kept), remember_until=self.happened_by)
        return reading_of(*generation, log_events=self.kept, as_of=self.happened_by)

    @cached_property
    def expected(self) -> Expected:
        return expect(self.values, unique_ids=self.unique_ids, happened_by=self.happened_by)

    @cached_property
    def ids(self) -> list[str]:
        """The ids of all counted events of all spaces, and an unknown id."""
        return [*dict.fromkeys(str(said.fields["id"]) for said in self.expected.counted), "nosuch"]

    def around(self, space: str, agent: str, request: AroundRequest) -> AroundView:
        return finish(previews.around(about(self.reading, space, agent), request))

    def search(self, space: str, agent: str, query: str) -> SearchPage:
        question = RecallQuery(space, agent, query, 100, at_until=self.happened_by)
        return previews.page(finish(recalling.recall(about(self.reading, space, agent), question)), 100)


@st.composite
def memories(draw: st.DrawFn) -> Recorded:
    """Recordings made from a seed, which a failure reports."""
    dice = random.Random(draw(st.integers(0, 2**32)))
    unique_ids = dice.random() < 0.5
    values = random_ledger(dice, draw(st.integers(1, 100)), unique_ids=unique_ids)
    by = datetime.fromisoformat(MOMENT) + timedelta(minutes=dice.randrange(60)) if dice.random() < 0.3 else None
    return Recorded(values, unique_ids, draw(st.sampled_from((1, 2, 5, 2_000))), by)


def with_id(seen: list[ExpectedEvent], wanted: str) -> int | None:
    return next((index for index, said in enumerate(seen) if said.fields["id"] == wanted), None)


@settings(max_examples=60)
@given(memories(), st.sampled_from(SPACES), st.sampled_from(READERS), st.randoms(use_true_random=False))
def test_entries_are_the_events_of_the_ids_that_the_agent_could_see(
    memory: Recorded, space: str, agent: str, dice: random.Random
) -> None:
    ids = dice.choices(memory.ids, k=30)
    view = finish(previews.entries(about(memory.reading, space, agent), ids))
    seen = {str(said.fields["id"]): said for said in memory.expected.memories(space, agent)}
    expected = [(seen[each].offset, seen[each].text) for each in dict.fromkeys(ids) if each in seen]
    assert [(shown.position.offset, shown.text) for shown in view.entries] == expected


@settings(max_examples=60)
@given(
    memories(),
    st.sampled_from(SPACES),
    st.sampled_from(READERS),
    st.integers(0, 6),
    st.integers(0, 6),
    st.randoms(use_true_random=False),
)
def test_around_an_event_is_what_the_agent_could_see_next_to_it(
    memory: Recorded, space: str, agent: str, before: int, after: int, dice: random.Random
) -> None:
    seen = memory.expected.memories(space, agent)
    for wanted in dice.choices(memory.ids, k=8):
        index = with_id(seen, wanted)
        request = AroundRequest(wanted, before, after, lambda _: True)
        if index is None:
            with pytest.raises(OutOfRange, match=f"{agent} may see no event '{wanted}' in {space}"):
                memory.around(space, agent, request)
            continue
        found = memory.around(space, agent, request)
        offsets = [said.offset for said in seen]
        assert [each.position.offset for each in found.before] == offsets[max(0, index - before) : index]
        assert found.anchor.position.offset == offsets[index]
        assert [each.position.offset for each in found.after] == offsets[index + 1 : index + 1 + after]


@settings(max_examples=60)
@given(memories(), st.sampled_from(SPACES), st.sampled_from(READERS), st.sampled_from(QUERIES))
def test_a_search_shows_nothing_that_the_agent_may_not_see(
    memory: Recorded, space: str, agent: str, query: str
) -> None:
    texts = {said.offset: said.text for said in memory.expected.memories(space, agent)}
    page = memory.search(space, agent, query)
    assert {hit.position.offset for hit in page.hits} <= texts.keys()
    for hit in page.hits:
        whole = texts[hit.position.offset]
        assert hit.preview == (whole if len(whole) <= 220 else f"{whole[:220]}...")
        assert hit.tokens == -(-len(whole) // 4)
