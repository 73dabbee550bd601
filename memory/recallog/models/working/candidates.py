"""The blocks of working memory that recall finds: blocks of agents with the setting `working.include_in_rag`."""

import hashlib
from collections.abc import Collection, Iterable, Sequence

from recallog.models.working.blocks import WORKING, content_of, rows_of
from recallog.reading.read_session import ReadSession
from recallog.retrieval.query import RecallQuery
from recallog.retrieval.sources import CandidateSource, PlainText, ShownText, SourceQuery
from recallog_projections.models.items.projection import ItemRow
from recallog_projections.models.long_term.linking import NORMAL
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_schemas import Event
from recallog_schemas.kinds import WorkingSettings
from recallog_schemas.models.long_term.kinds import RETAINED
from recallog_schemas.timestamps import moment_of

TYPE = "block"
"""The type that recall gives to blocks."""


class BlockCandidates(CandidateSource):
    """Finds blocks by their words."""

    def rows(self, query: RecallQuery) -> Iterable[RowKey]:
        return [RowKey(settings.AGENTS.name, query.space, query.agent)]

    async def newer(self, asked: SourceQuery, known: Collection[int]) -> Sequence[PlainText]:
        space, agent = asked.query.space, asked.query.agent
        own = asked.snapshot.row(settings.AGENTS, space, agent)
        set_to = None if own is None or own.working is None else WorkingSettings.model_validate(own.working)
        if set_to is None or not (set_to.enabled and set_to.include_in_rag):
            return ()

        async def read(session: ReadSession) -> Sequence[PlainText]:
            _, found = await rows_of(session, space, agent, WORKING, None)
            return [_text_of(space, agent, label, row) for label, row in found.items()]

        return await asked.reading.steady(read)

    def show(self, text: PlainText) -> ShownText:
        """The block as the event that would retain it."""
        digest = hashlib.blake2b(f"{text.owner}\n{text.details}".encode(), digest_size=16).hexdigest()
        event = Event(
            id=f"{TYPE}/{digest}",
            space=text.space,
            agent=text.owner,
            kind=text.kind,
            turn=text.turn,
            at=moment_of(text.at),
            payload={
                "text": text.text,
                "type": text.type,
                "importance": text.importance,
                "confidence": 1.0,
                "priority": NORMAL,
                "source": f"{text.owner}_working_memory",
            },
        )
        return ShownText(event, text.text, text.offset)


SOURCE = BlockCandidates()


def _text_of(space: str, agent: str, label: str, row: ItemRow) -> PlainText:
    """A block as its label and its content."""
    return PlainText(
        space=space,
        owner=agent,
        offset=row.offset,
        at=row.at,
        kind=RETAINED,
        type=TYPE,
        text=f"{label}: {content_of(row)}",
        version=row.version,
        details=label,
    )
