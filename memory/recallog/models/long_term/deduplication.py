"""Near-duplicates: entries of an agent that state the same in other words, found on request or by a reactor.

Both apply one rule: two texts agree in all words that may matter (`agreement`), and are similar. An archived entry
names the entry that stays, and can be restored.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, ClassVar

import msgspec

from recallog.access import MemoryAccess
from recallog.commands.making import make_event
from recallog.models.long_term import live_entries, standing
from recallog.models.long_term.agreement import agree, words_of
from recallog.models.long_term.entry_lookup import entries_by_id
from recallog.models.long_term.similar import SimilarEntries, compared_by, similar_to_each
from recallog.operations.parameters import At
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog.reading.read_session import ReadSession
from recallog.reading.readings import AgentReading, SpaceReading
from recallog_projections.models.long_term import tables, texts
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.tables import RowKey
from recallog_schemas import Event, Position, limits
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.models.long_term.triggers import DEDUPLICATION
from recallog_schemas.models.long_term.views import Deduplicated, NearDuplicate
from recallog_streams.progress import Progress

_NEAREST = 8
"""The number of entries that are compared with one because they are similar."""
_COMPARED_ROWS = 32
"""The number of entries that are compared at a time: their texts are embedded together."""


class Deduplication(Reactor):
    """Answers `deduplication.due` by merging one new entry with its near-duplicates, as `deduplicate` does.

    It compares the entry with the few that are most similar to it. If the model cannot read its text, it compares it
    with the newest entries of its type. If the index is off, the answer has no events.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({DEDUPLICATION})

    def __init__(self, access: MemoryAccess) -> None:
        self._access = access

    async def answer(self, trigger: DueTrigger) -> Sequence[Event]:
        if self._access.components.index is None:
            return []
        space, agent = trigger.space, trigger.agent
        found = await self._access.memory.long_term.deduplicate(space, agent, of=list(trigger.entries))
        like_cause = {"at": trigger.at, "turn": trigger.turn, "session": trigger.session}
        return await self._access.of_space(space, At(), _merging, found.proposed, like_cause)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The entries to compare, and the near-duplicates to archive."""

    of: Collection[str] | None
    """The entries whose near-duplicates are wanted; None: all."""
    apply: bool
    """Whether near-duplicates are archived."""
    only: Collection[str] | None
    """The ids that may be archived; None: all that are found."""


async def deduplicate(
    access: MemoryAccess, space: str, agent: str, chosen: Chosen, progress: Progress | None
) -> Deduplicated:
    """Find the near-duplicates among the live entries of an agent, or of some of them, and archive them on request.

    Near-duplicates agree in all words that may matter (`agreement`), and are similar; texts that the model cannot read
    have the same words. An entry that a later one supersedes is left alone. Of two facts the newer stays, and of other
    entries the older. The one that stays takes over the stronger priority.

    Raises `SettingsError` if the index is off, and `IndexUnavailable`.
    """
    access.components.require_index()
    rows = await access.of_agent(space, agent, At(), _compared_rows, chosen.of)
    found = await _near_duplicates(access, rows, progress, chosen.of is None)
    proposed = [pair for pair in found if chosen.only is None or pair.archived in chosen.only]
    position: Position | None = None
    events = await access.of_space(space, At(), _merging, proposed, {}) if chosen.apply else []
    for start in range(0, len(events), limits.APPEND_EVENTS_MAX):
        position = (await access.append(events[start : start + limits.APPEND_EVENTS_MAX]))[-1]
    return Deduplicated(
        proposed=tuple(proposed),
        merged=tuple(event.payload["entry"] for event in events if event.kind == "memory.archived"),
        compared=len(rows),
        position=position,
    )


async def _near_duplicates(
    access: MemoryAccess, rows: Sequence[EntryRow], progress: Progress | None, are_all: bool
) -> list[NearDuplicate]:
    """The pairs of near-duplicates, in the order in which they can be merged: a pair does not contain an entry that an
    earlier pair archives.

    A text that the model cannot read is compared with `rows` if they `are_all`, else with the newest of its type.
    """
    pairs: list[NearDuplicate] = []
    gone = set[str]()
    unread: dict[object, list[EntryRow]] = {}

    def add(row: EntryRow, near: EntryRow, similarity: float | None) -> None:
        kept, archived = _kept_first(row, near)
        if gone.isdisjoint((row.id, near.id)) and not archived.red_line and agree(row.text, near.text):
            gone.add(archived.id)
            named = {"kept": kept.id, "archived": archived.id, "similarity": similarity}
            pairs.append(NearDuplicate(**named, kept_text=kept.text, archived_text=archived.text))

    for first in range(0, len(rows), _COMPARED_ROWS):
        part = rows[first : first + _COMPARED_ROWS]
        owner = part[0].owner
        for number, row, similar_rows in await access.of_agent(part[0].space, owner, At(), _similar_to, part):
            if progress is not None:
                progress(first + number, len(rows))
            if not similar_rows.readable:
                unread.setdefault(_by_words(row), []).append(row)
            for near, similarity in similar_rows.found:
                if _is_near(row, near, similarity):
                    add(row, near, similarity)
    for words, alike in unread.items():
        compared = combinations(alike, 2) if are_all else product(alike, await _newest_like(access, alike[0]))
        for row, near in compared:
            if row.offset != near.offset and _by_words(near) == words:
                add(row, near, None)
    return pairs


async def _newest_like(access: MemoryAccess, row: EntryRow) -> list[EntryRow]:
    wanted, most = live_entries.WantedEntries(row.type), long_term_limits.RECALL_ENTRIES
    page = await access.of_space(row.space, At(), live_entries.page_of, row.space, row.owner, wanted, None, most)
    return await access.of_space(row.space, At(), _live, [each for _, each in page.items])


def _by_words(row: EntryRow) -> object:
    """A key that near-duplicates share if the model cannot read them."""
    return words_of(row.text), row.type, compared_by(row)


async def _live(reading: ReadSession, rows: Sequence[EntryRow]) -> list[EntryRow]:
    """The current rows of entries that are live, still have the same text, and are not superseded."""
    keys = [RowKey(tables.ROWS.name, row.space, row.owner, tables.key_of(row.offset)) for row in rows]
    snapshot = await reading.snapshot(keys)
    now = [(before, snapshot.row(tables.ROWS, *key[1:])) for before, key in zip(rows, keys, strict=True)]
    live = [row for before, row in now if row is not None and row.version == before.version]
    places = await standing.places_of(reading, live)
    return [row for row in live if places[row.offset].now is None]


async def _similar_to(reading: AgentReading, rows: Sequence[EntryRow]) -> list[tuple[int, EntryRow, SimilarEntries]]:
    """The entries among `rows`, all of one agent, that are live now: their indexes, rows and similar entries."""
    live = {row.offset: row for row in await _live(reading, rows)}
    numbers = [number for number, row in enumerate(rows) if row.offset in live]
    found = await similar_to_each(
        reading,
        list(live.values()),
        least=long_term_limits.SIMILARITY_OF_ENTRIES,
        limit=_NEAREST,
    )
    near = await _live(reading, [each.row for one in found for each in one.found])
    present = {row.offset for row in near}
    found = [one._replace(found=[each for each in one.found if each.row.offset in present]) for one in found]
    return [(number, row, each) for number, row, each in zip(numbers, live.values(), found, strict=True)]


_PRIORITIES = ("low", "normal", "important", "critical", "pinned")


def _kept_first(one: EntryRow, other: EntryRow) -> tuple[EntryRow, EntryRow]:
    """(the one of two near-duplicates that stays, the other). A red-lined entry stays, else the newer fact or the older
    entry of another type."""
    older, newer = sorted((one, other), key=lambda each: each.offset)
    kept, archived = (newer, older) if one.type == "fact" else (older, newer)
    return (archived, kept) if archived.red_line and not kept.red_line else (kept, archived)


async def _merging(reading: SpaceReading, pairs: Sequence[NearDuplicate], envelope: Mapping[str, Any]) -> list[Event]:
    """For each pair whose entries are live and still have their texts: the events that archive one, and give the other
    the stronger priority of both. A pin is released before it is given again."""
    texts_of = {each.kept: each.kept_text for each in pairs} | {each.archived: each.archived_text for each in pairs}
    found = await entries_by_id(reading, reading.space, texts_of)
    live = (each.row for each in found.values() if each.row is not None and each.ref.status == tables.LIVE)
    rows = {row.id: row for row in live if row.text == texts_of[row.id]}
    events: list[Event] = []
    for kept, archived in ((rows.get(pair.kept), rows.get(pair.archived)) for pair in pairs):
        if kept is None or archived is None or archived.red_line:
            continue
        merged = {"entry": archived.id, "duplicate_of": kept.id, "reason": f"duplicate of {kept.id}"}
        events.append(make_event(kept.space, kept.owner, "memory.archived", merged, **envelope))
        priority = max(kept.priority, archived.priority, key=_PRIORITIES.index)
        if priority != kept.priority:
            rows[kept.id] = msgspec.structs.replace(kept, priority=priority)
            changed = {"entry": kept.id, "priority": priority}
            events.append(make_event(kept.space, kept.owner, "memory.updated", changed, **envelope))
    return events


def _is_near(one: EntryRow, other: EntryRow, similarity: float) -> bool:
    most = long_term_limits.SIMILARITY_OF_FACTS if one.type == "fact" else long_term_limits.SIMILARITY_OF_ENTRIES
    return similarity > most and compared_by(one) == compared_by(other)


async def _compared_rows(reading: AgentReading, of: Collection[str] | None) -> list[EntryRow]:
    if of is None:
        rows = [row for _, row in await reading.every(tables.ROWS, reading.space, reading.agent)]
    else:
        found = (await entries_by_id(reading, reading.space, of)).values()
        rows = [each.row for each in found if each.row is not None and each.ref.status == tables.LIVE]
    return [row for row in rows if row.owner == reading.agent and row.type not in texts.NEVER_DEDUPLICATED]
