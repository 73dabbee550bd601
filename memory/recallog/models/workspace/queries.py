"""Search in the documents of a workspace: recall that searches only documents."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from recallog import retrieval
from recallog.reading.readings import AgentReading
from recallog.retrieval.channels import KEYWORD, LATE_INTERACTION, SEMANTIC, Channel
from recallog.retrieval.query import RecallQuery
from recallog_schemas.models.workspace.views import WorkspaceHit, WorkspaceHits
from recallog_schemas.views import RecallHit

Mode = Literal["hybrid", "fts", "semantic"]
HYBRID: Mode = "hybrid"
CHANNELS: Mapping[Mode, frozenset[Channel]] = {
    HYBRID: frozenset({SEMANTIC, KEYWORD, LATE_INTERACTION}),
    "fts": frozenset({KEYWORD}),
    "semantic": frozenset({SEMANTIC}),
}
"""By mode: the channels that score the parts of documents."""
_OFF = "the index is off"
_NO_VECTORS = "its model cannot read the query, or the index has no part of these documents yet"


def mode_of(text: str) -> Mode:
    """The mode with this name; hybrid for any other text."""
    return next((mode for mode in CHANNELS if mode == text), HYBRID)


async def search(reading: AgentReading, text: str, mode: Mode, limit: int) -> WorkspaceHits:
    """The parts of documents that match a query best. Without vectors, words are compared in every mode."""
    query = RecallQuery.create(
        reading.space,
        reading.agent,
        text,
        reading.as_of,
        top_k=limit,
        memories=False,
        documents=True,
        channels=CHANNELS[mode],
    )
    found = await retrieval.recall.recall(reading, query)
    degraded = found.degraded
    if mode == "semantic" and SEMANTIC not in found.channels:
        by_words = replace(query, channels=CHANNELS["fts"])
        found = await retrieval.recall.recall(reading.without_index(), by_words)
        if degraded is None and found.hits:
            degraded = f"only words were compared: {_OFF if reading.searcher.index is None else _NO_VECTORS}"
    shared = {name: getattr(found, name) for name in WorkspaceHits.model_fields if name in type(found).model_fields}
    hits = tuple(_hit(each) for each in found.hits)
    return WorkspaceHits(**{**shared, "hits": hits, "degraded": degraded}, mode=mode, limit=limit)


def _hit(found: RecallHit) -> WorkspaceHit:
    first, last = found.lines or (1, 1)
    title, _, text = found.text.partition("\n")
    return WorkspaceHit(
        key=found.event.payload["key"],
        first=first,
        last=last,
        title=title,
        text=text,
        quote=found.quote.removeprefix(f"{title}\n"),
        score=found.score,
        similarity=found.similarity,
        source=found.source,
        weak=found.weak,
        at=found.at,
        position=found.position,
    )
