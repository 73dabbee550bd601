"""Views as plain values: folded in memory, read back table by table, compared with the oracle."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from recallog.reading.read_session import ReadSession
from recallog.reading.readings import AgentReading, SpaceReading
from recallog.retrieval.searcher import Searcher
from recallog_projections.projection import Projection
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation, ReadResult, Store
from recallog_projections.tables import RowKey
from recallog_projections.views import activity, builtin, clock, episodic, outline, salience, scene, settings
from recallog_schemas import timestamps
from recallog_streams import chain, dead_letters
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from support.finishing import finish
from support.oracle import Expected

NEVER_SEEN = "stranger"
"""An agent that no event names."""
SETTINGS = tuple(settings.AgentSettings.__struct_fields__)


def ledger_at(values: Sequence[bytes], *, unique_ids: bool = True, batch_records: int = 1000) -> MemoryLedger:
    ledger = MemoryLedger(unique_ids=unique_ids, batch_records=batch_records)
    for data in values:
        ledger.append_bytes(data)
    return ledger


def folded(
    ledger: Ledger,
    projections: Sequence[Projection] | None = None,
    *,
    until: int | None = None,
    remember_until: datetime | None = None,
) -> tuple[Projector, Generation]:
    """A new generation that has processed everything below `until`, or below the ledger's end."""
    ours = builtin.projections() if projections is None else projections
    projector = Projector(ledger, MemoryStore(), ours, remember_until=remember_until)
    generation = finish(projector.store.create(projector.new_generation(0, 0))).building
    assert generation is not None
    finish(projector.catch_up(generation, finish(ledger.ends())[0] if until is None else until))
    return projector, generation


def reading_of(projector: Projector, generation: Generation, **more: Any) -> SpaceReading:
    """A reading of the generation; `more` are fields of the reading."""
    return SpaceReading(
        projector.store,
        generation.partition,
        generation,
        space="",
        ledger=projector.ledger,
        past_at=partial(_past_at, projector.ledger, more.get("as_of")),
        make_searcher=Searcher,
        **more,
    )


async def _past_at(ledger: Ledger, remember_until: datetime | None, offset: int) -> ReadSession:
    projector = Projector(ledger, MemoryStore(), builtin.projections(), remember_until=remember_until)
    generation = await projector.first_generation(0, offset + 1)
    await projector.catch_up(generation, offset + 1)
    return ReadSession(projector.store, 0, generation)


def about(reading: SpaceReading, space: str, agent: str = "") -> AgentReading:
    """The same generation, as handlers read it about an agent, or about a space."""
    names = ("ledger", "log_events", "as_of", "progress", "past_at", "make_searcher")
    of_space = {name: getattr(reading, name) for name in names}
    return AgentReading(reading.store, reading.partition, reading.source, space=space, agent=agent, **of_space)


def all_rows(projector: Projector, generation: Generation) -> dict[str, dict[tuple[str, str, str], bytes]]:
    """Every table and log of the generation."""
    return {table.name: rows_of(projector.store, generation, table.name) for table in projector.fold.tables}


def rows_of(store: Store, generation: Generation, table: str) -> dict[tuple[str, str, str], bytes]:
    items = finish(store.scan(generation, table, limit=1_000_000)).items
    found = {item.row_key: item.data for item in items}
    assert len(found) == len(items)
    return found


def dead_letter_offsets(store: Store, generation: Generation) -> list[int]:
    return [letter.offset for letter in finish(dead_letters.all_dead_letters(store, generation))]


def remembered(snapshot: ReadResult) -> list[tuple[int, bytes]]:
    """The merged entries of a read of `episodic.logs`."""
    return [(memory.offset, memory.data) for memory in episodic.merge(*snapshot.logs)]


def check_kernel_views(store: Store, generation: Generation, expected: Expected) -> None:
    """Assert that the views of the kernel in `generation` equal the oracle's, table by table and agent by agent."""
    assert dead_letter_offsets(store, generation) == expected.dead_letters
    (count,) = finish(store.read(0, [RowKey(dead_letters.COUNT.name, "")], generation=generation)).rows
    counted = dead_letters.DeadLetterCount() if count is None else dead_letters.COUNT.decode(count)
    assert (counted.total, counted.future) == (len(expected.dead_letters), len(expected.future))
    for space in [*expected.spaces, "nowhere"]:
        for agent in [*expected.agents(space), NEVER_SEEN]:
            snapshot = finish(store.read(0, logs=episodic.logs(space, agent, 10_000), generation=generation))
            assert remembered(snapshot) == expected.visible(space, agent), (space, agent)
    _check_chain(store, generation, expected)
    _check_activity(store, generation, expected)
    _check_outlines(store, generation, expected)
    _check_settings(store, generation, expected)
    _check_clocks(store, generation, expected)


