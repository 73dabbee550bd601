"""The candidate source of a memory model whose kept texts are hits as they are."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from recallog.reading.filters import Passes
from recallog.reading.read_session import Snapshot
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.sources import CandidateSource, ShownText, SourceQuery
from recallog_projections.index import text_documents
from recallog_projections.index.kept_text import KeptText


class TextCandidates(CandidateSource):
    """Finds the texts of a model for one query, by the documents of `TextDocuments` or by their words."""

    def __init__(self, kind: str, read: Callable[[str, str], Awaitable[Sequence[KeptText]]]) -> None:
        """`kind` is the kind of the texts. `read` returns the texts of a space that an agent may read, as they were at
        the time that the query is about."""
        self.kind = kind
        self._read = read
        self._texts: Mapping[int, KeptText] | None = None

    def has_texts(self, snapshot: Snapshot, space: str) -> bool:
        return True

    async def read(self, asked: SourceQuery, found: Sequence[Candidate]) -> Mapping[int, KeptText]:
        texts = await self._by_offset(asked)
        return {each.offset: texts[each.offset] for each in found if each.offset in texts}

    def point_of(self, text: KeptText) -> str:
        return text_documents.point_of(text)

    async def points(self, asked: SourceQuery, has_fields: Passes) -> Collection[str]:
        texts = (await self._by_offset(asked)).values()
        return [text_documents.point_of(text) for text in texts if has_fields(text.event)]

    async def newer(self, asked: SourceQuery, known: Collection[int]) -> Sequence[KeptText]:
        return [text for offset, text in (await self._by_offset(asked)).items() if offset not in known]

    def show(self, text: KeptText) -> ShownText:
        return ShownText(text.event, text.text, text.offset)

    async def _by_offset(self, asked: SourceQuery) -> Mapping[int, KeptText]:
        if self._texts is None:
            agent = asked.query.agent
            found = await self._read(asked.query.space, agent)
            self._texts = {text.offset: text for text in found if text.is_shown_to(agent)}
        return self._texts
