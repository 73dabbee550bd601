"""Items: one by its key, and pages of items."""

from collections.abc import Sequence

from recallog.reading.read_session import ReadSession, Snapshot
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent, own_log, snapshot_of
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemRow
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_schemas import Position
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.models.items.views import ItemFound, ItemsPage, ItemView
from recallog_schemas.timestamps import moment_of

_FIELDS_BYTES = 512
"""The approximate size of an item in an answer, without its value, in bytes."""


async def get(reading: AgentReading, namespace: Sequence[str], key: str) -> ItemFound:
    """The item of an agent under a key."""
    space, agent = reading.space, reading.agent
    snapshot = await reading.snapshot(
        [row_key(space, agent, namespace, key), RowKey(settings.AGENTS.name, space, agent)], [own_log(space, agent)]
    )
    item = present(snapshot, space, agent, namespace, key)
    return ItemFound(**await of_agent(reading, snapshot), item=item)


async def page(
    reading: AgentReading, namespace: Sequence[str], limit: int, cursor: str | None, *, newest_first: bool
) -> ItemsPage:
    """The items of an agent in `namespace` and below it, after `cursor`. Raises `InvalidArgument` if the cursor belongs
    to other pages."""
    space, agent = reading.space, reading.agent
    prefix = items.newest_prefix(namespace) if newest_first else items.prefix_of(namespace)
    if cursor is not None and not cursor.startswith(prefix):
        raise InvalidArgument("cursor: is not the `next` of a page of these items", path="cursor", rule="cursor")

    async def read(session: AgentReading) -> ItemsPage:
        snapshot = await snapshot_of(session)
        found: Sequence[tuple[str, ItemRow | None]]
        if newest_first:
            newest = await session.page(
                items.NEWEST, space, agent, prefix=prefix, newest_first=True, after=cursor, limit=limit
            )
            rows = await _rows(session, space, agent, [row.path for _, row in newest.items])
            newest = newest.fit(lambda of: _size(rows[of.path]))
            found = [(of.path, rows[of.path]) for _, of in newest.items]
            following = newest.next
        else:
            by_key = await session.page(items.ROWS, space, agent, prefix=prefix, after=cursor, limit=limit)
            by_key = by_key.fit(_size)
            found, following = by_key.items, by_key.next
        return ItemsPage(
            **await of_agent(session, snapshot),
            items=tuple(
                item_view(session.partition, *items.names_of(path), row) for path, row in found if row is not None
            ),
            next=following,
        )

    return await reading.steady(read)


async def _rows(session: ReadSession, space: str, agent: str, paths: Sequence[str]) -> dict[str, ItemRow | None]:
    snapshot = await session.snapshot([RowKey(items.ROWS.name, space, agent, path) for path in paths])
    return {path: snapshot.row(items.ROWS, space, agent, path) for path in paths}


def _size(row: ItemRow | None) -> int:
    return 0 if row is None else len(row.value) + _FIELDS_BYTES


def row_key(space: str, agent: str, namespace: Sequence[str], key: str) -> RowKey:
    """The address of an item's row."""
    return RowKey(items.ROWS.name, space, agent, items.path_of(namespace, key))


def present(snapshot: Snapshot, space: str, agent: str, namespace: Sequence[str], key: str) -> ItemView | None:
    """The item in a snapshot that has its row; None if there is none."""
    row = snapshot.row(items.ROWS, space, agent, items.path_of(namespace, key))
    return None if row is None else item_view(snapshot.partition, namespace, key, row)


def item_view(partition: int, namespace: Sequence[str], key: str, row: ItemRow) -> ItemView:
    """The view of an item's row."""
    return ItemView(
        namespace=tuple(namespace),
        key=key,
        value=items.value_of(row),
        version=row.version,
        at=moment_of(row.at),
        sha256=row.sha256,
        position=Position(partition, row.offset),
    )
