"""Read sessions: consistent reads of one generation of the views, live or past."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, Self, TypedDict, TypeVar

import msgspec

from recallog_projections.stores.store import Checkpoint, Generation, ReadResult, Store, StoredRow
from recallog_projections.tables import Log, LogName, RowKey, Table, Tail
from recallog_projections.views import clock, episodic
from recallog_schemas import Position, codec, limits
from recallog_schemas.timestamps import moment_of
from recallog_schemas.views import Remembered
from recallog_schemas.views.base import fitting

Result = TypeVar("Result")
Row = TypeVar("Row", bound=msgspec.Struct)

FirstRead = Callable[[Sequence[RowKey], Sequence[tuple[LogName, int]]], Awaitable[ReadResult]]
"""Reads rows and log tails of the generation that queries use."""


_STEADY_TRIES = 5
_LAST_OWNER = "\U0010ffff"
"""Greater than any owner: a scan that begins after it continues in the next space."""


@dataclass(frozen=True, slots=True)
class RowPage(Generic[Row]):
    """Rows of one owner in the order of a scan."""

    items: Sequence[tuple[str, Row]]
    """The keys and the rows."""
    last: bool
    """Whether it is the last page."""

    @property
    def next(self) -> str | None:
        """The key after which the next page begins; None if this is the last page."""
        return None if self.last or not self.items else self.items[-1][0]

    def fit(self, size: Callable[[Row], int]) -> "RowPage[Row]":
        """The page with the rows that fit into one answer; `size` is the approximate size of a row as JSON."""
        count = fitting(size(row) for _, row in self.items)
        return self if count == len(self.items) else RowPage(self.items[:count], last=False)


@dataclass(slots=True)
class ReadSession:
    """Reads one generation: `source`, or the one that the first read finds."""

    store: Store
    partition: int
    source: Generation | FirstRead
    checkpoints: set[int] = field(default_factory=set)
    """The offsets of the checkpoints at which rows were read."""

    async def read(self, rows: Sequence[RowKey] = (), logs: Sequence[tuple[LogName, int]] = ()) -> ReadResult:
        """Rows and log tails in one atomic call.

        Raises `Rebuilding` if the generation was replaced meanwhile; the first read also raises the errors of
        `ViewAccess.reading`.
        """
        if isinstance(self.source, Generation):
            found = await self.store.read(self.partition, rows, logs, self.source)
        else:
            found = await self.source(rows, logs)
            self.source = found.generation
        self.checkpoints.add(found.checkpoint.offset)
        return found

    async def steady(self, query: Callable[[Self], Awaitable[Result]]) -> Result:
        """The result of `query`, which reads the session that it is given, with all reads at one checkpoint.

        If the views have advanced between its reads, it runs again. After a few tries, the last result is returned,
        although its reads were at successive checkpoints: a query that takes longer than a commit must get an answer
        too.
        """
        for _ in range(_STEADY_TRIES):
            session = replace(self, checkpoints=set())
            result = await query(session)
            self.source = session.source
            if len(session.checkpoints) <= 1:
                break
        self.checkpoints |= session.checkpoints
        return result

    async def snapshot(self, rows: Iterable[RowKey] = (), logs: Iterable[tuple[LogName, int]] = ()) -> "Snapshot":
        """Rows and log tails in one atomic call, addressed by name. Raises the errors of `read`."""
        wanted_rows, wanted_logs = list(dict.fromkeys(rows)), list(dict(logs).items())
        return Snapshot(await self.read(wanted_rows, wanted_logs), wanted_rows, wanted_logs)

    async def scan(
        self,
        table: str,
        space: str | None = None,
        *,
        after: tuple[str, str, str] | None = None,
        first_items: int = limits.SCAN_ITEMS,
        ends_space: Callable[[StoredRow], bool] | None = None,
    ) -> AsyncGenerator[tuple[StoredRow, "ComputedAtFields"], None]:
        """All rows of a table, or of one `space`, in key order, each with the checkpoint at which it was read.

        With `after`, a space, an owner and a key, only the rows after that address, which need not exist.

        The first call to the store reads `first_items` rows, and each further call ten times as many, up to
        `limits.SCAN_ITEMS`, so that a caller that stops early has read few unused rows. A row for which `ends_space` is
        true is left out together with all later rows of its space.
        """
        generation = self.source if isinstance(self.source, Generation) else (await self.read()).generation
        limit = first_items
        while True:
            chunk = await self.store.scan(generation, table, space=space, after=after, limit=limit)
            self.checkpoints.add(chunk.checkpoint.offset)
            ended: str | None = None
            for item in chunk.items:
                if ends_space is not None and (item.space == ended or ends_space(item)):
                    ended = item.space
                else:
                    yield item, _computed_at(generation, chunk.checkpoint)
            if chunk.last:
                return
            last = chunk.items[-1]
            after = (last.space, _LAST_OWNER, "") if last.space == ended else last.row_key
            limit = min(10 * limit, limits.SCAN_ITEMS)

    async def page(
        self,
        table: Table[Row],
        space: str,
        owner: str = "",
        *,
        prefix: str = "",
        newest_first: bool = False,
        after: str | None = None,
        limit: int,
    ) -> RowPage[Row]:
        """Up to `limit` rows of one owner whose keys begin with `prefix`, in order of their keys.

        With `newest_first` the greatest key comes first. The page begins after the key `after`, which need not exist.
        """
        generation = self.source if isinstance(self.source, Generation) else (await self.read()).generation
        items: list[tuple[str, Row]] = []
        behind = None if after is None else (space, owner, after)
        while True:
            chunk = await self.store.scan(
                generation,
                table.name,
                space=space,
                owner=owner,
                prefix=prefix,
                newest_first=newest_first,
                after=behind,
                limit=limit - len(items),
            )
            self.checkpoints.add(chunk.checkpoint.offset)
            items += [(item.key, table.decode(item.data)) for item in chunk.items]
            if chunk.last or len(items) >= limit:
                return RowPage(items, chunk.last)
            behind = chunk.items[-1].row_key

    async def every(self, table: Table[Row], space: str, owner: str, prefix: str = "") -> list[tuple[str, Row]]:
        """All rows of one owner whose keys begin with `prefix`, read page by page, in order of their keys."""
        page = await self.page(table, space, owner, prefix=prefix, limit=limits.SCAN_ITEMS)
        found = list(page.items)
        while page.next is not None:
            page = await self.page(table, space, owner, prefix=prefix, after=page.next, limit=limits.SCAN_ITEMS)
            found += page.items
        return found


class ComputedAtFields(TypedDict):
    """The fields of every view that name the state from which it was computed."""

    generation: str
    checkpoint: Position | None


class Snapshot:
    """The rows and log tails of one atomic read, by name."""

    def __init__(self, snapshot: ReadResult, rows: Sequence[RowKey], logs: Sequence[tuple[LogName, int]]) -> None:
        self.partition = snapshot.generation.partition
        self.computed_at = _computed_at(snapshot.generation, snapshot.checkpoint)
        self._rows = dict(zip(rows, snapshot.rows, strict=True))
        self._tails = {name: tail for (name, _), tail in zip(logs, snapshot.logs, strict=True)}
        self._newest = dict(logs)
        self._memories: dict[tuple[str, str], list[episodic.RememberedEvent]] = {}

    @property
    def processed(self) -> int:
        """The last offset that the views had processed; -1 before the first."""
        checkpoint = self.computed_at["checkpoint"]
        return -1 if checkpoint is None else checkpoint.offset

    def row(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> Row | None:
        data = self._rows[RowKey(table.name, space, owner, key)]
        return None if data is None else table.decode(data)

    def tail(self, log: Log[Row], space: str, owner: str = "") -> Tail:
        return self._tails[LogName(log.name, space, owner)]

    def memories(self, space: str, agent: str) -> Sequence[episodic.RememberedEvent]:
        """The newest events that `agent` may see, in ledger order: as many as were requested of each log.

        They are decoded once, since several parts of a prompt use them.
        """
        if (space, agent) not in self._memories:
            newest = self._newest[LogName(episodic.OWN.name, space, agent)]
            merged = episodic.merge(self.tail(episodic.OWN, space, agent), self.tail(episodic.SHARED, space))
            self._memories[space, agent] = episodic.window(merged, newest)
        return self._memories[space, agent]

    def time_of(self, space: str, agent: str) -> datetime | None:
        """The time of `agent`, by the events that it sees; None without events. The snapshot has the rows of
        `clock.keys`."""
        newest = clock.newer(self.row(clock.NOW, space), self.row(clock.NOW, space, agent))
        return None if newest is None else moment_of(newest.at)

    def make_remembered(self, offset: int, data: bytes, text: str | None) -> Remembered:
        """The event in `data`, as views return it; its text is `text` or, if that is None, the event's own."""
        event = codec.decode(data)
        shown = event.text if text is None else text
        return Remembered.model_construct(position=Position(self.partition, offset), event=event, text=shown)


def _computed_at(generation: Generation, checkpoint: Checkpoint) -> ComputedAtFields:
    return {"generation": generation.id, "checkpoint": position(generation.partition, checkpoint.offset)}


def position(partition: int, offset: int) -> Position | None:
    """The position of an offset; None for the offset before the first."""
    return Position(partition, offset) if offset >= 0 else None
