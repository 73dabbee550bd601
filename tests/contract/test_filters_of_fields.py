"""Filters of fields: every query answers what a naive evaluation of the filter selects, by words and by each index."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qdrant_client import AsyncQdrantClient

from recallog import Event, Memory, Position
from recallog.settings import Settings
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.engines.server import ServerEngine
from recallog_schemas import limits
from support.events import MOMENT, one_loop, run
from support.indexing import catch_up, indexing_of, memory_with

# Local mode takes payload indexes and search parameters for a mistake of ours.
pytestmark = [
    pytest.mark.models("tiers"),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect", "ignore:Local mode performs exact"),
]

AGENTS = ("baker", "miller")
NOON = datetime.fromisoformat(MOMENT)
CITIES = ("Bern", "Rome", "rome", 1, True, 1.5, None, ["Bern"], {"of": "Bern"})
TAGS = ("vip", "old", 1, True)
MOMENTS = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+02:00", "2026-01-01", "soon")
EXPIRES = "metadata.expires"
_numbers = count(1)

Fields = dict[str, Any]


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Memory]]:
    """One ledger, and a memory for each way of answering."""
    home = tmp_path_factory.mktemp("memory")
    with one_loop():
        edge, server = EdgeEngine(home / "engine"), ServerEngine("local mode", client=AsyncQdrantClient(":memory:"))
        found = {
            "off": Memory.open(Settings(home=home, index="off")),
            "edge": memory_with(home, lambda ledger: indexing_of(ledger, edge)),
            "server": memory_with(home, lambda ledger: indexing_of(ledger, server)),
        }
        yield found
        for memory in found.values():
            run(memory.close())


async def publish(memories: Mapping[str, Memory], events: list[Event], *, indexed: bool = True) -> list[int]:
    positions = await memories["off"].publish_many(events)
    for memory in memories.values() if indexed else ():
        if memory._components.index is not None:
            await catch_up(memory._components.index.indexer)
    return [position.offset for position in positions]


# A history, and what is remembered of it.


@dataclass
class Story:
    """Events of one space, and the memories that there are after each."""

    space: str
    events: list[Event] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    after: list[dict[str, Fields]] = field(default_factory=list)
    """By position in the story: the fields of each memory, by its id."""

    @classmethod
    def by(cls, chance: random.Random, size: int) -> "Story":
        story = cls(f"village-{next(_numbers)}")
        for _ in range(size):
            story._add(chance)
        return story

    def _add(self, chance: random.Random) -> None:
        known = dict(self.after[-1]) if self.after else {}
        entries = [id_ for id_, fields in known.items() if fields["kind"] == "memory.retained"]
        agent, id_ = chance.choice(AGENTS), f"m-{next(_numbers)}"
        envelope: Fields = {
            "id": id_,
            "agent": agent,
            "session": chance.choice((None, "dusk")),
            "turn": len(self.events),
        }
        envelope |= {"subject": chance.choice((None, None, "ann")), "at": NOON + timedelta(minutes=len(self.events))}
        more = drawn_payload(chance)
        text = f"bread {next(_numbers)}"
        drawn = chance.random()
        if entries and drawn < 0.25:
            changed = chance.choice(entries)
            envelope |= {"agent": known[changed]["agent"], "subject": None}
            if drawn < 0.05:
                kind, payload = "memory.archived", {"entry": changed}
                del known[changed]
            else:
                kind, payload = (
                    "memory.updated",
                    {"entry": changed, "metadata": more.get("metadata") or {"city": "Bern"}},
                )
                if drawn < 0.1:
                    payload["text"] = text
                known[changed] = {**known[changed], "payload": {**known[changed]["payload"], **payload}}
        elif drawn < 0.6:
            kind = "memory.retained"
            payload = {"text": text, "dedup": "off", "tier": "slow", "confidence": chance.choice((0.25, 1.0)), **more}
            payload["category"] = chance.choice(("pets", "food"))
            known[id_] = {**envelope, "kind": kind, "payload": {"type": "fact", **payload}}
        else:
            kind, payload = "agent.spoke", {"text": text, **more}
            if chance.random() < 0.5:
                payload["tags"] = chance.choices(TAGS, k=chance.randrange(3))
            known[id_] = {**envelope, "kind": kind, "payload": payload}
        self.events.append(Event(space=self.space, kind=kind, payload=payload, **envelope))
        self.after.append(known)

    def seen(self, agent: str, step: int) -> dict[str, Fields]:
        """What an agent may see after an event: its own."""
        return {id_: fields for id_, fields in self.after[step].items() if fields["agent"] == agent}


def drawn_payload(chance: random.Random) -> Fields:
    metadata: Fields = {}
    if chance.random() < 0.7:
        metadata["city"] = chance.choice(CITIES)
    if chance.random() < 0.4:
        metadata["expires"] = chance.choice(MOMENTS)
    return {"metadata": metadata} if metadata else {}


# Filters, and their naive evaluation.


def drawn_filter(chance: random.Random, depth: int = 2) -> Fields:
    found: Fields = {}
    for _ in range(chance.choice((1, 1, 2))):
        drawn = chance.random()
        if depth and drawn < 0.3:
            connective = chance.choice(("$and", "$or"))
            found[connective] = [drawn_filter(chance, depth - 1) for _ in range(chance.choice((1, 2)))]
        elif depth and drawn < 0.4:
            found["$not"] = drawn_filter(chance, depth - 1)
        else:
            name, values = chance.choice(CONDITIONS)
            found[name] = drawn_condition(chance, values)
    return found


CONDITIONS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("metadata.city", CITIES[:8]),
    ("metadata.city.of", ("Bern", "Rome")),
    (EXPIRES, MOMENTS),
    ("tags", (["vip"], *TAGS)),
    ("category", ("pets", "food")),
    ("subject", ("ann", None)),
    ("session", ("dusk", None)),
    ("confidence", (0.25, 0.5, 1)),
    ("kind", ("agent.spoke", "memory.retained")),
    ("turn", (3, 10, 30)),
    ("payload.text", ("bread 1", "1")),
)


def drawn_condition(chance: random.Random, values: tuple[Any, ...]) -> Any:
    value = chance.choice(values)
    comparable = [each for each in values if isinstance(each, int | float | str) and not isinstance(each, bool)]
    return chance.choice(
        [
            value,
            {"$eq": value},
            {"$ne": value},
            {"$in": chance.choices(values, k=2)},
            {"$nin": chance.choices(values, k=2)},
            {"$exists": chance.random() < 0.5},
            {"$contains": value},
            {"$not": {"$contains": value}},
            *({chance.choice(("$gt", "$gte", "$lt", "$lte")): each} for each in comparable[:2]),
        ]
    )


def selected(wanted: Any, memory: Fields) -> bool:
    for name, condition in wanted.items():
        if name == "$and":
            good = all(selected(each, memory) for each in condition)
        elif name == "$or":
            good = any(selected(each, memory) for each in condition)
        elif name == "$not":
            good = not selected(condition, memory)
        else:
            good = fulfils(value_of(memory, name), condition)
        if not good:
            return False
    return True


def value_of(memory: Fields, name: str) -> Any:
    payload = memory["payload"]
    places = {"tags": [["tags"], ["metadata", "tags"]]}.get(name, [name.removeprefix("payload.").split(".")])
    for place in places:
        value = memory if name in ("subject", "session", "kind", "turn") else payload
        for key in place:
            value = value[key] if isinstance(value, dict) and key in value else None
        if value is not None:
            return value
    return None


def fulfils(value: Any, condition: Any) -> bool:
    if not isinstance(condition, dict):
        return equal(value, condition)
    ((operator, wanted),) = condition.items()
    match operator:
        case "$eq":
            return equal(value, wanted)
        case "$ne":
            return not equal(value, wanted)
        case "$in":
            return any(equal(value, each) for each in wanted)
        case "$nin":
            return not any(equal(value, each) for each in wanted)
        case "$exists":
            return (value is not None) == wanted
        case "$not":
            return not fulfils(value, wanted)
        case "$contains" if isinstance(value, list):
            return any(equal(each, wanted) for each in value)
        case "$contains":
            return isinstance(value, str) and isinstance(wanted, str) and wanted in value
    numbers = type(value) in (int, float) and type(wanted) in (int, float)
    if not numbers and not (isinstance(value, str) and isinstance(wanted, str)):
        return False
    one, other = (value, wanted) if numbers else times(value, wanted)
    return {"$gt": one > other, "$gte": one >= other, "$lt": one < other, "$lte": one <= other}[operator]


def times(one: str, other: str) -> tuple[Any, Any]:
    """Both as times, if they have a zone."""
    if "T" in one and "T" in other:
        return datetime.fromisoformat(one), datetime.fromisoformat(other)
    return one, other


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(equal(*each) for each in zip(one, other, strict=True))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


# The tests.


async def check(memories: Mapping[str, Memory], story: Story, chance: random.Random) -> None:
    space, agent, wanted = story.space, chance.choice(AGENTS), drawn_filter(chance)
    step = chance.choice((len(story.events) - 1, chance.randrange(len(story.events))))
    as_of = None if step == len(story.events) - 1 else Position(0, story.offsets[step])
    if as_of is not None and chance.random() < 0.5:
        as_of = story.events[step].at  # type: ignore[assignment]
    chosen = {id_: each for id_, each in story.seen(agent, step).items() if selected(wanted, each)}
    entries = [id_ for id_, each in chosen.items() if each["kind"] == "memory.retained"]
    said = [id_ for id_ in chosen if id_ not in entries]
    few = chance.choice((1, 3))
    for how, memory in memories.items():
        case = f"{how}: {wanted} by {agent} as of {as_of} in {space}"
        at: Fields = {"as_of": as_of, "filter": wanted}
        found = await memory.recall(space, agent, "bread", top_k=1_000, **at)
        assert found.degraded is None, case
        assert sorted(hit.event.id for hit in found.hits) == sorted(chosen), case
        assert all(
            hit.event.payload.get("metadata") == chosen[hit.event.id]["payload"].get("metadata") for hit in found.hits
        )
        assert len((await memory.search(space, agent, "bread", limit=few, **at)).hits) == min(few, len(chosen)), case
        ranked = await memory.recall(space, agent, "bread", preset="hybrid", top_k=1_000, **at)
        assert {hit.event.id for hit in ranked.hits} == set(entries), case
        tiers = await memory.tiers.retrieve(space, agent, "bread", limit=1_000, min_similarity=-1, **at)
        assert {hit.entry.id for hit in tiers.hits} == set(entries), case
        assert await listed(memory, space, agent, few, **at) == entries[::-1], case
        assert await listed(memory, space, agent, few, order="priority", **at) == entries[::-1], case
        assert await of_timeline(memory, space, agent, few, **at) == said[::-1], case


async def listed(memory: Memory, space: str, agent: str, limit: int, **options: Any) -> list[str]:
    """The ids of the entries of all pages. Each but the last is full."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await memory.long_term.list(space, agent, limit=limit, cursor=cursor, **options)
        ids += [entry.id for entry in page.entries]
        cursor = page.next
        if cursor is None:
            return ids
        assert len(page.entries) == limit


