"""The blocks of working memory that recall finds: those of agents whose setting `working.include_in_rag` says so."""

import hashlib
from collections.abc import Sequence

from recallog.reading.read_session import ReadSession
from recallog_projections.tables import RowKey
from recallog_projections.views import items
from recallog_projections.views.entries.linking import NORMAL
from recallog_projections.views.entries.tables import EntryRow
from recallog_projections.views.items import ItemRow
from recallog_projections.views.settings import AgentSettings
from recallog_schemas import kinds, limits
from recallog_schemas.kinds import WorkingSettings
from recallog_schemas.views.base import shown_json

BLOCK = "block"
"""The type of the entries that stand for blocks."""
_NAMESPACE = (items.WORKING,)


async def included(reading: ReadSession, space: str, agent: str, own: AgentSettings | None) -> Sequence[EntryRow]:
    """The blocks of `agent`, each as an entry that says its label and its content; none if `own` excludes them."""
    set_to = None if own is None or own.working is None else WorkingSettings.model_validate(own.working)
    if set_to is None or not (set_to.enabled and set_to.include_in_rag):
        return ()
    return await reading.steady(lambda session: _blocks(session, space, agent))


async def _blocks(session: ReadSession, space: str, agent: str) -> list[EntryRow]:
    prefix = items.prefix_of(_NAMESPACE)
    listing = await session.snapshot([RowKey(items.NAMESPACES.name, space, agent, prefix)])
    listed = listing.row(items.NAMESPACES, space, agent, prefix)
    paths = {} if listed is None else {label: items.path_of(_NAMESPACE, label) for label in listed.keys}
    if not paths:
        return []
    found = await session.snapshot([RowKey(items.ROWS.name, space, agent, path) for path in paths.values()])
    rows = {label: found.row(items.ROWS, space, agent, path) for label, path in paths.items()}
    return [_as_entry(space, agent, label, row) for label, row in rows.items() if row is not None]


def _as_entry(space: str, agent: str, label: str, row: ItemRow) -> EntryRow:
    digest = hashlib.blake2b(f"{agent}\n{label}".encode(), digest_size=16).hexdigest()
    content = shown_json(items.value_of(row))[: limits.WORKING_BLOCK_CHARS_MAX]
    return EntryRow(
        space=space,
        owner=agent,
        id=f"{BLOCK}/{digest}",
        offset=row.offset,
        at=row.at,
        turn=0,
        session=None,
        text=f"{label}: {content}",
        type=BLOCK,
        entity=None,
        category=None,
        source=f"{agent}_working_memory",
        topic=None,
        importance=kinds.DEFAULT_IMPORTANCE,
        confidence=1.0,
        tier=None,
        priority=NORMAL,
        red_line=False,
        metadata=b"",
        sources=(),
        subject=None,
        version=row.version,
        updated_at=row.at,
        audience=(),
        shared=False,
        preseeded=False,
        since=row.offset,
        since_at=row.at,
    )
