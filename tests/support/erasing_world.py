"""Histories with erasures, by a seed, in a folder of real files: two memories publish, plan, react, ask and erase.

After each erasure two oracles say what must be left. A ledger in memory that has the same records with blank payloads
gives the same answers to everybody. And for the projections of models an erased event has not happened: they have the
rows that they have of a ledger in which an event of a kind that they do not know is in its place.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recallog import Memory, Settings
from recallog_projections.views import builtin
from recallog_schemas import Event, codec, rules, sealing
from recallog_schemas.errors import SourcesErased
from recallog_schemas.sealing import Unit
from recallog_streams.ledgers.memory import MemoryLedger
from support.copied import answers_of, memory_of
from support.folding import all_rows, folded
from support.random_entries import AGENTS, WorldEvents
from support.random_events import SPACES

SUBJECTS = (None, None, "alice", "bob", "Chloé")
_UNKNOWN = "blank.event"
"""A kind that no projection of a model names."""


class ErasingWorld:
    """All randomness comes from one generator: a seed repeats a run."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.settings = Settings(
            home=folder,
            ledger=None,
            views=None,
            index="off",
            seal=self.rng.choice(("subjects", "subjects", "all")),
            count_accesses=False,
        )
        self.events = WorldEvents(self.rng)
        self.events.kept = self.rng.choice((0.0, 0.5, 0.9))
        self.published: dict[tuple[str, str], Event] = {}
        self.must_be_gone: set[tuple[str, str]] = set()
        """The events of the units that were erased."""
        self.erasures = 0

    def run(self) -> None:
        """Run it to its end. Raises `AssertionError`."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with Memory.open(self.settings) as memory, Memory.open(self.settings) as other:
            now = datetime(2026, 3, 1, tzinfo=UTC)
            for _ in range(self.rng.randrange(1, 4)):
                now += timedelta(hours=self.rng.choice((1, 30)))
                await self._live(memory, now)
                await self._ask(other)
                await self._erase(*self.rng.sample((memory, other), 2))
                await self._check(memory)
            await self._check_answers(other)
            report = await other.admin.verify()
            assert report.clean, report.format()

    async def _live(self, memory: Memory, now: datetime) -> None:
        rng = self.rng
        events = [self._about_somebody(self.events.event()) for _ in range(rng.randrange(1, 50))]
        events = [each for each in events if (each.space, each.id) not in self.published]
        try:
            await memory.publish_many(events)
        except SourcesErased:
            events = [each for each in events if await _published(memory, each)]
        self.published |= {(each.space, each.id): rules.with_newest_rule(each) for each in events}
        for agent in AGENTS:
            if rng.random() < 0.3:
                await memory.tiers.consolidate(rng.choice(SPACES), agent, now=now)
        if rng.random() < 0.5:
            await memory.react()

    def _about_somebody(self, event: Event) -> Event:
        return event.model_copy(update={"subject": self.rng.choice(SUBJECTS)})

    async def _ask(self, memory: Memory) -> None:
        """Questions of another process: it has views and keys in its caches."""
        for space in SPACES:
            await memory.episodic(space, self.rng.choice(AGENTS))

    async def _erase(self, memory: Memory, other: Memory) -> None:
        """Erase a unit, sometimes twice at the same time, and publish some of what is erased again."""
        unit = self._unit()
        before = {key for key, event in self.published.items() if unit in sealing.units_of(event, "all")}
        if unit.kind == "space":
            before = {key for key in self.published if key[0] == unit.space}
        calls = [self._erasing(memory, unit)]
        calls += [self._erasing(other, unit)] if self.rng.random() < 0.3 else []
        await asyncio.gather(*calls)
        self.erasures += 1
        self.must_be_gone |= {key for key in before if self._was_sealed(self.published[key])}
        events = [codec.decode(data) async for data, _ in _records_of(memory)]
        gone = sorted((each.space, each.id) for each in events if each.is_erased)
        again = [self.published[key] for key in self.rng.sample(gone, min(5, len(gone))) if key in self.published]
        if again:
            end = await memory.admin.ledger_ends()
            await other.publish_many(again)
            assert await memory.admin.ledger_ends() == end, "a repeat of an erased event was written"

    async def _erasing(self, memory: Memory, unit: Unit) -> None:
        subject, entry = (unit.name if unit.kind == kind else None for kind in ("subject", "entry"))
        await memory.erase(unit.space, subject=subject, entry=entry, all=unit.kind == "space")

    def _unit(self) -> Unit:
        space, draw = self.rng.choice(SPACES), self.rng.random()
        if draw < 0.1:
            return Unit(space, "space", "")
        entries = [
            unit
            for event in self.published.values()
            for unit in sealing.units_of(event)
            if unit.kind == "entry" and unit.space == space
        ]
        if draw < 0.4 and entries:
            return self.rng.choice(entries)
        return Unit(space, "subject", self.rng.choice(("alice", "bob", "Chloé", "nobody")))

    def _was_sealed(self, event: Event) -> bool:
        return bool(sealing.units_of(event, self.settings.seal))

    async def _check(self, memory: Memory) -> None:
        values = [(data, time) async for data, time in _records_of(memory)]
        self._check_records([data for data, _ in values])
        assert _rows_of_models(values, replaces=False) == _rows_of_models(values, replaces=True)

    async def _check_answers(self, memory: Memory) -> None:
        blank = MemoryLedger()
        async for data, time in _records_of(memory):
            blank.append_bytes(data, codec.decode(data).space, time)
        async with memory_of(blank) as expected:
            for space in sorted({row.space for row in (await memory.spaces()).items}):
                assert await answers_of(memory, space) == await answers_of(expected, space)

    def _check_records(self, values: Sequence[bytes]) -> None:
        """Whether what was erased is gone, and all else, but what was made of it, is as it was published."""
        events = {(event.space, event.id): event for event in map(codec.decode, values)}
        assert self.published.keys() <= events.keys()
        gone = {key for key, event in events.items() if event.is_erased}
        assert self.must_be_gone <= gone
        assert all(not events[key].payload for key in gone)
        for key in self.published.keys() - gone:
            assert codec.encode(events[key]) == codec.encode(self.published[key])
        for key in (gone & self.published.keys()) - self.must_be_gone:
            assert self._may_be_made_from_others(self.published[key]), self.published[key]

    def _may_be_made_from_others(self, event: Event) -> bool:
        """Whether it names an event or an entry that it is made from, or about."""
        return bool(sealing.units_of(event)) or not {*event.payload}.isdisjoint({"sources", "based_on"})


async def _published(memory: Memory, event: Event) -> bool:
    """Publish an event, unless it names one that is erased as its source."""
    try:
        await memory.publish(event)
    except SourcesErased:
        return False
    return True


async def _records_of(memory: Memory) -> AsyncIterator[tuple[bytes, int]]:
    """The clear bytes of all records, and when they were first appended."""
    async for batch in memory.admin.records():
        for number, (_, data) in enumerate(batch.records):
            yield data, batch.time_of(number)


def _rows_of_models(
    values: Sequence[tuple[bytes, int]], *, replaces: bool
) -> dict[str, dict[tuple[str, str, str], bytes]]:
    """The rows of the projections that name kinds, of a ledger with these records."""
    ledger = MemoryLedger()
    for data, time in values:
        event = codec.decode(data)
        stored = _in_place_of(event) if replaces and event.is_erased else data
        ledger.append_bytes(stored, event.space, time)
    projections = builtin.projections()
    named = {table.name for each in projections if _names_kinds(each) for table in each.tables}
    projector, generation = folded(ledger, projections)
    return {name: rows for name, rows in all_rows(projector, generation).items() if name in named}


def _names_kinds(projection: object) -> bool:
    return getattr(projection, "kinds", None) is not None


def _in_place_of(event: Event) -> bytes:
    fields = json.loads(codec.encode(event))
    return json.dumps(fields | {"envelope": 1, "kind": _UNKNOWN, "payload": {}}).encode()
