"""The facade: publish events, query what agents remember, rebuild and verify the views."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, overload

import msgspec

from recallog import composition, queries, reactors, retrieval
from recallog.components import Components
from recallog.reading.projection_group import ProjectionGroup
from recallog.reading.query_router import QueryRouter
from recallog.reading.read_session import ReadSession
from recallog.reading.time_travel import AsOf
from recallog.retrieval.channels import DEFAULT_CHANNELS, WEIGHTED
from recallog.retrieval.term_cache import TermCache
from recallog.settings import Settings
from recallog_projections.projection import Projection
from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.errors import InvalidEvent, ProjectionError, RecallogError
from recallog_streams.concurrency import gathered
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.projector import Progress

if TYPE_CHECKING:
    from recallog.queries.context import Context
    from recallog.queries.previews import AgentScope
    from recallog.queries.salient import SalienceQuery
    from recallog.reactors.reactor import Background, Reactor
    from recallog.reactors.reflector import Reflector
    from recallog.retrieval.reranker import Reranker
    from recallog_schemas.views import (
        AgentSettingsView,
        AgentView,
        AroundView,
        BeliefsView,
        DeadLetter,
        DeadLetterDetail,
        EntriesView,
        EpisodicView,
        Explanation,
        KindsView,
        KindView,
        PendingTrigger,
        Reaction,
        RebuildPlan,
        RebuildReport,
        RecallView,
        ReflectionView,
        SalientView,
        SceneView,
        SearchPage,
        SpaceDetail,
        SpaceView,
        Status,
        TimelinePage,
        VerifyReport,
    )

Row = TypeVar("Row", bound=msgspec.Struct)

INDEX_WAIT_SECONDS = 60.0
"""How long `catch_up_index` waits for an index that makes no progress."""


class Memory:
    """Event-sourced memory of any number of agents.

    ```python
    async with Memory.open("./memory") as memory:
        await memory.publish(Event(space="village", agent="baker", kind="agent.spoke", payload={"text": "Bread!"}))
        print((await memory.episodic("village", "baker")).format())
    ```

    Any number of processes may open one folder. Queries see everything that was in the ledger when they began.
    """

    def __init__(
        self,
        components: Components,
        *,
        progress: Progress | None = None,
        reactors: bool = False,
        reflector: Reflector | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """A memory of built components, for example of `recallog.composition.assemble`.

        The other arguments are those of `open`. The memory closes the components when it is closed.
        """
        self._components = components
        self._reranker = reranker
        self._progress = progress
        self._router = QueryRouter(components.ledger, components.views, progress)
        self._log_events = components.log_events
        self._term_cache = TermCache()
        self._make_reflector: Callable[[], Reflector] = (
            composition.extractive if reflector is None else lambda: reflector
        )
        self._reactors = reactors
        self._reactor: Reactor | None = None
        self._background: Background | None = None

    @classmethod
    def open(
        cls,
        home: str | PathLike[str] | Settings | None = None,
        *,
        projections: Sequence[Projection] = (),
        progress: Progress | None = None,
        reactors: bool = False,
        reflector: Reflector | None = None,
        reranker: Reranker | None = None,
    ) -> Self:
        """A memory in the folder `home`, which is created when it is first used, or with the given settings.

        Without `home`, environment variables name a ledger and a store of views (`RECALLOG_LEDGER` and
        `RECALLOG_VIEWS`: a cluster, whose workers maintain the views) or a folder (`RECALLOG_HOME`, else
        `./.recallog`).

        `projections` are projections of your own, each in a separate store; read them with `row` and `log_entries`.
        `progress` is called with (done, total) while a query has to build the views first. With `reactors`, and inside
        `async with`, reflections that fall due are answered in the background by `reflector` (default: the one that
        `RECALLOG_REFLECTOR` names, else the offline one). `reranker` scores the best hits of `recall` again, each
        together with the query; there is none by default.
        """
        settings = home if isinstance(home, Settings) else Settings.of_folder(home)
        memory = cls(
            composition.compose(settings, projections),
            progress=progress,
            reactors=reactors,
            reflector=reflector,
            reranker=reranker,
        )
        if reflector is None:
            memory._make_reflector = lambda: composition.reflector(settings)
        return memory

    @classmethod
    def in_memory(
        cls,
        *,
        projections: Sequence[Projection] = (),
        reactors: bool = False,
        reflector: Reflector | None = None,
        reranker: Reranker | None = None,
    ) -> Self:
        """A memory that needs no folder and ends with this object: for tests and notebooks.

        There is no semantic index: `recall` compares words. The arguments are those of `open`.
        """
        settings = Settings(ledger="memory://", views="memory://", index="off", reflector="extractive")
        components = composition.compose(settings, projections)
        return cls(components, reactors=reactors, reflector=reflector, reranker=reranker)

    async def __aenter__(self) -> Self:
        if self._reactors:
            self._background = reactors.reactor.Background(self._own_reactor())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close files and connections, and stop the reactor. Nothing is lost if it is never called."""
        try:
            if self._background is not None:
                await self._background.stop()
            if self._reactor is not None:
                await self._reactor.close()
        finally:
            await self._components.close()

    # Producers

    async def publish(self, event: Event) -> Position:
        """Write one event and return its position once it is durable. See `publish_many`."""
        return (await self.publish_many([event]))[0]

    async def publish_many(self, events: Sequence[Event]) -> list[Position]:
        """Write events in order, all or none, and return their positions once they are durable.

        An event whose id exists already in its space is not written again; its first position is returned. At most
        `limits.APPEND_EVENTS_MAX` events in one call.

        Raises `IdConflict` if that id names an event with other content (of two answers to one trigger the first
        counts, and the second is not a conflict), `EventTooLarge`, `StorageError`, `UnknownOutcome`. Repeating the call
        with the same events is safe after each of them, and after a cancelled call, whose events may have been
        written.
        """
        positions = await self._components.ledger.append(events)
        if self._background is not None:
            self._background.wake()
        return positions

    # Reactors

    async def react(
        self, space: str | None = None, progress: Progress | None = None, *, skip_reflection_loops: bool = False
    ) -> list[Reaction]:
        """Answer the reflections that are due now, in one space or in all, each once, and return the answers.

        The answer is an `agent.reflected` event or, where the reflector fails after its retries, `reflection.failed`,
        so that the memory goes on. The next call answers triggers that fall due because of these answers. With
        `skip_reflection_loops`, for calls in a loop, a trigger whose newest events are all reflections stays pending:
        agents that only see each other's reflections would never stop. `progress` is called with triggers (answered, to
        answer). Raises `ReflectorMisconfigured`, and `LockTimeout` while another process reacts.
        """
        return await self._own_reactor().react(space, progress, skip_reflection_loops=skip_reflection_loops)

    async def keep_reacting(self, space: str | None, on_error: Callable[[RecallogError], float]) -> None:
        """Answer reflections as they fall due, in one space or in all, until cancelled.

        `on_error` is called with each error and returns the seconds to wait before the next try, or raises to end it.
        """
        await self._own_reactor().run(space, on_error)

    # Consumers

    async def catch_up(self, *, own: bool = True, partition: int | None = None) -> None:
        """Wait until the views have processed everything that the ledger holds now, in one partition or in all.

        Embedded, the views are folded here; on a cluster, workers fold them. Includes the views of your own
        projections, unless `own` is false. Raises `ViewsBehind` if the workers of a cluster take too long.
        """
        groups = self._components.groups() if own else [self._components.views]

        async def of_partition(last: Position) -> None:
            for views in groups:
                await views.access.catch_up(last.partition, last, self._progress)

        await gathered(of_partition, await self._last_positions(partition))

    async def episodic(
        self,
        space: str,
        agent: str,
        *,
        window: int | None = None,
        after: Position | None = None,
        as_of: AsOf | None = None,
    ) -> EpisodicView:
        """The newest `window` events that `agent` may see (default: as `agent.configured` says, else 8), oldest first.

        `after` waits until the views have processed a position of your own, and raises `DeadLettered` if that record
        is a dead letter. `as_of` answers from the past: a position (the fold up to and including it) or a time (events
        that happened later are left out). An unknown space or agent has an empty view. Raises `OutOfRange`.
        """
        codec.check_name(agent, "agent")
        if window is not None and not 1 <= window <= self._log_events:
            raise InvalidEvent(f"window: between 1 and {self._log_events}, not {window}", path="window")
        return await self._router.of_space(
            space, lambda reading: queries.timeline.window(reading, space, agent, window), after, as_of
        )

    @overload
    async def timeline(
        self,
        space: str,
        agent: str,
        *,
        limit: int = ...,
        before: Position | None = ...,
        session: str | None = ...,
        kinds: Collection[str] | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        after: Position | None = ...,
        as_of: AsOf | None = ...,
    ) -> TimelinePage: ...

    @overload
    async def timeline(
        self,
        space: str,
        agent: str,
        *,
        around: str,
        entries_before: int = ...,
        entries_after: int = ...,
        session: str | None = ...,
        kinds: Collection[str] | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        after: Position | None = ...,
        as_of: AsOf | None = ...,
    ) -> AroundView: ...

    async def timeline(
        self,
        space: str,
        agent: str,
        *,
        limit: int = limits.PAGE_ITEMS,
        before: Position | None = None,
        around: str | None = None,
        entries_before: int = limits.AROUND_EVENTS,
        entries_after: int = limits.AROUND_EVENTS,
        session: str | None = None,
        kinds: Collection[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: Position | None = None,
        as_of: AsOf | None = None,
    ) -> TimelinePage | AroundView:
        """A page of the events that `agent` may see, in order; `before` (a page's `older`) selects the page before it.

        `session`, `kinds` and `since` <= at < `until` select events, where given. The views retain the newest 2,000 of
        its own and of the shared events; if older ones were dropped, the last page names the position from which it is
        complete.

        With `around`, the id of an event: previews of that event and of the nearest `entries_before` and
        `entries_after` events that pass the filters, 0 to 50 each. For an event that the views have dropped, the space
        is folded up to it. Raises `OutOfRange` if `agent` may see no event with this id.
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

        if around is None:
            return await self._router.of_space(
                space,
                lambda reading: queries.timeline.page(reading, space, agent, wanted, limit, before, self._log_events),
                after,
                as_of,
            )
        if before is not None:
            raise InvalidEvent("before: it selects a page, so it cannot be given with around", path="before")
        counts = [
            queries.previews.clamped(count, 0, limits.AROUND_EVENTS_MAX) for count in (entries_before, entries_after)
        ]
        request = queries.previews.AroundRequest(around, counts[0], counts[1], wanted)
        scope = self._scope(space, agent, as_of)
        return await self._router.of_space(
            space, lambda reading: queries.previews.around(reading, scope, request), after, as_of
        )

    async def salient(
        self,
        space: str,
        agent: str,
        query: str | None = None,
        *,
        top_k: int | None = None,
        turn: int | None = None,
        after: Position | None = None,
        as_of: AsOf | None = None,
    ) -> SalientView:
        """The events that matter most to `agent` now, of the newest 2,000 that it may see, oldest first.

        salience = 0.30 relevance to `query` + 0.40 recency + 0.30 importance, unless `agent.configured` sets other
        weights; without a query relevance is 0. Relevance is semantic while the index is served (`recall` starts it)
        and has processed as much as the views; otherwise words are compared. `relevance_by` says which. `top_k`
        defaults to the agent's setting, else 8; `turn`, from which recency is measured, to the highest turn of the
        space. `after` and `as_of` as for `episodic`.
        """
        salience_query, index = self._salience_query(agent, query, top_k, turn, as_of), self._components.index
        return await self._router.of_space(
            space,
            lambda reading: queries.salient.salient(reading, index, space, agent, salience_query, self._log_events),
            after,
            as_of,
        )

    async def recall(
        self,
        space: str,
        agent: str,
        query: str,
        *,
        top_k: int = limits.RECALL_HITS,
        author: str | None = None,
        kinds: Collection[str] | None = None,
        session: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        min_similarity: float | None = None,
        fusion: str = WEIGHTED,
        channels: Collection[str] | None = None,
        wait_index: bool = False,
        after: Position | None = None,
        as_of: AsOf | None = None,
    ) -> RecallView:
        """The memories of `agent` that answer `query` best, best first, each with its score explained.

        Candidates come from the index and, for records that the index has not processed yet, from the views: a record
        that was just published is found by its words. While the index is off, starting, down or being built, only words
        are compared, over the newest 2,000 events; unless the index is off, `degraded` says why. `wait_index` waits
        until the index has processed all that the ledger holds now.

        `author`, `kinds`, `session`, `since` <= at < `until` and `min_similarity` (a cosine, where one is known)
        select the hits. `channels` are some of semantic, keyword, late_interaction, structure (the default), temporal
        and salience; `fusion` is weighted or rrf. `after` and `as_of` as for `episodic`. Raises `InvalidEvent` for an
        invalid query.
        """
        codec.check_name(agent, "agent")
        recall_query = retrieval.query.RecallQuery.create(
            space,
            agent,
            query,
            as_of,
            top_k=top_k,
            author=author,
            kinds=kinds,
            session=session,
            since=since,
            until=until,
            min_similarity=min_similarity,
            fusion=fusion,
            channels=DEFAULT_CHANNELS if channels is None else frozenset(channels),
        )
        recall_query.check()
        index, reranker = self._components.index, self._reranker
        if wait_index:
            await self.catch_up_index(partition=await self.partition_of(space))
        return await self._router.of_space(
            space,
            lambda reading: retrieval.recall.recall(
                reading, index, self._term_cache, recall_query, self._log_events, reranker
            ),
            after,
            as_of,
        )

    async def search(
        self,
        space: str,
        agent: str,
        query: str,
        *,
        limit: int = limits.SEARCH_HITS,
        author: str | None = None,
        kinds: Collection[str] | None = None,
        session: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        min_similarity: float | None = None,
        fusion: str = WEIGHTED,
        channels: Collection[str] | None = None,
        wait_index: bool = False,
        after: Position | None = None,
        as_of: AsOf | None = None,
    ) -> SearchPage:
        """`recall` with previews: the id and position of each hit, its first 220 characters, and its size in tokens.

        `timeline(around=id)` shows the neighbours of a hit, and `entries(ids)` whole events. The query has 1 to 500
        characters (else `InvalidEvent`); `limit` is clamped to 1 to 100. All other arguments are those of `recall`.
        """
        queries.previews.check_query(query)
        limit = queries.previews.clamped(limit, 1, limits.SEARCH_HITS_MAX)
        found = await self.recall(
            space,
            agent,
            query,
            top_k=limit,
            author=author,
            kinds=kinds,
            session=session,
            since=since,
            until=until,
            min_similarity=min_similarity,
            fusion=fusion,
            channels=channels,
            wait_index=wait_index,
            after=after,
            as_of=as_of,
        )
        return queries.previews.page(found, limit)

    async def entries(
        self, space: str, agent: str, ids: Sequence[str], *, after: Position | None = None, as_of: AsOf | None = None
    ) -> EntriesView:
        """The whole events with the given ids, at most 200, in the order of the ids; a repeated id counts once.

        Ids of events that `agent` may not see are left out. For events that the views have dropped, the space
        is folded up to the newest of them. `after` and `as_of` as for `episodic`. Raises `InvalidEvent` for
        too many ids.
        """
        codec.check_name(agent, "agent")
        queries.previews.check_ids(ids)
        scope = self._scope(space, agent, as_of)
        return await self._router.of_space(
            space, lambda reading: queries.previews.entries(reading, scope, ids), after, as_of
        )

    async def catch_up_index(self, progress: Progress | None = None, *, partition: int | None = None) -> None:
        """Wait until the index has processed all that the ledger holds now, in one partition or in all.

        Returns at once if the index is off. Raises `ViewsBehind` if it makes no progress for a minute, and
        `IndexUnavailable`.
        """
        if self._components.index is None:
            return
        for last in await self._last_positions(partition):
            await self._components.index.wait(last.partition, last.offset, INDEX_WAIT_SECONDS, progress)

    async def reflection(
        self, space: str, agent: str, *, after: Position | None = None, as_of: AsOf | None = None
    ) -> ReflectionView:
        """Whether a reflection of `agent` is due: since which position, after how many events, and on what.

        `reflection.answer(belief)` makes the event that answers it. `after` and `as_of` as for `episodic`.
        """
        codec.check_name(agent, "agent")

        return await self._router.of_space(
            space,
            lambda reading: queries.reflections.reflection_of(reading, space, agent, self._log_events),
            after,
            as_of,
        )

    async def beliefs(
        self,
        space: str,
        agent: str,
        reader: str | None = None,
        *,
        after: Position | None = None,
        as_of: AsOf | None = None,
    ) -> BeliefsView:
        """The newest 64 reflections of `agent`, oldest first; with `reader`, only those that `reader` may see.

        `after` and `as_of` as for `episodic`.
        """
        for name in (agent, reader):
            if name is not None:
                codec.check_name(name, "agent")

        return await self._router.of_space(
            space, lambda reading: queries.reflections.beliefs_of(reading, space, agent, reader), after, as_of
        )

    async def scene(self, space: str, *, after: Position | None = None, as_of: AsOf | None = None) -> SceneView:
        """The newest shared event of each scene kind, oldest first: what all agents of the space see.

        `space.configured {scene_kinds}` names the kinds; the default is `world.observed` and `run.started`. `after` and
        `as_of` as for `episodic`.
        """

        return await self._router.of_space(
            space, lambda reading: queries.context.scene_of(reading, space), after, as_of
        )

    async def context(
        self,
        space: str,
        agent: str,
        *,
        scene: str | None = None,
        query: str | None = None,
        extra: str | None = None,
        output_format: str | None = None,
        budget_tokens: int | None = None,
        turn: int | None = None,
        after: Position | None = None,
        as_of: AsOf | None = None,
    ) -> Context:
        """The prompt of `agent`: a `str` that also says what it was computed at, and whether a reflection is due.

        `scene` defaults to the scene view. Memory is the agent's window or, with `use_salience`, the events salient for
        `query` (default: the scene). Other memories related to `query` are recalled from further back, unless the index
        is off. `extra` and `output_format` come last. `budget_tokens` (four characters each) removes recalled memories,
        actions, memories and beliefs, the oldest or weakest first, and nothing else: the remaining sections may exceed
        it. When a reflection is due, the prompt asks for it. `after` and `as_of` as for `episodic`.
        """
        self._salience_query(agent, query, None, turn, as_of)
        if budget_tokens is not None and budget_tokens < 1:
            raise InvalidEvent(f"budget_tokens: at least 1, not {budget_tokens}", path="budget_tokens")
        request = queries.context.ContextRequest(scene, query, extra, output_format, budget_tokens, turn, as_of)
        index = self._components.index

        return await self._router.of_space(
            space,
            lambda reading: queries.context.context(
                reading, index, self._term_cache, space, agent, request, self._log_events
            ),
            after,
            as_of,
        )

    async def explain(
        self,
        space: str,
        event_id: str,
        agent: str,
        *,
        query: str | None = None,
        top_k: int | None = None,
        turn: int | None = None,
        after: Position | None = None,
        as_of: AsOf | None = None,
    ) -> Explanation:
        """Whether `agent` remembers an event, and why: each term of its salience, its rank and its age.

        The content of an event that the agent may not see is not returned. `query`, `top_k` and `turn` as for
        `salient`, `after` and `as_of` as for `episodic`.
        """
        salience_query = self._salience_query(agent, query, top_k, turn, as_of)
        ledger, index = self._components.ledger, self._components.index
        return await self._router.of_space(
            space,
            lambda reading: queries.explain.explain(
                reading, ledger, index, space, event_id, agent, salience_query, self._log_events
            ),
            after,
            as_of,
        )

    async def agent_settings(
        self, space: str, agent: str, *, after: Position | None = None, as_of: AsOf | None = None
    ) -> AgentSettingsView:
        """The settings of `agent`, with defaults. `after` and `as_of` as for `episodic`."""
        codec.check_name(agent, "agent")

        return await self._router.of_space(
            space, lambda reading: queries.spaces.agent_settings(reading, space, agent), after, as_of
        )

    async def pending(self, space: str | None = None, *, partition: int | None = None) -> list[PendingTrigger]:
        """The reflections that are due in one space, in all spaces of one partition, or in all, by space and agent."""

        async def query(reading: ReadSession) -> list[PendingTrigger]:
            return [trigger async for trigger in queries.reflections.pending(reading, space)]

        if space is not None:
            return await self._router.of_space(space, query)
        found = await self._router.of_all(query, only=partition)
        return sorted(found, key=lambda trigger: (trigger.space, trigger.agent))

    async def spaces(self) -> list[SpaceView]:
        """All spaces, by name."""
        return sorted(await self._router.of_all(queries.spaces.spaces), key=lambda space: space.space)

    async def agents(self, space: str) -> list[AgentView]:
        """All agents that have acted in `space`, by name."""
        return list((await self.space(space)).agents)

    async def space(self, space: str) -> SpaceDetail:
        """The activity in `space`: its agents, sessions and kinds, each with its counts."""

        return await self._router.of_space(space, lambda reading: queries.spaces.space_detail(reading, space))

    async def kinds(self, space: str, *, after: Position | None = None, as_of: AsOf | None = None) -> KindsView:
        """The kinds of the catalogue and those that `space` declares, each with its importance, text rule and readers.

        `space.configured {kinds}` declares them. `after` and `as_of` as for `episodic`.
        """
        return await self._router.of_space(space, lambda reading: queries.spaces.kinds_of(reading, space), after, as_of)

    async def declared_kinds(self) -> list[KindView]:
        """The kinds that spaces declare, by space and name. See `kinds`."""
        declared = await self._router.of_all(queries.spaces.declared_kinds)
        return sorted(declared, key=lambda kind: (kind.space or "", kind.name))

    async def row(
        self, table: Table[Row], space: str, owner: str = "", key: str = "", *, after: Position | None = None
    ) -> Row | None:
        """One row of a projection of your own. `after` as for `episodic`."""

        async def query(reading: ReadSession) -> Row | None:
            return (await reading.snapshot([RowKey(table.name, space, owner, key)])).row(table, space, owner, key)

        return await self._router.of_space(space, query, after, views=self._views_of(table))

    async def log_entries(
        self,
        log: Log[Row],
        space: str,
        owner: str = "",
        *,
        newest: int = limits.PAGE_ITEMS,
        after: Position | None = None,
    ) -> list[Row]:
        """The newest entries of a log of a projection of your own, oldest first. `after` as for `episodic`."""

        async def query(reading: ReadSession) -> list[Row]:
            snapshot = await reading.snapshot(logs=[(LogName(log.name, space, owner), newest)])
            return [log.decode(data) for data in snapshot.tail(log, space, owner).entries]

        return await self._router.of_space(space, query, after, views=self._views_of(log))

    # Operators

    async def ledger_ends(self) -> list[int]:
        """The next offset of each partition."""
        return await self._components.ledger.ends()

    async def partition_of(self, space: str) -> int:
        """The partition that holds the events of `space`."""
        codec.check_name(space)
        await self._components.ledger.open()
        return self._components.ledger.partition_of(space)

    async def records(self, start: Position | None = None, space: str | None = None) -> AsyncIterator[Batch]:
        """Raw records of the ledger in batches, from `start` to its present end.

        If `start` or `space` names a partition, only of that one; otherwise of all, one after the other.
        """
        only = start.partition if start is not None else None
        if only is None and space is not None:
            only = await self.partition_of(space)
        for partition, end in enumerate(await self._components.ledger.ends()):
            if only is not None and only != partition:
                continue
            first = start.offset if start is not None else 0
            async for batch in self._components.ledger.read(partition, first, end, space=space):
                yield batch

    async def status(self) -> Status:
        """The state of the ledger and its views. Folds nothing."""
        return await queries.status.status(self._components)

    async def verify(self, progress: Progress | None = None) -> VerifyReport:
        """Fold the ledger again and compare every row of every view with the result."""
        return await queries.verification.verify(self._components, progress)

    async def rebuild(
        self, progress: Progress | None = None, *, what: str = "views", accept: bool = False
    ) -> list[RebuildReport]:
        """Fold everything from offset zero beside the live `what` (views, or index), then cut over.

        Readers are served from the live generation meanwhile. The index reuses the vectors of texts that have not
        changed. Raises `NewDeadLetters`, unless `accept`, if the new generation lacks records that the live one has.
        """
        return await queries.rebuilds.rebuild(self._components, what, progress, accept=accept)

    async def reindex(self, model: str, progress: Progress | None = None) -> list[RebuildReport]:
        """Rebuild the index with the embedder `model` (see `Settings.embedder`), which computes all vectors again.

        Until the cutover the index answers with the old model; `abort_rebuild(what="index")` cancels the rebuild.
        """
        return await queries.rebuilds.reindex(self._components, model, progress)

    async def plan_rebuild(self, what: str = "views") -> list[RebuildPlan]:
        """What `rebuild` would do now. Changes nothing."""
        return await queries.rebuilds.plan_rebuild(self._components, what)

    async def abort_rebuild(self, what: str = "views") -> list[str]:
        """Cancel rebuilds that are in progress, and return the ids of the cancelled generations."""
        return await queries.rebuilds.abort_rebuild(self._components, what)

    async def dead_letters(self) -> list[DeadLetter]:
        """All records that the views could not apply, in order."""
        return await queries.dead_letters.list_dead_letters(self._components, self._progress)

    async def dead_letter(self, at: Position) -> DeadLetterDetail:
        """One dead letter with its content. Raises `OutOfRange` if there is none at that position."""
        return await queries.dead_letters.show_dead_letter(self._components, at, self._progress)

    async def retry_dead_letters(self, progress: Progress | None = None) -> list[DeadLetter]:
        """Rebuild if at least one dead letter can be applied now, and return the dead letters that remain."""
        return await queries.dead_letters.retry_dead_letters(self._components, progress)

    def _own_reactor(self) -> Reactor:
        if self._reactor is None:
            self._reactor = reactors.reactor.Reactor(
                self, self._components.ledger, self._make_reflector(), self._components.reactors_lock
            )
        return self._reactor

    async def _last_positions(self, partition: int | None) -> list[Position]:
        """The position of the last record of each partition that has any, or only of `partition`."""
        ends = enumerate(await self._components.ledger.ends())
        return [Position(number, end - 1) for number, end in ends if end and partition in (None, number)]

    def _scope(self, space: str, agent: str, as_of: AsOf | None) -> AgentScope:
        return queries.previews.AgentScope(
            self._components.ledger, space, agent, self._log_events, as_of, self._progress
        )

    def _salience_query(
        self, agent: str, query: str | None, top_k: int | None, turn: int | None, as_of: AsOf | None
    ) -> SalienceQuery:
        codec.check_name(agent, "agent")
        if top_k is not None and not 1 <= top_k <= self._log_events:
            raise InvalidEvent(f"top_k: between 1 and {self._log_events:,}, not {top_k}", path="top_k")
        if turn is not None and not 0 <= turn <= limits.TURN_MAX:
            raise InvalidEvent(f"turn: between 0 and {limits.TURN_MAX:,}, not {turn}", path="turn")
        return queries.salient.SalienceQuery(query or "", top_k, turn, as_of)

    def _views_of(self, table: Table[Row] | Log[Row]) -> ProjectionGroup:
        for views in self._components.groups():
            if table in views.builder.fold.tables:
                return views
        raise ProjectionError(f"{table.name!r} belongs to no projection that this memory was opened with")
