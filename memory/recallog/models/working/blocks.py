"""Reads of the items of working memory and of scratchpads whose keys a namespace lists."""

from collections.abc import Mapping, Sequence

from recallog.reading.read_session import ReadSession, Snapshot
from recallog.reading.subject import own_log
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemRow
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_schemas.models.working import limits as working_limits
from recallog_schemas.views.base import shown_json

WORKING = (items.WORKING,)
"""The namespace of the blocks."""


async def rows_of(
    reads: ReadSession, space: str, agent: str, namespace: Sequence[str], labels: Sequence[str] | None
) -> tuple[Snapshot, Mapping[str, ItemRow]]:
    """The rows of a namespace whose keys are listed, by key, and the snapshot for `of_agent`. With `labels` only those.

    Two reads, which `ReadSession.steady` makes one.
    """
    prefix = items.prefix_of(namespace)
    snapshot = await reads.snapshot(
        [RowKey(items.NAMESPACES.name, space, agent, prefix), RowKey(settings.AGENTS.name, space, agent)],
        [own_log(space, agent)],
    )
    listed = snapshot.row(items.NAMESPACES, space, agent, prefix)
    keys = [key for key in (listed.keys if listed is not None else ()) if labels is None or key in labels]
    if not keys:
        return snapshot, {}
    addresses = block_rows(space, agent, keys, namespace)
    found = await reads.snapshot(addresses)
    return snapshot, present(found, space, agent, keys, namespace)


def block_rows(space: str, agent: str, labels: Sequence[str], namespace: Sequence[str] = WORKING) -> list[RowKey]:
    """The addresses of the rows of some blocks."""
    return [RowKey(items.ROWS.name, space, agent, items.path_of(namespace, label)) for label in labels]


def present(
    snapshot: Snapshot, space: str, agent: str, labels: Sequence[str], namespace: Sequence[str] = WORKING
) -> Mapping[str, ItemRow]:
    """The rows of some blocks in a snapshot, by label, in the order of `labels`."""
    rows = {label: snapshot.row(items.ROWS, space, agent, items.path_of(namespace, label)) for label in labels}
    return {label: row for label, row in rows.items() if row is not None}


def content_of(row: ItemRow) -> str:
    """The content of a block as it is shown: at most its first `working_limits.WORKING_BLOCK_CHARS_MAX` characters."""
    return shown_json(items.value_of(row))[: working_limits.WORKING_BLOCK_CHARS_MAX]
