"""The lineage of summaries of conversations: the messages that a compaction has replaced."""

from collections.abc import Iterable, Mapping, Sequence

from recallog.models.conversations.reading import rows_of
from recallog.queries.lineage import LineageSource
from recallog.reading.readings import AgentReading
from recallog_projections.models.conversations import rendering, tables
from recallog_projections.models.conversations.tables import ConversationKey
from recallog_projections.tables import RowKey
from recallog_schemas import Event, limits


class ConversationLineage(LineageSource):
    """The newest summary of each conversation of the agent, and the newest messages that it covers."""

    def __init__(self) -> None:
        self._covered: dict[str, tuple[str, Sequence[str]]] = {}
        """By session, the id of the summary ("" without one), and the ids of the messages that it covers, oldest
        first."""

    async def find_sources(self, reading: AgentReading, events: Sequence[Event]) -> Mapping[str, Sequence[str]]:
        sessions = {each.id: each.payload["session"] for each in events if each.kind == rendering.COMPACTION}
        await self._read(reading, sessions.values())
        return {id_: self._covered[session][1] for id_, session in sessions.items()}

    async def find_products(self, reading: AgentReading, events: Sequence[Event]) -> Mapping[str, Sequence[str]]:
        sessions = {each.id: each.session for each in events if each.session is not None}
        await self._read(reading, sessions.values())
        covered = {id_: self._covered[session] for id_, session in sessions.items()}
        return {id_: [summary] for id_, (summary, messages) in covered.items() if id_ in messages}

    async def _read(self, reading: AgentReading, sessions: Iterable[str]) -> None:
        for session in {*sessions} - self._covered.keys():
            conversation = ConversationKey(reading.space, reading.agent, session)
            key = RowKey(tables.COMPACTIONS.name, *conversation)
            row = (await reading.snapshot([key])).row(tables.COMPACTIONS, *conversation)
            messages: list[str] = []
            if row is not None:
                async for each in rows_of(reading, conversation, newest_first=True):
                    if each.offset <= row.upto and each.role not in rendering.INSTRUCTIONS:
                        messages.append(each.id)
                    if len(messages) == limits.LINEAGE_IDS:
                        break
            self._covered[session] = "" if row is None else row.id, messages[::-1]


LINEAGE = ConversationLineage
