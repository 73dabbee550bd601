"""Entries in recall. The rows of the views alone determine their content and their readers.

The index finds entries in the form that it has processed. They are compared with the rows: an entry that has ended, or
that the agent may not read, is dropped, and an entry with a newer text is compared by words.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from recallog.models.long_term import additions, entry_presence, live_entries, presets, standing
from recallog.reading.filters import Passes
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.channels import PRESETS
from recallog.retrieval.query import RecallQuery
from recallog.retrieval.sources import CandidateSource, ShownText, SourceQuery
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term.documents import point_id_of
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.tables import RowKey
from recallog_schemas.views import RecallHit, RecallView


class EntryCandidates(CandidateSource):
    """Finds entries by meaning and words if the index has them, and the newest other entries by words."""

    kind = entry_reading.KIND
    hidden = (entry_reading.CAPTURED,)
    presets = tuple(PRESETS)

    def rows(self, query: RecallQuery) -> Iterable[RowKey]:
        return entry_presence.rows(query.space)

    def has_texts(self, snapshot: Snapshot, space: str) -> bool:
        return entry_presence.has_entries(snapshot, space)

    async def read(self, asked: SourceQuery, found: Sequence[Candidate]) -> Mapping[int, EntryRow]:
        addresses = [(each.agent, each.offset) for each in found]
        return await live_entries.at(asked.reading, asked.query.space, asked.query.agent, addresses)

    def point_of(self, text: EntryRow) -> str:
        return point_id_of(text)

    async def points(self, asked: SourceQuery, has_fields: Passes) -> Collection[str]:
        if not self.has_texts(asked.snapshot, asked.query.space):
            return ()
        rows = await live_entries.passing(asked.reading, asked.query.space, asked.query.agent, has_fields)
        return [point_id_of(row) for row in rows]

    async def newer(self, asked: SourceQuery, known: Collection[int]) -> Sequence[EntryRow]:
        query, index, snapshot = asked.query, asked.index, asked.snapshot
        if query.at_until is None and entry_presence.are_as_at(snapshot, query.space, asked.index_checkpoint):
            return ()
        if not self.has_texts(snapshot, query.space):
            return ()
        rows = await live_entries.newest(asked.reading, query.space, query.agent, has_fields=query.has_fields)
        # A captured call of a tool is found as its event.
        rows = [row for row in rows if row.offset not in known and not row.captured]
        if index is None or index.checkpoint < snapshot.processed:
            return rows
        # The index has the past forms too, unless there were too many.
        stored = await index.engine.retrieve(index.collection, [point_id_of(row) for row in rows], payload=())
        return [row for row in rows if point_id_of(row) not in stored]

    async def in_tiers(self, asked: SourceQuery, texts: Sequence[EntryRow]) -> Collection[int]:
        return [row.offset for row in await additions.in_tiers(asked.reading, texts, asked.query.tiers)]

    def show(self, text: EntryRow) -> ShownText:
        event = entry_reading.event_of(text)
        return ShownText(event, event.text, text.offset)

    async def mark(
        self, reading: AgentReading, query: RecallQuery, hits: Sequence[RecallHit], texts: Mapping[int, EntryRow]
    ) -> Sequence[RecallHit]:
        return await standing.mark_standing(reading, query, hits, texts)

    async def recall(self, reading: AgentReading, query: RecallQuery) -> RecallView:
        return await presets.recall(reading, query)


SOURCE = EntryCandidates()
