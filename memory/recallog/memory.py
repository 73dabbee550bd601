"""The facade: publish events, ask what agents remember, rebuild and verify the views."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from datetime import datetime
from itertools import islice
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from recallog import operations
from recallog.reading import Reading, position
from recallog.settings import Settings
from recallog.time_travel import AsOf, travel
from recallog.wiring import Views, embedded
from recallog_projections import activity, episodic
from recallog_projections import settings as agent_settings
from recallog_projections.projection import Log, LogName, Need, Projection, Table
from recallog_projections.stores.store import Snapshot
from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.errors import InvalidEvent, InvariantViolation, OutOfRange, Parked, ProjectionError, Rebuilding
from recallog_schemas.views import (
    AgentView,
    DeadLetter,
    DeadLetterDetail,
    EpisodicView,
    RebuildReport,
    Remembered,
    SpaceDetail,
    SpaceView,
    Status,
    TimelinePage,
    VerifyReport,
)
from recallog_streams import dead_letters, generations
from recallog_streams.ledger import Batch
from recallog_streams.projector import Progress

Answer = TypeVar("Answer")
Row = TypeVar("Row", bound=msgspec.Struct)

_READ_TRIES = 5


class Memory:
    """Event-sourced memory of any number of agents.

    ```python
    async with Memory.open("./memory") as memory:
        await memory.publish(Event(space="village", agent="baker", kind="agent.spoke", payload={"text": "Bread!"}))
        print((await memory.episodic("village", "baker")).format())
    ```

    Any number of processes may open one folder. Queries see everything that was in the ledger when they began.
    """

    def __init__(self, settings: Settings, projections: Sequence[Projection], progress: Progress | None) -> None:
        self.settings = settings
        self._parts = embedded(settings, projections)
        self._progress = progress

    @classmethod
    def open(
        cls,
        home: str | PathLike[str] | Settings | None = None,
        *,
        projections: Sequence[Projection] = (),
        progress: Progress | None = None,
    ) -> Self:
        """A memory in the folder `home` (default: `RECALLOG_HOME`, else `./.recallog`), made with the first use.

        `projections` are views of your own, each kept in a file of its own; read them with `row` and `entries`.
        `progress` is called with (done, total) while a query has to build the views first.
        """
        if isinstance(home, Settings):
            return cls(home, projections, progress)
        return cls(Settings(home=Path(home)) if home is not None else Settings(), projections, progress)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the files. Nothing is lost without it."""
        await self._parts.ledger.close()
        for views in self._parts.all_views():
            await views.store.close()

    # Producers

    async def publish(self, event: Event) -> Position:
        """Write one event; its position, once it is durable. See `publish_many`."""
        return (await self.publish_many([event]))[0]

    async def publish_many(self, events: Sequence[Event]) -> list[Position]:
        """Write events in order, all or none; their positions, once they are durable.

        An event whose id is there already is not written again, and answers its first position. Raises `IdConflict`
        where that id says something else, `EventTooLarge`, `StorageError`, `UnknownOutcome`; calling again with the
        same events is safe after each of them. At most `limits.APPEND_EVENTS_MAX` events in one call.
        """
        return await self._parts.ledger.append(events)

    # Consumers

    async def episodic(
        self,
        space: str,
        agent: str,
        *,
        window: int | None = None,
        after: Position | None = None,
        as_of: AsOf | None = None,
    ) -> EpisodicView:
        """The newest `window` events that `agent` may see (default: as `agent.configured` says, else 8).

        `after` waits for a position of your own to be in the views, and raises `Parked` where it never will be.
        `as_of` answers from the past. An unknown space or agent has an empty view. Raises `OutOfRange`.
        """
        codec.check_name(agent, "agent")
        settings_row = Need(agent_settings.AGENTS.name, space, agent)
        newest = window or limits.WINDOW_EVENTS

        async def answer(reading: Reading) -> EpisodicView:
            snapshot = await reading.read([settings_row], episodic.logs(space, agent, newest))
            size = window or self._window(snapshot)
            if size > newest:
                snapshot = await reading.read([settings_row], episodic.logs(space, agent, size))
            memories = episodic.window(episodic.merge(*snapshot.logs), size)
            return EpisodicView(
                generation=snapshot.generation.id,
                checkpoint=position(reading.partition, snapshot.checkpoint.offset),
                space=space,
                agent=agent,
                window=size,
                memories=tuple(_remembered(reading.partition, memory) for memory in memories),
            )

        if window is not None and not 1 <= window <= limits.LOG_EVENTS_KEPT:
            raise InvalidEvent(f"window: between 1 and {limits.LOG_EVENTS_KEPT}, not {window}", path="window")
        return await self._answer(space, answer, after, as_of)

    async def timeline(
        self,
        space: str,
        agent: str,
        *,
        limit: int = limits.PAGE_ITEMS,
        before: Position | None = None,
        session: str | None = None,
        kinds: Collection[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: Position | None = None,
        as_of: AsOf | None = None,
    ) -> TimelinePage:
        """A page of the events that `agent` may see, in order; `before` (the page's `older`) leads to older ones.

        Of one `session`, of some `kinds`, with `since` <= at < `until`, where these are given. The views keep the
        newest 2,000 of its own and of the shared events; where older ones were dropped, the last page says from which
        position on it is complete.
        """
        codec.check_name(agent, "agent")
        if not 1 <= limit <= limits.PAGE_ITEMS_MAX:
            raise InvalidEvent(f"limit: between 1 and {limits.PAGE_ITEMS_MAX}, not {limit}", path="limit")
        for bound, moment in (("since", since), ("until", until)):
            if moment is not None and moment.tzinfo is None:
                raise InvalidEvent(f"{bound}: a time needs its zone: 2026-03-01T12:00:00Z", path=bound)

        def wanted(event: Event) -> bool:
            return (
                (session is None or event.session == session)
                and (kinds is None or event.kind in kinds)
                and (since is None or event.at >= since)
                and (until is None or event.at < until)
            )

        async def answer(reading: Reading) -> TimelinePage:
            snapshot = await reading.read(logs=episodic.logs(space, agent, limits.LOG_EVENTS_KEPT))
            kept_from = episodic.kept_from(*snapshot.logs)
            memories = [
                memory
                for memory in episodic.merge(*snapshot.logs)
                if memory.offset >= (kept_from or 0) and (before is None or memory.offset < before.offset)
            ]
            newest_first = (_remembered(reading.partition, memory) for memory in reversed(memories))
            found = list(islice((memory for memory in newest_first if wanted(memory.event)), limit + 1))
            older = found[limit - 1].position if len(found) > limit else None
            return TimelinePage(
                generation=snapshot.generation.id,
                checkpoint=position(reading.partition, snapshot.checkpoint.offset),
                space=space,
                agent=agent,
                items=tuple(reversed(found[:limit])),
                older=older,
                kept_from=position(reading.partition, kept_from) if older is None and kept_from is not None else None,
            )

        return await self._answer(space, answer, after, as_of)

    async def spaces(self) -> list[SpaceView]:
        """All spaces, by name."""
        found: list[SpaceView] = []
        for partition in range(len(await self._parts.ledger.ends())):

            async def answer(reading: Reading) -> list[SpaceView]:
                rows = reading.scan(activity.SPACES.name)
                return [_space(reading, offset, item.space, item.data) async for item, offset in rows]

            found += await self._retried(partition, answer)
        return sorted(found, key=lambda space: space.space)

    async def agents(self, space: str) -> list[AgentView]:
        """All agents that ever acted in `space`, by name."""
        return list((await self.space(space)).agents)

    async def space(self, space: str) -> SpaceDetail:
        """Who and what was active in `space`: its agents, sessions and kinds, each with its counts."""

        async def answer(reading: Reading) -> SpaceDetail:
            snapshot = await reading.read([Need(activity.SPACES.name, space)])
            (row,) = snapshot.rows
            by_table = {
                table.name: tuple(
                    [_span(reading.partition, row.owner, row.data) async for row, _ in reading.scan(table.name, space)]
                )
                for table in (activity.AGENTS, activity.SESSIONS, activity.KINDS)
            }
            return SpaceDetail(
                generation=snapshot.generation.id,
                checkpoint=position(reading.partition, snapshot.checkpoint.offset),
                space=_space(reading, snapshot.checkpoint.offset, space, row) if row else None,
                agents=by_table[activity.AGENTS.name],
                sessions=by_table[activity.SESSIONS.name],
                kinds=by_table[activity.KINDS.name],
            )

        return await self._answer(space, answer, None, None)

    async def row(
        self, table: Table[Row], space: str, owner: str = "", key: str = "", *, after: Position | None = None
    ) -> Row | None:
        """One row of a projection of your own. `after` as for `episodic`."""

        async def answer(reading: Reading) -> Row | None:
            (data,) = (await reading.read([Need(table.name, space, owner, key)])).rows
            return None if data is None else table.decode(data)

        return await self._answer(space, answer, after, None, self._views_of(table))

    async def entries(
        self,
        log: Log[Row],
        space: str,
        owner: str = "",
        *,
        newest: int = limits.PAGE_ITEMS,
        after: Position | None = None,
    ) -> list[Row]:
        """The newest entries of a log of a projection of your own, oldest first. `after` as for `episodic`."""

        async def answer(reading: Reading) -> list[Row]:
            (tail,) = (await reading.read(logs=[(LogName(log.name, space, owner), newest)])).logs
            return [log.decode(data) for data in tail.entries]

        return await self._answer(space, answer, after, None, self._views_of(log))

    # Operators

    async def ledger_ends(self) -> list[int]:
        """The next offset of each partition."""
        return await self._parts.ledger.ends()

    async def records(self, start: Position | None = None, space: str | None = None) -> AsyncIterator[Batch]:
        """The ledger as it is, from `start` to its present end, in batches of raw records."""
        for partition, end in enumerate(await self._parts.ledger.ends()):
            if start is not None and start.partition != partition:
                continue
            first = start.offset if start is not None else 0
            async for batch in self._parts.ledger.read(partition, first, end, space=space):
                yield batch

    async def status(self) -> Status:
        """How far the views are. Folds nothing."""
        return await operations.status(self._parts)

    async def verify(self, progress: Progress | None = None) -> VerifyReport:
        """Fold the ledger afresh and compare every row of every view with it."""
        return await operations.verify(self._parts, progress)

    async def rebuild(self, progress: Progress | None = None, *, accept: bool = False) -> list[RebuildReport]:
        """Fold everything from offset zero beside the live views, then cut over. Readers go on meanwhile.

        Raises `NewDeadLetters`, unless `accept`, where that would lose what the live views remember.
        """
        return await operations.rebuild(self._parts, progress, accept=accept)

    async def abort_rebuild(self) -> list[str]:
        """Give up rebuilds under way; the generations given up."""
        return await operations.abort_rebuild(self._parts)

    async def dead_letters(self) -> list[DeadLetter]:
        """All records that the views could not apply, in order."""
        return await operations.list_dead_letters(self._parts, self._progress)

    async def dead_letter(self, at: Position) -> DeadLetterDetail:
        """One dead letter with its content. Raises `OutOfRange` where there is none at that position."""
        return await operations.show_dead_letter(self._parts, at, self._progress)

    async def retry_dead_letters(self, progress: Progress | None = None) -> list[DeadLetter]:
        """Rebuild, if at least one dead letter would fold now; those that still do not."""
        return await operations.retry_dead_letters(self._parts, progress)

    # How an answer is made

    async def _answer(
        self,
        space: str,
        answer: Callable[[Reading], Awaitable[Answer]],
        after: Position | None,
        as_of: AsOf | None,
        views: Views | None = None,
    ) -> Answer:
        codec.check_name(space)
        partition = self._parts.ledger.partition_of(space)
        if as_of is not None:
            return await answer(await self._travel(space, as_of))
        if after is not None:
            generations.check_position(await self._parts.ledger.ends(), after.partition, after.offset)

        async def checked(reading: Reading) -> Answer:
            if after is not None:
                await _refuse_parked(reading, after)
            return await answer(reading)

        return await self._retried(partition, checked, views)

    def _views_of(self, table: Table[Row] | Log[Row]) -> Views:
        for views in self._parts.all_views():
            if table in views.projector.fold.tables:
                return views
        raise ProjectionError(f"{table.name!r} is of no projection that this memory was opened with")

    async def _retried(
        self, partition: int, answer: Callable[[Reading], Awaitable[Answer]], views: Views | None = None
    ) -> Answer:
        """The answer of the active generation; again, where a cutover took it away in between."""
        views = views or self._parts.views
        for tries_left in reversed(range(_READ_TRIES)):
            generation = await generations.current(views.projector, partition, self._progress)
            try:
                return await answer(Reading(views.store, partition, generation))
            except Rebuilding:
                if not tries_left:
                    raise
        raise InvariantViolation("the last try neither answered nor raised")

    async def _travel(self, space: str, as_of: AsOf) -> Reading:
        ledger, views = self._parts.ledger, self._parts.views

        async def events(reading: Reading) -> int:
            (row,) = (await reading.read([Need(activity.SPACES.name, space)])).rows
            return activity.SPACES.decode(row).events if row else 0

        known = await self._retried(ledger.partition_of(space), events)
        if known > limits.AS_OF_RECORDS_MAX:
            raise OutOfRange(
                f"the space {space!r} has {known:,} events; time travel folds at most {limits.AS_OF_RECORDS_MAX:,}"
            )
        return await travel(ledger, views.projections, space, as_of, self._progress)

    def _window(self, snapshot: Snapshot) -> int:
        (row,) = snapshot.rows
        return (agent_settings.AGENTS.decode(row).window if row else None) or limits.WINDOW_EVENTS


async def _refuse_parked(reading: Reading, after: Position) -> None:
    key = dead_letters.key_of(after.offset)
    (row,) = (await reading.read([Need(dead_letters.TABLE.name, "", "", key)])).rows
    if row is not None:
        letter = dead_letters.TABLE.decode(row)
        raise Parked(
            f"the record at {after} is a dead letter ({letter.reason}: {letter.detail}) and will show in no view. "
            f"See it: recallog dead-letters show {after}"
        )


def _remembered(partition: int, memory: episodic.Memory) -> Remembered:
    event = codec.decode(memory.data)
    return Remembered.model_construct(position=Position(partition, memory.offset), event=event, text=event.text)


def _space(reading: Reading, checkpoint: int, space: str, data: bytes) -> SpaceView:
    row, partition = activity.SPACES.decode(data), reading.partition
    return SpaceView(
        generation=reading.generation.id,
        checkpoint=position(partition, checkpoint),
        space=space,
        events=row.events,
        agents=row.agents,
        sessions=row.sessions,
        first=Position(partition, row.first),
        last=Position(partition, row.last),
    )


def _span(partition: int, name: str, data: bytes) -> AgentView:
    row = activity.AGENTS.decode(data)
    return AgentView(
        name=name, events=row.events, first=Position(partition, row.first), last=Position(partition, row.last)
    )