async def of_timeline(memory: Memory, space: str, agent: str, limit: int, **options: Any) -> list[str]:
    """The ids of the events of all pages, newest first. Each but the last is full."""
    ids: list[str] = []
    before: Position | None = None
    while True:
        page = await memory.timeline(space, agent, limit=limit, before=before, **options)
        ids += [item.event.id for item in reversed(page.items)]
        before = page.older
        if before is None:
            return ids
        assert len(page.items) == limit


@settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_every_query_answers_what_a_naive_evaluation_selects(memories: Mapping[str, Memory], seed: int) -> None:
    chance = random.Random(seed)
    story = Story.by(chance, chance.choice((1, 12, 90)))
    story.offsets = run(publish(memories, story.events))
    for _ in range(4):
        run(check(memories, story, chance))


@settings(max_examples=4)
@given(st.integers(0, 2**32))
def test_what_the_index_has_not_processed_is_filtered_by_the_views(memories: Mapping[str, Memory], seed: int) -> None:
    chance = random.Random(seed)
    story = Story.by(chance, 30)
    story.offsets = run(publish(memories, story.events[:20])) + run(publish(memories, story.events[20:], indexed=False))
    space, agent, wanted = story.space, chance.choice(AGENTS), drawn_filter(chance)
    chosen = {id_ for id_, each in story.seen(agent, 29).items() if selected(wanted, each)}
    for how, memory in memories.items():
        found = run(memory.recall(space, agent, "bread", top_k=1_000, filter=wanted))
        assert {hit.event.id for hit in found.hits} == chosen, (how, wanted)


def test_an_index_is_read_in_parts(memories: Mapping[str, Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FILTERED_POINTS", 3)
    chance = random.Random(7)
    story = Story.by(chance, 25)
    story.offsets = run(publish(memories, story.events))
    run(check(memories, story, chance))
