"""The blocks of working memory that recall finds: those of agents whose setting `working.include_in_rag` says so."""

import hashlib
from collections.abc import Sequence

from recallog.models.long_term.candidates import standing_for
from recallog.models.working.blocks import WORKING, content_of, rows_of
from recallog.reading.read_session import ReadSession
from recallog_projections.models.items.projection import ItemRow
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.views.settings import AgentSettings
from recallog_schemas.kinds import WorkingSettings

BLOCK = "block"
"""The type of the entries that stand for blocks."""


async def included(reading: ReadSession, space: str, agent: str, own: AgentSettings | None) -> Sequence[EntryRow]:
    """The blocks of `agent`, each as an entry that says its label and its content; none if `own` excludes them."""
    set_to = None if own is None or own.working is None else WorkingSettings.model_validate(own.working)
    if set_to is None or not (set_to.enabled and set_to.include_in_rag):
        return ()

    async def read(session: ReadSession) -> Sequence[EntryRow]:
        _, found = await rows_of(session, space, agent, WORKING, None)
        return [_as_entry(space, agent, label, row) for label, row in found.items()]

    return await reading.steady(read)


def _as_entry(space: str, agent: str, label: str, row: ItemRow) -> EntryRow:
    digest = hashlib.blake2b(f"{agent}\n{label}".encode(), digest_size=16).hexdigest()
    return standing_for(
        space,
        agent,
        f"{BLOCK}/{digest}",
        row.offset,
        row.at,
        text=f"{label}: {content_of(row)}",
        type=BLOCK,
        source=f"{agent}_working_memory",
        version=row.version,
    )
