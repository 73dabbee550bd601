"""Visibility in recall, search, salience and prompts, by words and by each index: no invisible event is shown.

The expected visibility comes from the oracle, which shares no code with them.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qdrant_client import AsyncQdrantClient

from recallog import Event, Memory, Position
from recallog.reading.time_travel import AsOf
from recallog.settings import Settings
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.engines.server import ServerEngine
from recallog_schemas import codec
from support.events import MOMENT, one_loop, run
from support.indexing import catch_up, indexing_of, memory_with
from support.oracle import ExpectedEvent, expect

# Local mode takes payload indexes and search parameters for a mistake of ours.
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect", "ignore:Local mode performs exact")

AGENTS = ("baker", "miller", "smith")
ASKERS = (*AGENTS, "stranger")
SESSIONS = (None, None, "dusk", "dawn")
KINDS = (
    "agent.spoke",
    "agent.spoke",
    "agent.thought",
    "world.observed",
    "user.injected",
    "judge.verdict",
    "shop.opened",
)
NOON = datetime.fromisoformat(MOMENT)
COMMON = "bread"
"""A word of all that is said, so that a question for it finds everything that may be found."""

_numbers = count(1)


@dataclass
class World:
    """One ledger, and a memory for each way of answering."""

    memories: dict[str, Memory]

    async def publish(self, events: list[Event]) -> list[int]:
        """Publish and index events; returns their offsets."""
        positions = await self.memories["off"].publish_many(events)
        for memory in self.memories.values():
            if memory._components.index is not None:
                await catch_up(memory._components.index.indexer)
        return [position.offset for position in positions]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("memory")
    with one_loop():
        edge, server = EdgeEngine(home / "engine"), ServerEngine("local mode", client=AsyncQdrantClient(":memory:"))
        found = World(
            {
                "off": Memory.open(Settings(home=home, index="off")),
                "edge": memory_with(home, lambda ledger: indexing_of(ledger, edge)),
                "server": memory_with(home, lambda ledger: indexing_of(ledger, server)),
            }
        )
        yield found
        for memory in found.memories.values():
            run(memory.close())


@dataclass
class Story:
    """Events in two spaces of its own, each text with a unique mark."""

    events: list[Event]
    spaces: tuple[str, str]
    offsets: list[int] = field(default_factory=list)

    @classmethod
    def by(cls, chance: random.Random, size: int) -> "Story":
        number = next(_numbers)
        spaces = (f"village-{number}", f"city-{number}")
        return cls([_event(chance, chance.choice((spaces[0], *spaces))) for _ in range(size)], spaces)

    def visible(self, space: str, agent: str, as_of: AsOf | None) -> list[ExpectedEvent]:
        """The events that `agent` may see, with offsets relative to the first event of the story."""
        until = self.offsets.index(as_of.offset) + 1 if isinstance(as_of, Position) else len(self.events)
        values = [codec.encode(event) for event in self.events[:until]]
        happened_by = as_of if isinstance(as_of, datetime) else None
        return expect(values, unique_ids=True, happened_by=happened_by).memories(space, agent)


def _event(chance: random.Random, space: str) -> Event:
    kind = chance.choice((*KINDS, "space.configured"))
    payload: dict[str, Any] = {"text": f"{COMMON} {chance.choice(('flour', 'mill', 'river'))} m{next(_numbers)}m."}
    if chance.random() < 0.2:
        payload["text"] = f"{payload['text']} Is it?"
    if kind == "shop.opened" and chance.random() < 0.5:
        payload = {"note": payload["text"]}
    if kind == "space.configured":
        payload = {"shared_kinds": chance.choice((None, [], chance.choices(KINDS, k=2)))}
        if chance.random() < 0.5:
            shop = {"shared": chance.random() < 0.5, "text": "The shop: {note}{text}", "importance": 0.9}
            payload["kinds"] = {"shop.opened": chance.choice((None, shop, shop))}
    if chance.random() < 0.05:
        kind, payload = "agent.configured", {"use_salience": chance.random() < 0.7, "window": chance.randint(1, 9)}
    return Event(
        id=f"e-{next(_numbers)}",
        space=space,
        agent=chance.choice(AGENTS),
        kind=kind,
        turn=chance.randrange(20),
        session=chance.choice(SESSIONS),
        payload=payload,
        audience=chance.choices(ASKERS, k=chance.randrange(3)) if chance.random() < 0.4 else None,
        at=NOON + timedelta(minutes=chance.randrange(60)),
    )


def marks(text: str) -> set[str]:
    return set(re.findall(r"m\d+m", text))


@dataclass(frozen=True)
class Filters:
    """Filters of a query."""

    author: str | None = None
    kinds: tuple[str, ...] | None = None
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def by(cls, chance: random.Random) -> "Filters":
        minutes = sorted((chance.randrange(60), chance.randrange(61)))
        every = {
            "author": chance.choice((*AGENTS, "stranger")),
            "kinds": tuple(chance.choices(KINDS, k=2)),
            "session": chance.choice(("dusk", "dawn", "noon")),
            "since": NOON + timedelta(minutes=minutes[0]),
            "until": NOON + timedelta(minutes=minutes[1]),
        }
        return cls(**{name: value for name, value in every.items() if chance.random() < 0.25})  # type: ignore[arg-type]

    def pass_(self, each: ExpectedEvent) -> bool:
        at = datetime.fromisoformat(each.fields["at"])
        return (
            (self.author is None or each.agent == self.author)
            and (self.kinds is None or each.kind in self.kinds)
            and (self.session is None or each.session == self.session)
            and (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
        )

    def named(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


def moment(chance: random.Random, story: Story) -> AsOf | None:
    return chance.choice(
        (None, Position(0, chance.choice(story.offsets)), NOON + timedelta(minutes=chance.randrange(-1, 61)))
    )


async def check(world: World, story: Story, chance: random.Random) -> None:
    space, agent = chance.choice(story.spaces), chance.choice(ASKERS)
    as_of, filters = moment(chance, story), Filters.by(chance)
    query = chance.choice((COMMON, f"who said {COMMON}?", f"{COMMON}, baker", f"{COMMON} flour by the river"))
    visible = story.visible(space, agent, as_of)
    seen = {story.offsets[each.offset] for each in visible}
    wanted = {story.offsets[each.offset]: each.text for each in visible if each.text and filters.pass_(each)}
    seen_marks = {mark for each in visible for mark in marks(each.text)}
    for how, memory in world.memories.items():
        case = f"{how}: {agent} in {space} as of {as_of}: {query!r} {filters}"
        recalled = await memory.recall(space, agent, query, top_k=1000, as_of=as_of, **filters.named())
        assert (recalled.degraded, recalled.index is None) == (None, how == "off"), case
        found = {hit.position.offset: hit.text for hit in recalled.hits}
        assert found == wanted, case
        assert all(hit.event == story.events[story.offsets.index(hit.position.offset)] for hit in recalled.hits)
        page = await memory.search(space, agent, query, limit=100, as_of=as_of, **filters.named())
        assert [hit.position for hit in page.hits] == [hit.position for hit in recalled.hits], case
        assert set().union(*(marks(hit.preview) for hit in page.hits)) <= seen_marks, case
        salient = await memory.salient(space, agent, query, top_k=100, as_of=as_of)
        assert {memory.position.offset for memory in salient.memories} == seen, case
        prompt = await memory.context(space, agent, query=query, as_of=as_of)
        assert marks(prompt.text) <= seen_marks, case


@pytest.mark.models("prompt")
@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_every_agent_finds_what_it_may_see_and_nothing_else(world: World, seed: int) -> None:
    chance = random.Random(seed)
    story = Story.by(chance, chance.randint(1, 30))
    story.offsets = run(world.publish(story.events))
    for _ in range(3):
        run(check(world, story, chance))


async def answers(memory: Memory, space: str, agent: str, query: str, as_of: Position | None) -> list[Any]:
    """All answers about `agent`, as plain values."""
    recalled = await memory.recall(space, agent, query, top_k=1000, as_of=as_of)
    salient = await memory.salient(space, agent, query, as_of=as_of)
    return [
        [(hit.position, pytest.approx(hit.score, abs=1e-5), hit.source, sorted(hit.parts)) for hit in recalled.hits],
        (recalled.considered, recalled.channels, recalled.checkpoint),
        (salient.memories, salient.relevance_by, salient.turn),
        str(await memory.context(space, agent, query=query, as_of=as_of)),
    ]


@pytest.mark.models("prompt")
@settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_a_query_as_of_a_position_gives_the_answer_of_that_position(world: World, seed: int) -> None:
    chance = random.Random(seed)
    story = Story.by(chance, 10)
    space = story.spaces[0]
    then: list[tuple[str, str, str, Position, list[Any]]] = []
    for event in story.events:
        story.offsets += run(world.publish([event]))
        agent, query = chance.choice(ASKERS), chance.choice((f"{COMMON} flour?", "the mill by the river", "baker"))
        at = Position(0, story.offsets[-1])
        then += [
            (how, agent, query, at, run(answers(memory, space, agent, query, None)))
            for how, memory in world.memories.items()
        ]
    for how, agent, query, at, answered in then:
        assert run(answers(world.memories[how], space, agent, query, at)) == answered, (how, agent, query, at)


# Examples.


def published(world: World, *events: Event) -> list[int]:
    return run(world.publish(list(events)))


def spoke(space: str, text: str, agent: str = "miller", kind: str = "agent.spoke", **fields: Any) -> Event:
    return Event(space=space, agent=agent, kind=kind, payload={"text": text}, **fields)


@pytest.fixture
def space() -> str:
    return f"inn-{next(_numbers)}"


HOWS = ["off", "edge", "server"]


@pytest.mark.parametrize("how", HOWS)
def test_a_private_thought_between_two_events_does_not_change_the_answers_of_others(
    world: World, how: str, space: str
) -> None:
    published(
        world,
        spoke(space, "Who burned the mill?", kind="world.observed"),
        spoke(space, "I burned the mill, I, the miller.", kind="agent.thought"),
        spoke(space, "It was dark.", kind="world.observed"),
    )
    found = run(world.memories[how].recall(space, "baker", "who burned the mill?"))
    assert [hit.position.offset for hit in found.hits if "I burned" in hit.text] == []
    mine = run(world.memories[how].recall(space, "miller", "who burned the mill?"))
    assert "I burned the mill, I, the miller." in [hit.text for hit in mine.hits]


@pytest.mark.parametrize("how", HOWS)
def test_word_frequencies_count_only_what_the_agent_may_see(world: World, how: str, space: str) -> None:
    """Private events of others must change neither the hits of an agent nor their order."""
    shared = [spoke(space, text, kind="world.observed", session=f"s{n}") for n, text in enumerate(["Mill.", "River."])]
    published(world, *shared)
    before = run(world.memories[how].recall(space, "baker", "mill river"))
    published(world, *(spoke(space, f"The river {n}.", kind="agent.thought", session="s9") for n in range(10)))
    after = run(world.memories[how].recall(space, "baker", "mill river"))
    assert [hit.position for hit in after.hits] == [hit.position for hit in before.hits]
    assert [hit.score for hit in after.hits] == pytest.approx([hit.score for hit in before.hits], abs=1e-5)


@pytest.mark.parametrize("how", HOWS)
def test_no_agent_name_gives_access_to_private_events_of_others(world: World, how: str, space: str) -> None:
    published(world, spoke(space, "A secret.", kind="agent.thought"))
    for name in ("everybody", "all", "0", "a" * 128):
        assert run(world.memories[how].recall(space, name, "secret")).hits == ()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("year", [1969, 1970, 2026])
def test_a_bound_is_exact_to_the_microsecond(world: World, how: str, year: int, space: str) -> None:
    start = NOON.replace(year=year, month=1, day=1, hour=0)
    offsets = published(
        world, *(spoke(space, "Bread.", "baker", at=start + timedelta(microseconds=n)) for n in range(4))
    )
    found = run(
        world.memories[how].recall(
            space, "baker", "bread", since=start + timedelta(microseconds=1), until=start + timedelta(microseconds=3)
        )
    )
    assert sorted(hit.position.offset for hit in found.hits) == offsets[1:3]
    past = run(world.memories[how].recall(space, "baker", "bread", as_of=start + timedelta(microseconds=1)))
    assert sorted(hit.position.offset for hit in past.hits) == offsets[:2]


@pytest.mark.parametrize("how", HOWS)
def test_a_bound_at_the_beginning_of_time_is_applied(world: World, how: str, space: str) -> None:
    epoch = datetime.fromisoformat("1970-01-01T00:00:00Z")
    published(world, spoke(space, "Bread.", "baker"))
    assert run(world.memories[how].recall(space, "baker", "bread", until=epoch)).considered in (0, 1)
    assert run(world.memories[how].recall(space, "baker", "bread", until=epoch)).hits == ()
