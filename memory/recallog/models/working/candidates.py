"""The blocks of working memory that recall finds: those of agents whose setting `working.include_in_rag` says so."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from recallog.models.working.blocks import WORKING, content_of, rows_of
from recallog.reading.read_session import ReadSession
from recallog.retrieval.query import RecallQuery
from recallog.retrieval.sources import Asked, CandidateSource, Shown
from recallog_projections.models.items.projection import ItemRow
from recallog_projections.models.long_term.linking import NORMAL
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_schemas import Event, kinds
from recallog_schemas.kinds import WorkingSettings
from recallog_schemas.timestamps import moment_of


@dataclass(frozen=True, slots=True)
class Block:
    """A block as a text of recall: its label and its content."""

    space: str
    owner: str
    label: str
    row: ItemRow
    session: None = None
    turn: int = 0
    kind: str = kinds.RETAINED
    type: str = "block"
    importance: float = kinds.DEFAULT_IMPORTANCE

    @property
    def offset(self) -> int:
        return self.row.offset

    @property
    def at(self) -> int:
        return self.row.at

    @property
    def version(self) -> int:
        return self.row.version

    @property
    def text(self) -> str:
        return f"{self.label}: {content_of(self.row)}"

    @property
    def event(self) -> Event:
        """The event that would retain the block as an entry."""
        digest = hashlib.blake2b(f"{self.owner}\n{self.label}".encode(), digest_size=16).hexdigest()
        return Event(
            id=f"{self.type}/{digest}",
            space=self.space,
            agent=self.owner,
            kind=self.kind,
            turn=self.turn,
            at=moment_of(self.at),
            payload={
                "text": self.text,
                "type": self.type,
                "importance": self.importance,
                "confidence": 1.0,
                "priority": NORMAL,
                "source": f"{self.owner}_working_memory",
            },
        )


class BlockCandidates(CandidateSource):
    """Finds blocks by their words."""

    def rows(self, query: RecallQuery) -> Iterable[RowKey]:
        return [RowKey(settings.AGENTS.name, query.space, query.agent)]

    async def newer(self, asked: Asked, known: Collection[int]) -> Sequence[Block]:
        space, agent = asked.query.space, asked.query.agent
        own = asked.snapshot.row(settings.AGENTS, space, agent)
        set_to = None if own is None or own.working is None else WorkingSettings.model_validate(own.working)
        if set_to is None or not (set_to.enabled and set_to.include_in_rag):
            return ()

        async def read(session: ReadSession) -> Sequence[Block]:
            _, found = await rows_of(session, space, agent, WORKING, None)
            return [Block(space, agent, label, row) for label, row in found.items()]

        return await asked.reading.steady(read)

    def shown(self, text: Block) -> Shown:
        return Shown(text.event, text.text, text.offset)


SOURCE = BlockCandidates()