def _check_chain(store: Store, generation: Generation, expected: Expected) -> None:
    checkpoint = finish(store.checkpoint(generation))
    assert checkpoint is not None
    assert checkpoint.chain == expected.chain
    ends = rows_of(store, generation, chain.BLOCKS.name)
    found = {int(key): chain.BLOCKS.decode(data).chain for (_, _, key), data in ends.items()}
    assert found == expected.blocks


def _check_activity(store: Store, generation: Generation, expected: Expected) -> None:
    for table, what in ((activity.AGENTS, "agent"), (activity.KINDS, "kind"), (activity.SESSIONS, "session")):
        spans = {place[:2]: table.decode(data) for place, data in rows_of(store, generation, table.name).items()}
        found = {place: (span.events, span.first, span.last) for place, span in spans.items()}
        assert found == expected.spans(what), what
    agents = rows_of(store, generation, activity.AGENTS.name)
    turns = {place[:2]: activity.AGENTS.decode(data).turn for place, data in agents.items()}
    assert turns == expected.last_turns()
    sessions = rows_of(store, generation, activity.SESSIONS.name)
    of_sessions = {place[:2]: activity.SESSIONS.decode(data).turn for place, data in sessions.items()}
    assert of_sessions == expected.session_turns()
    totals = [activity.TOTALS.decode(data) for data in rows_of(store, generation, activity.TOTALS.name).values()]
    found_totals = [(row.spaces, row.agents, row.sessions) for row in totals]
    assert found_totals == ([expected.totals()] if expected.counted else [])
    spaces = rows_of(store, generation, activity.SPACES.name)
    assert {place[0]: activity.SPACES.decode(data).turn for place, data in spaces.items()} == {
        space: max((event.turn for event in expected.in_space(space) if event.memorable), default=None)
        for space in expected.spaces
    }


def _check_outlines(store: Store, generation: Generation, expected: Expected) -> None:
    rows = rows_of(store, generation, outline.OUTLINES.name)
    found = {place[0]: outline.OUTLINES.decode(data) for place, data in rows.items()}
    assert {space: {each.name: each.visitor for each in row.participants} for space, row in found.items()} == {
        space: participants for space in expected.spaces if (participants := expected.participants(space))
    }
    for space, row in found.items():
        sessions = expected.sessions_of_memories(space)
        previous = next((session for session in reversed(sessions) if session != sessions[-1]), None)
        assert (row.first, row.newest, row.previous) == (sessions[0], sessions[-1], previous), space


def _check_settings(store: Store, generation: Generation, expected: Expected) -> None:
    rows = rows_of(store, generation, settings.SPACES.name)
    found = {place[0]: settings.SPACES.decode(data).shared_kinds for place, data in rows.items()}
    assert {space: kinds for space, kinds in found.items() if kinds is not None} == {
        space: tuple(sorted(set(kinds))) for space, kinds in expected.shared_kinds.items() if kinds is not None
    }
    declared = {place[0]: list(settings.SPACES.decode(data).kinds) for place, data in rows.items()}
    assert declared == {space: sorted(expected.declared.get(space, {})) for space in declared}
    scenes = {place[0]: scene.scene_kinds(settings.SPACES.decode(data)) for place, data in rows.items()}
    assert scenes == {space: tuple(expected.scene_kinds(space)) for space in scenes}
    agents = {
        place[:2]: settings.AGENTS.decode(data)
        for place, data in rows_of(store, generation, settings.AGENTS.name).items()
    }
    for space in expected.spaces:
        for agent in expected.agents(space):
            found_row = agents.pop((space, agent), settings.AgentSettings())
            wanted = {name: expected.setting(space, agent, name) for name in SETTINGS}
            assert {name: getattr(found_row, name) for name in SETTINGS} == wanted, (space, agent)
    assert agents == {}


def _check_clocks(store: Store, generation: Generation, expected: Expected) -> None:
    rows = rows_of(store, generation, salience.CLOCK.name)
    found = {place[0]: salience.CLOCK.decode(data).turn for place, data in rows.items()}
    assert found == {space: expected.clock(space) for space in expected.spaces}
    times = rows_of(store, generation, clock.NOW.name)
    decoded = {place[:2]: clock.NOW.decode(data) for place, data in times.items()}
    now = {place: timestamps.moment_of(row.at) for place, row in decoded.items() if row.offset >= 0}
    assert now == {(space, agent): at for space in expected.spaces for agent, at in expected.times(space).items()}
