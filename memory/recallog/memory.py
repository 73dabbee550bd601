"""The facade: publish events, and query what agents remember. `Memory.admin` operates the ledger and the views."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, Unpack

import msgspec

from recallog import model, queries, reactors, retrieval
from recallog.access import MemoryAccess, add_parts
from recallog.admin import Admin
from recallog.operations import parameters, pipeline
from recallog.operations.configuration import AgentOptions, SpaceOptions
from recallog.operations.facade import Facade, all_operations, check_arguments, operation
from recallog.operations.operation import EXTERNAL, IN_PROCESS, RELEVANCE, RERANKER, TOKENS, GenAi, Scope
from recallog.operations.parameters import At, EndOptions, Filters, RecallOptions, SalienceOptions, TimelineOptions
from recallog.retrieval.channels import DEFAULT_CHANNELS, DOCUMENT, WEIGHTED, Fusion
from recallog.settings import Settings
from recallog_projections.concurrency import gather_limited
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import Position, limits, names, views
from recallog_schemas.errors import IndexUnavailable, InvalidArgument, RecallogError
from recallog_streams import positions
from recallog_streams.progress import Progress

if TYPE_CHECKING:
    from types import ModuleType

    from recallog.components import Components
    from recallog.extending import FactExtractor, Reflector, Summarizer, Synthesizer
    from recallog.model import Model
    from recallog.models import Parts
    from recallog.queries.salient import SalienceQuery
    from recallog.reactors.chat_model import ChatModel
    from recallog.reactors.loop import Background, ReactorLoop
    from recallog.reactors.reactor import Reactor
    from recallog.reading.read_session import ReadSession
    from recallog.retrieval.external import ExternalSource
    from recallog.retrieval.memory_index import MemoryIndex
    from recallog.retrieval.reranker import Reranker
    from recallog_projections.index.embedders.embedder import Embedder
    from recallog_projections.projection import Projection
    from recallog_schemas.views import (
        AgentSettingsView,
        AgentsView,
        AroundView,
        Catalogue,
        EntriesView,
        EpisodicView,
        ErasureReport,
        HistoryPage,
        KindsView,
        Lineage,
        MemoryDifference,
        PendingTrigger,
        PendingView,
        Published,
        Reaction,
        ReactionsView,
        RecallView,
        Recorded,
        ResumeView,
        SalientView,
        SceneView,
        SearchPage,
        SessionsView,
        SpaceDetail,
        SpaceSettingsView,
        SpacesView,
        TimelinePage,
    )

else:
    Parts = model.main_facade(model.load_installed())

Row = TypeVar("Row", bound=msgspec.Struct)

INDEX_WAIT_SECONDS = 60.0
"""How long `catch_up_index` waits for an index that makes no progress."""


class Memory(Parts):
    """Event-sourced memory of any number of agents.

    ```python
    async with Memory.open("./memory") as memory:
        await memory.publish(Event(space="village", agent="baker", kind="agent.spoke", payload={"text": "Bread!"}))
        print((await memory.episodic("village", "baker")).format())
    ```

    Any number of processes may open one folder. Queries see everything that was in the ledger when they began.

    Queries about a space take `after` (wait until the views have processed a position of your own; `DeadLettered` if
    that record is a dead letter) and `as_of`: a position (the fold up to and including it) or a time (without events
    that happened later). An unknown space or agent has an empty view, whose `known` is false. Times and positions may
    be texts, and events dicts. An invalid argument raises `InvalidArgument`, which names it.
    """

    facades: ClassVar[Mapping[str, type[Facade]]] = {"admin": Admin, **model.facades(model.load_installed())}

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        add_parts(cls)

    def __init__(
        self,
        components: "Components | Callable[[], Components]",
        *,
        progress: Progress | None = None,
        reactors: "bool | Sequence[Reactor]" = False,
        chat_model: "ChatModel | None" = None,
        reflector: "Reflector | None" = None,
        extractor: "FactExtractor | None" = None,
        synthesizer: "Synthesizer | None" = None,
        summarizer: "Summarizer | None" = None,
        reranker: "Reranker | None" = None,
        external: "Mapping[str, ExternalSource] | None" = None,
        index: "MemoryIndex | None" = None,
        count_tokens: Callable[[str], int] | None = None,
        models: "Sequence[Model] | None" = None,
        count_accesses: bool = True,
    ) -> None:
        """A memory of built components, for example of `recallog.composition.assemble`, or of a function that builds
        them when they are first needed.

        Without `count_accesses`, queries do not publish counts of the entries that they show. The other arguments are
        those of `open`. The memory closes the components when it is closed.
        """
        _check_index(index)
        _check_reactors(reactors)
        given = {"reflector": reflector, "extractor": extractor, "synthesizer": synthesizer, "summarizer": summarizer}
        chosen = model.choose_models(models)
        self._access = MemoryAccess(components, progress, self, self._wake_reactor)
        self._access.chat_model = chat_model
        self._access.given = given
        self._access.sections = [each.prompt for each in chosen if each.prompt is not None]
        self._access.inventories = [each.inventory for each in chosen if each.inventory is not None]
        self._access.candidates = {each.name: each.candidates for each in chosen if each.candidates is not None}
        self._access.added_models = [
            each.name for each in chosen if not each.is_built_in and (each.candidates or each.prompt)
        ]
        self._models = chosen
        if count_accesses:
            self._access.observers = [each.observer(self._access) for each in chosen if each.observer is not None]
        self._access.relevance = index
        self._access.count_tokens = count_tokens
        self._reranker = reranker
        self._external = external
        self._own_reactors: Sequence[Reactor] = () if isinstance(reactors, bool) else tuple(reactors)
        self._in_background = reactors is not False
        self._reactor: ReactorLoop | None = None
        self._background: Background | None = None

    @classmethod
    def open(
        cls,
        home: str | PathLike[str] | Settings | None = None,
        *,
        projections: "Sequence[Projection]" = (),
        progress: Progress | None = None,
        reactors: "bool | Sequence[Reactor]" = False,
        chat_model: "ChatModel | None" = None,
        reflector: "Reflector | None" = None,
        extractor: "FactExtractor | None" = None,
        synthesizer: "Synthesizer | None" = None,
        summarizer: "Summarizer | None" = None,
        reranker: "Reranker | None" = None,
        external: "Mapping[str, ExternalSource] | None" = None,
        embedder: "Embedder | None" = None,
        index: "MemoryIndex | None" = None,
        count_tokens: Callable[[str], int] | None = None,
        models: "Sequence[Model] | None" = None,
    ) -> Self:
        """A memory in the folder `home`, which is created when it is first used, or with the given settings.

        Without `home`, environment variables name a ledger and a store of views (`RECALLOG_LEDGER` and
        `RECALLOG_VIEWS`: a cluster, whose workers maintain the views) or a folder (`RECALLOG_HOME`, else
        `./.recallog`).

        `projections` are projections of your own, each in a separate store; read them with `row` and `log_entries`.
        `progress` is called with (done, total) while a query has to build the views first.

        `reactors` are custom reactors: they answer the triggers of their kinds, and the built-in ones answer all
        others. With True or a list, even an empty one, and inside `async with`, triggers that fall due are answered in
        the background; otherwise `react` answers them.

        `chat_model` reflects, extracts facts, summarises and answers. The default is the model that `RECALLOG_MODEL`
        names, or else rules, offline. For a single purpose, or for a custom rule, there are `reflector` (writes
        beliefs), `extractor` (draws facts from turns, and for `long_term.extract_facts`), `synthesizer` (answers
        `long_term.reflect`) and `summarizer` (writes the summaries of conversations). The memory closes all of them
        when it is closed. `reranker` scores the best hits of `recall` again, each together with the query; there is
        none by default. `external` are functions that find memories elsewhere, by name, for
        `search(include_external=True)`.

        `embedder` computes the vectors of the semantic index, which this process then builds and queries, because no
        other process has the embedder. `index` measures the relevance of events to the query of `salient` and of a
        prompt's memory; `recall` does not use it. The memory closes the embedder when it is closed.

        `count_tokens` counts the tokens of a text for the budget of a prompt, for example those of your model's
        tokenizer; by default they are estimated.

        `models` are the memory models: by default those of Recallog and of installed packages. To add one of your own,
        pass `[*recallog.MODELS, yours]`.
        """
        settings = home if isinstance(home, Settings) else Settings.of_folder(home)
        _check_given(projections, progress, embedder)

        def compose() -> "Components":
            from recallog import composition

            return composition.compose(settings, projections, embedder=embedder, models=models)

        # If another process may answer queries, this process need not build components.
        is_served = settings.serves_index and not projections and embedder is None and models is None
        memory = cls._having(models)(
            compose if is_served else compose(),
            progress=progress,
            reactors=reactors,
            chat_model=chat_model,
            reflector=reflector,
            extractor=extractor,
            synthesizer=synthesizer,
            summarizer=summarizer,
            reranker=reranker,
            external=external,
            index=index,
            count_tokens=count_tokens,
            models=models,
            count_accesses=settings.count_accesses,
        )
        memory._access.settings = settings
        memory._access.tracing = settings.tracing()
        return memory

    @classmethod
    def in_memory(
        cls,
        *,
        projections: "Sequence[Projection]" = (),
        reactors: "bool | Sequence[Reactor]" = False,
        chat_model: "ChatModel | None" = None,
        reflector: "Reflector | None" = None,
        extractor: "FactExtractor | None" = None,
        synthesizer: "Synthesizer | None" = None,
        summarizer: "Summarizer | None" = None,
        reranker: "Reranker | None" = None,
        external: "Mapping[str, ExternalSource] | None" = None,
        index: "MemoryIndex | None" = None,
        count_tokens: Callable[[str], int] | None = None,
        models: "Sequence[Model] | None" = None,
    ) -> Self:
        """A memory that needs no folder and ends with this object: for tests and notebooks.

        There is no semantic index: `recall` compares words. See `open` for the arguments.
        """
        from recallog import composition

        _check_given(projections)
        settings = Settings.valid(ledger="memory://", views="memory://", index="off")
        components = composition.compose(settings, projections, models=models)
        return cls._having(models)(
            components,
            reactors=reactors,
            chat_model=chat_model,
            reflector=reflector,
            extractor=extractor,
            synthesizer=synthesizer,
            summarizer=summarizer,
            reranker=reranker,
            external=external,
            index=index,
            count_tokens=count_tokens,
            models=models,
        )

    @classmethod
    def _having(cls, models: "Sequence[Model] | None") -> type[Self]:
        """This class with the facades of `models`. None means the facades that it has."""
        if models is None:
            return cls
        facades = {"admin": Admin, **model.facades(model.check_models(models))}
        return type(cls.__name__, (cls,), {"__doc__": cls.__doc__, "__module__": cls.__module__, "facades": facades})

    async def __aenter__(self) -> Self:
        self._access.check_open()
        if self._in_background:
            self._background = reactors.loop.Background(self._own_reactor())
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
            await self._access.close()

    @property
    def _components(self) -> "Components":
        return self._access.components

    @cached_property
    def admin(self) -> Admin:
        """The interface for operators: status, verification, rebuilds, dead letters, records."""
        return Admin(self._access)

    @property
    def _host(self) -> MemoryAccess:
        return self._access

    @property
    def _own_parts(self) -> frozenset[str]:
        access = self._access
        given: dict[str, object] = {RERANKER: self._reranker, RELEVANCE: access.relevance, TOKENS: access.count_tokens}
        given[EXTERNAL] = self._external or (access.settings and access.settings.external) or None
        return frozenset(name for name, part in given.items() if part is not None)

    # Producers

    @operation(
        example='recallog publish village baker agent.spoke "The miller owes me nine sacks." --turn 3',
        scope=Scope.PUBLISH,
        gen_ai=GenAi.CREATE,
    )
    async def publish(self, event: parameters.EventFields) -> Position:
        """Write one event, and return its position once it is durable.

        Repeating the call is safe if the event has an id. See `publish_many`.
        """
        return (await self._access.publish([parameters.event(event)]))[0]

    @operation(
        example="recallog ingest events.jsonl", scope=Scope.PUBLISH, command="", gen_ai=GenAi.CREATE, records="items"
    )
    async def publish_many(self, events: parameters.ManyEvents) -> "Published":
        """Write events in order, all or none, and return their positions once they are durable.

        If an event with the id already exists in the space, the event is not written again, and the first position is
        returned. The first event counts, with its time: `at` is not compared.

        Raises `IdConflict` if the existing event has other content (but not for a second answer to a trigger, of which
        the first counts), `EventTooLarge`, `StorageError`, `UnknownOutcome`. Repeating the call with the same events is
        safe after each of them, and after a cancelled call, whose events may have been written.
        """
        return views.Published(items=tuple(await self._access.publish([parameters.event(each) for each in events])))

    @operation(
        example='recallog start-session village baker monday --title "Monday"', scope=Scope.PUBLISH, gen_ai=GenAi.CREATE
    )
    async def start_session(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: parameters.WrittenSession,
        *,
        title: parameters.SessionTitle = None,
        turn: parameters.WrittenTurn = 0,
        event_id: parameters.NewEventId = None,
    ) -> "Recorded":
        """Start a session of an agent, by an event `session.started`."""
        from recallog.commands.recording import record

        more = {"event_id": event_id, "session": session, "turn": turn}
        return await record(self._access, space, agent, "session.started", {"title": title}, **more)

    @operation(
        example='recallog end-session village baker monday --outcome "all loaves sold" --reward 1',
        scope=Scope.PUBLISH,
        gen_ai=GenAi.CREATE,
    )
    async def end_session(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: parameters.WrittenSession,
        *,
        turn: parameters.WrittenTurn = 0,
        event_id: parameters.NewEventId = None,
        **options: Unpack[EndOptions],
    ) -> "Recorded":
        """End a session of an agent with its outcome, by an event `session.ended`.

        Items that the agent marked in its working memory and in the scratchpad of the session become entries once a
        reactor runs. The same applies to the agents in `audience`.
        """
        from recallog.commands.recording import record

        payload = {"outcome": options.get("outcome"), "reward": options.get("reward")}
        more = {"event_id": event_id, "session": session, "turn": turn, "audience": options.get("audience")}
        return await record(self._access, space, agent, "session.ended", payload, **more)

    @operation(
        example='recallog configure-agent village baker --window 20 --persona "You bake bread."',
        scope=Scope.PUBLISH,
        idempotent=True,
    )
    async def configure_agent(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        event_id: parameters.NewEventId = None,
        **options: Unpack[AgentOptions],
    ) -> "AgentSettingsView":
        """Change settings of an agent, by an event `agent.configured`, and return all its settings.

        A setting that is not given keeps its value. A setting with fields is a JSON object, which replaces
        the former one as a whole. In Python and over HTTP, null resets a setting to its default.
        """
        from recallog.commands import settings

        return await settings.configure_agent(self._access, space, agent, options, event_id)

    @operation(
        example="recallog configure-space village --shared-kind world.observed --shared-kind agent.spoke",
        scope=Scope.OPERATE,
        idempotent=True,
    )
    async def configure_space(
        self,
        space: parameters.Space,
        *,
        by: parameters.SpaceAuthor = "operator",
        event_id: parameters.NewEventId = None,
        **options: Unpack[SpaceOptions],
    ) -> "SpaceSettingsView":
        """Change settings of a space, by an event `space.configured`, and return all its settings.

        A setting that is not given keeps its value. `kinds` changes the declarations that it names. In Python and
        over HTTP, null resets a setting to its default. Earlier events keep their readers and their text.

        Raises `Refused` if the space would declare more than 64 kinds; nothing has changed then.
        """
        from recallog.commands import settings

        return await settings.configure_space(self._access, space, by, options, event_id)

    # Erasing

    @operation(
        example='recallog erase village --subject alice --reason "asked to"',
        scope=Scope.FORGET,
        idempotent=True,
        destructive=True,
        gen_ai=GenAi.DELETE,
        records=None,
    )
    async def erase(
        self,
        space: parameters.Space,
        *,
        subject: parameters.ErasedSubject = None,
        entry: parameters.ErasedEntry = None,
        all: parameters.ErasesAll = False,  # noqa: A002
        reason: parameters.ErasureReason = None,
        by: parameters.SpaceAuthor = "operator",
        dry_run: parameters.TriesErasure = False,
        progress: parameters.Report = None,
    ) -> "ErasureReport":
        """Erase all data about a person, one entry, or a whole space, and everything made from it: facts, summaries,
        beliefs, compactions, lines of daily logs.

        The events stay in the ledger with their times and positions, but nobody can read their content: their key is
        destroyed. This call waits until views and index are built again; timelines then show `[erased]` in their place.
        With `dry_run`, nothing is erased, and the answer shows what would be erased. Repeating the call after an
        interruption is safe; once everything is erased, it returns 0.

        Events that are not sealed cannot be erased. The answer counts them and gives advice.

        Raises `ViewsBehind` if no worker of a cluster builds the views again; the keys are already destroyed then.
        """
        from recallog.commands import erasing

        unit = erasing.unit_of(space, subject, entry, all_=all)
        return await erasing.erase(self._access, [unit], by, reason, dry_run=dry_run, progress=progress)

    # Reactors

    @operation(example="recallog react village", scope=Scope.PUBLISH, idempotent=True)
    async def react(
        self,
        space: parameters.OneSpace = None,
        *,
        skip_reflection_loops: parameters.SkipReflectionLoops = False,
        progress: parameters.Report = None,
    ) -> "ReactionsView":
        """Answer the triggers that are due now, in one space or in all, each once.

        A reflection is answered by an `agent.reflected` event or, if the reflector fails after its retries, by
        `reflection.failed`, so that the memory continues. A turn of an agent that is set to `extract_facts` is answered
        by the facts that the extractor finds in it. Any other trigger is answered by events that a rule makes from it,
        the lines of daily logs last. These triggers are closed by `reaction.done` or `reaction.failed`. The next call
        answers triggers that fall due because of these answers. Agents that see only each other's reflections would
        never stop, so a call in a loop needs `skip_reflection_loops`.

        Reactors that call a model answer several agents at a time (`RECALLOG_REACTOR_AT_ONCE`). An answer that takes
        longer than `RECALLOG_REACTOR_DEADLINE_SECONDS` fails.

        Raises `ModelMisconfigured`, and any error of storage, once all other triggers are answered, and `LockTimeout`
        while another process reacts. `progress` is called with triggers (answered, to answer).
        """
        answered = await self._own_reactor().react(space, progress, skip_reflection_loops=skip_reflection_loops)
        return views.ReactionsView(items=tuple(answered))

    @check_arguments
    async def keep_reacting(
        self, space: parameters.OneSpace, on_error: Annotated[Callable[[RecallogError], float], IN_PROCESS]
    ) -> None:
        """Answer triggers as they fall due, in one space or in all, until cancelled.

        `on_error` is called with each error and returns the seconds to wait before the next try, or raises to end it.
        """
        await self._own_reactor().run(space, on_error)

    @check_arguments
    async def answer_due(
        self, space: parameters.Space, agent: parameters.Agent, trigger: parameters.TriggerId
    ) -> "Reaction | None":
        """Answer one trigger, as the agents of a cluster do; None if it is no longer due, or stays due.

        It stays due if no reactor answers triggers of its kind, if its reactor leaves it, and if this raises an error,
        such as `ModelMisconfigured` and those of storage.
        """
        return await self._own_reactor().answer_due(space, agent, trigger)

    def reactor_of(self, kind: str) -> "Reactor | None":
        """The reactor that answers triggers of a kind; None if there is none."""
        return self._own_reactor().answers.reactor_of(kind)

    @check_arguments
    async def tick(self, now: parameters.PresentTime) -> int:
        """Write `clock.ticked` at the time `now` to each space in which work has fallen due by then and no event has
        happened since. Returns the number of spaces. A space without events for 30 days does not get one."""
        return await self._own_reactor().tick(parameters.present(now))

    # Consumers

    @check_arguments
    async def catch_up(self, *, own: bool = True, partition: parameters.Partition = None) -> None:
        """Wait until the views have processed everything that the ledger holds now, in one partition or in all.

        Embedded, the views are folded here; on a cluster, workers fold them. This includes the views of your own
        projections, unless `own` is false. Raises `ViewsBehind` if the workers of a cluster take too long.
        """
        groups = self._components.groups() if own else [self._components.views]

        async def of_partition(last: Position) -> None:
            for group in groups:
                await group.access.catch_up(last.partition, last, self._access.progress)

        await gather_limited(of_partition, await self._last_positions(partition))

    @operation(example="recallog episodic village baker --as-of 0:120", gen_ai=GenAi.SEARCH, records="memories")
    async def episodic(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        window: parameters.Window = None,
        **at: Unpack[At],
    ) -> "EpisodicView":
        """The recent events of an agent: its own, those addressed to it, and shared ones, oldest first."""
        self._access.check_events("window", window)
        return await self._access.of_agent(space, agent, at, queries.timeline.window, window)

    @operation(
        example="recallog timeline village baker --kind agent.thought --limit 20", gen_ai=GenAi.SEARCH, records="items"
    )
    async def timeline(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        limit: parameters.PageLimit = limits.PAGE_ITEMS,
        before: parameters.PagePosition = None,
        **options: Unpack[TimelineOptions],
    ) -> "TimelinePage":
        """A page of the events that an agent may see, oldest first; the first page has the newest ones.

        `before` takes the `older` of a page and selects the page before it. The views retain the newest 2,000 of the
        agent's own and of the shared events; if older ones were dropped, the last page names the position from which it
        is complete.
        """
        has_fields = await self._access.passes(space, options.get("filter"), options)
        wanted = queries.timeline.EventFilter.of(options, has_fields)
        first = parameters.position(before)
        return await self._access.of_agent(space, agent, options, queries.timeline.page, wanted, limit, first)

    @operation(
        example="recallog timeline village baker --around e-17",
        command="timeline --around",
        gen_ai=GenAi.SEARCH,
        records=None,
    )
    async def around(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        event_id: parameters.EventId,
        *,
        entries_before: parameters.EntriesBefore = limits.AROUND_EVENTS,
        entries_after: parameters.EntriesAfter = limits.AROUND_EVENTS,
        **options: Unpack[TimelineOptions],
    ) -> "AroundView":
        """Previews of an event or entry, and of the nearest events before and after it that the agent may see.

        If the views have dropped the event, the space is folded up to it.

        Raises `OutOfRange` if there is no event with this id that the agent may see.
        """
        has_fields = await self._access.passes(space, options.get("filter"), options)
        wanted = queries.timeline.EventFilter.of(options, has_fields)
        request = queries.previews.AroundRequest(event_id, entries_before, entries_after, wanted.passes)
        return await self._access.of_agent(space, agent, options, queries.previews.around, request)

    @operation(example="recallog history village --kind agent.spoke --limit 20", records="items")
    async def history(
        self,
        space: parameters.Space,
        *,
        limit: parameters.PageLimit = limits.PAGE_ITEMS,
        start: parameters.FirstPosition = None,
        before: parameters.PagePosition = None,
        author: parameters.Author = None,
        containing: parameters.Containing = None,
        **options: Unpack[Filters],
    ) -> "HistoryPage":
        """A page of all events of a space, including bookkeeping and events without readers, oldest first; the first
        page has the newest ones.

        `before` takes the `older` of a page and selects the page before it. A page searches 5,000 records of the
        ledger: if few of them match, it has fewer events, or none, and an `older`.
        """
        events = queries.timeline.EventFilter.of(options, await self._access.passes(space, options.get("filter"), At()))
        wanted = queries.history.HistoryFilter(events, author, containing)
        first, last = parameters.position(start), parameters.position(before)
        return await self._access.of_space(space, At(), queries.history.page, wanted, limit, first, last)

    @operation(example="recallog lineage village baker e-17", gen_ai=GenAi.SEARCH, records="nodes")
    async def lineage(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        event_id: parameters.LineageId,
        *,
        depth: parameters.LineageDepth = None,
        further: parameters.FurtherIds = (),
        **at: Unpack[At],
    ) -> "Lineage":
        """The sources of an event or entry, and what was made from it: its cause and its sources, the events and
        entries that name it, and so on, over reflection, extraction, consolidation and compaction.

        The products are entries, and events that the views retain. For a trigger, the answer has the events that
        answered it. A prompt has no id: give the ids of what it shows, such as `entries` of `context`.
        """
        return await self._access.of_agent(space, agent, at, queries.lineage.lineage, event_id, further, depth)

    @operation(
        example="recallog diff village baker 0:20 --until 0:40",
        uses_index=True,
        asks=frozenset({RELEVANCE}),
        gen_ai=GenAi.SEARCH,
        records="changes",
    )
    async def diff(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        since: parameters.EarlierMoment,
        *,
        until: parameters.LaterMoment = None,
    ) -> "MemoryDifference":
        """The difference of an agent's memory between `since` and `until`: the items that entered it, those that left
        it and why, and those that changed.

        It compares the window of recent events, entries with their tiers, blocks of working memory, beliefs, and the
        prompt line by line. Each moment is a position or a time, like `as_of` of other queries.
        """
        access, difference = self._access, queries.difference
        inventories = difference.inventories_of(access.inventories)
        before = await access.of_agent(space, agent, At(as_of=since), difference.take, inventories)
        return await access.of_agent(space, agent, At(as_of=until), difference.compare, before, inventories)

    @operation(
        example='recallog salient village baker "who owes the miller?" --top-k 5',
        uses_index=True,
        asks=frozenset({RELEVANCE}),
        gen_ai=GenAi.SEARCH,
        records="memories",
    )
    async def salient(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        query: parameters.RelevanceQuery = None,
        *,
        top_k: parameters.SalientTopK = None,
        **options: Unpack[SalienceOptions],
    ) -> "SalientView":
        """The events that matter most to an agent now, of the newest 2,000 that it may see, oldest first.

        salience = 0.30 relevance to `query` + 0.40 recency + 0.30 importance, unless `agent.configured` sets other
        weights; without a query, relevance is 0. Relevance is semantic while the index is served (`recall` starts it)
        and has processed as much as the views; otherwise words are compared. `relevance_by` of the answer says which.
        """
        salience_query = self._salience_query(query, top_k, options)
        return await self._access.of_agent(space, agent, options, queries.salient.salient, salience_query)

    @operation(
        example='recallog recall village baker "who owes the miller?" --explain',
        uses_index=True,
        starts_index=("query",),
        asks=frozenset({RERANKER}),
        gen_ai=GenAi.SEARCH,
        records="hits",
    )
    async def recall(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        query: parameters.RecallQuery,
        *,
        top_k: parameters.RecallTopK = limits.RECALL_HITS,
        fusion: parameters.FusionMethod = WEIGHTED,
        wait_index: parameters.WaitIndex = False,
        **options: Unpack[RecallOptions],
    ) -> "RecallView":
        """The memories of an agent that best answer a question, best first, each with an explained score.

        These are events and entries that the agent may see; an entry is shown in its present form, as a
        `memory.retained` event. Candidates come from the index and, for records that the index has not processed yet,
        from the views: a record that was just published is found by its words. While the index is off, starting, down
        or being built, only words are compared, over the newest 2,000 events and 1,000 entries; unless the index is
        off, `degraded` of the answer says why. If an entry and its source both match, only the better one is a hit,
        and its `also` names the other.

        With a `preset`, only entries are ranked, by reciprocal ranks (k = 60), and `channels` selects channels of the
        preset. `four_channel`: meaning, words, entities that the query names or that are linked to them, and age, use
        and confidence. `hybrid`: meaning and words. A channel that fails is left out, and `degraded` names it.
        """
        return await self._recall(space, agent, query, top_k, fusion, wait_index, options)

    @operation(
        example='recallog search village baker "who owes the miller?" --limit 50',
        uses_index=True,
        starts_index=("query",),
        asks=frozenset({RERANKER, EXTERNAL}),
        gen_ai=GenAi.SEARCH,
        records="hits",
    )
    async def search(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        query: parameters.SearchQuery,
        *,
        limit: parameters.SearchLimit = limits.SEARCH_HITS,
        fusion: parameters.FusionMethod = WEIGHTED,
        wait_index: parameters.WaitIndex = False,
        include_external: parameters.IncludeExternal = False,
        external: parameters.ExternalNames = (),
        **options: Unpack[RecallOptions],
    ) -> "SearchPage":
        """Find memories as `recall` does, and return ids, previews and the size of each text in tokens.

        `around` shows the neighbours of a hit, and `entries` whole events. With `include_external`, the answer also has
        the results of the external sources with which the memory was opened, apart from the hits.
        """
        if include_external and (sources := self._external_sources):
            given = {"limit": limit, "fusion": fusion, "wait_index": wait_index, **options}
            searched = {"space": space, "agent": agent, "query": query, **given}
            found = await pipeline.answer(pipeline.of_memory(self, all_operations(type(self))["search"], searched))
            return await retrieval.external.add_external(found, sources, external, limit, self._access.deadline_seconds)
        page = queries.previews.page(await self._recall(space, agent, query, limit, fusion, wait_index, options), limit)
        return page.model_copy(update={"external_reason": retrieval.external.NO_SOURCE if include_external else None})

    async def _recall(
        self, space: str, agent: str, query: str, top_k: int, fusion: Fusion, wait_index: bool, options: RecallOptions
    ) -> "RecallView":
        if self._reranker is not None:
            given = {"top_k": max(top_k, limits.RERANKED_MEMORIES), "fusion": fusion, "wait_index": wait_index}
            asked = {"space": space, "agent": agent, "query": query, **given, **options}
            plain, operation = copy(self), all_operations(type(self))["recall"]
            plain._reranker = None
            # This answer does not count: only the hits that are shown count as read.
            best = await pipeline.answer(pipeline.of_memory(plain, operation, asked))
            return await retrieval.reranker.rerank(self._reranker, best, top_k, self._access.deadline_seconds)
        preset, channels, types = options.get("preset"), options.get("channels"), options.get("types")
        weights = retrieval.preset_weights.of_preset(
            preset, channels, types, options.get("vector_weight"), options.get("recency_weight")
        )
        has_fields = await self._access.passes(space, options.get("filter"), options)
        recall_query = retrieval.query.RecallQuery.create(
            space,
            agent,
            query,
            parameters.past_moment(options.get("as_of")),
            top_k=top_k,
            author=options.get("author"),
            kinds=options.get("kinds"),
            session=options.get("session"),
            since=parameters.moment(options.get("since")),
            until=parameters.moment(options.get("until")),
            now=parameters.moment(options.get("now")),
            min_similarity=options.get("min_similarity"),
            types=types,
            documents=types is not None and DOCUMENT in types,
            tiers=options.get("tiers"),
            min_importance=options.get("min_importance"),
            has_fields=has_fields,
            fusion=fusion,
            channels=frozenset(weights if preset else DEFAULT_CHANNELS if channels is None else channels),
            preset=preset,
            weights=weights,
        )
        if wait_index:
            await self.catch_up_index(partition=await self.admin.partition_of(space))
        found = await self._access.of_agent(space, agent, options, retrieval.recall.recall, recall_query)
        if wait_index and found.index is None and found.degraded is not None:
            raise IndexUnavailable(f"the index cannot answer after waiting for it: {found.degraded}")
        return found

    @operation(example="recallog entries village baker e-17 e-23 --json", gen_ai=GenAi.SEARCH, records="entries")
    async def entries(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        ids: parameters.EventIds,
        **at: Unpack[At],
    ) -> "EntriesView":
        """Whole events by id, in the order of the ids; a repeated id counts once. Entries are in their present form.

        Events that the agent may not see are left out. If the views have dropped some of the events, the space is
        folded up to the newest of these.
        """
        return await self._access.of_agent(space, agent, at, queries.previews.entries, ids)

    @check_arguments
    async def catch_up_index(
        self, progress: parameters.Report = None, *, partition: parameters.Partition = None
    ) -> None:
        """Wait until the index has processed everything that the ledger holds now, in one partition or in all.

        Returns at once if the index is off. Raises `ViewsBehind` if it makes no progress for a minute, and
        `IndexUnavailable`.
        """
        if self._components.index is None:
            return
        for last in await self._last_positions(partition):
            await self._components.index.wait(last.partition, last.offset, INDEX_WAIT_SECONDS, progress)

    async def start_index(self) -> bool:
        """Start the process that maintains the index of a folder, and return at once. Returns False if there is no such
        process.

        There is no such process if the index is off, or if its engine is a server. `recall` starts the process too.
        With the setting `index_idle_seconds` it outlives this program. A memory that was opened with an embedder
        maintains the index itself, from this call on. Raises `IndexUnavailable` if it cannot be started.
        """
        return self._components.index is not None and await self._components.index.begin()

    @operation(example="recallog scene village --as-of 0:120", shared=True, gen_ai=GenAi.SEARCH, records="events")
    async def scene(self, space: parameters.Space, **at: Unpack[At]) -> "SceneView":
        """The newest shared event of each scene kind, oldest first: what all agents of the space see.

        `space.configured {scene_kinds}` names the kinds; the default is `world.observed` and `run.started`.
        """
        return await self._access.of_space(space, at, queries.scene.scene_of)

    @operation(example="recallog agent-settings village baker")
    async def agent_settings(
        self, space: parameters.Space, agent: parameters.Agent, **at: Unpack[At]
    ) -> "AgentSettingsView":
        """The settings of an agent, with defaults. `agent.configured` events change them."""
        return await self._access.of_agent(space, agent, at, queries.spaces.agent_settings)

    @operation(example="recallog pending village")
    async def pending(
        self,
        space: parameters.OneSpace = None,
        *,
        partition: parameters.Partition = None,
        limit: parameters.ListLimit = limits.PAGE_ITEMS_MAX,
        cursor: parameters.Cursor = None,
    ) -> "PendingView":
        """A page of the triggers that are due in one space, in all spaces of one partition, or in all, by space and
        agent.

        `why` says why a trigger is not answered: no reactor answers its kind, a model is misconfigured, or attempts of
        this process have failed. Attempts of other processes are not known to it.
        """
        access = self._access
        found = await queries.due.of_memory(access.components, access.router, self._since_of, space, partition)
        if found:
            loop = self._own_reactor()
            found = [each.model_copy(update={"why": loop.why(each.trigger, each.kind)}) for each in found]
        found.sort(key=lambda trigger: (trigger.space, trigger.agent, trigger.trigger))
        last = tuple(names.split(":", cursor or "", 3))
        following = [each for each in found if (each.space, each.agent, each.trigger) > last]
        return views.PendingView(**views.PendingView.fields_of(following, limit))

    @operation(example="recallog spaces --json")
    async def spaces(
        self, *, limit: parameters.ListLimit = limits.PAGE_ITEMS_MAX, cursor: parameters.Cursor = None
    ) -> "SpacesView":
        """A page of the spaces with their counts, by name."""
        found = await self._access.router.of_all(
            partial(queries.spaces.spaces, cursor=cursor, most=limit + 1)  # one more shows whether there are more
        )
        return views.SpacesView(**views.SpacesView.fields_of(sorted(found, key=lambda space: space.space), limit))

    @operation(example="recallog agents village")
    async def agents(
        self,
        space: parameters.Space,
        *,
        limit: parameters.ListLimit = limits.PAGE_ITEMS_MAX,
        cursor: parameters.Cursor = None,
    ) -> "AgentsView":
        """A page of the agents that have acted in a space, with their counts, by name."""
        return await self._access.of_space(space, At(), queries.spaces.agents, cursor, limit)

    @operation(example="recallog sessions village")
    async def sessions(
        self,
        space: parameters.Space,
        *,
        limit: parameters.ListLimit = limits.PAGE_ITEMS_MAX,
        cursor: parameters.Cursor = None,
    ) -> "SessionsView":
        """A page of the sessions of a space with their counts, the one with the newest event first."""
        return await self._access.of_space(space, At(), queries.spaces.sessions, cursor, limit)

    @operation(example="recallog resume village --agent baker")
    async def resume(
        self, space: parameters.Space, *, agent: parameters.OneAgent = None, **at: Unpack[At]
    ) -> "ResumeView":
        """Where a space stopped, for a program that continues after a restart: last session, turn, next turn.

        The session is that of the newest memory that has one. The turn is the highest in that session, or in all if no
        memory has a session. With `agent`, only memories that this agent may see count, among the newest 2,000 of its
        own events and of the shared events; without it, the memories of all agents count. Bookkeeping and entries do
        not count.
        """
        if agent is None:
            return await self._access.of_space(space, at, queries.spaces.resume)
        return await self._access.of_agent(space, agent, at, queries.spaces.resume_of_agent)

    @operation(example="recallog status --space village", command="status --space")
    async def space(self, space: parameters.Space) -> "SpaceDetail":
        """The activity in a space: its agents, sessions and kinds with their counts.

        It has three complete tables without a limit; `agents` and `sessions` list two of them page by page.
        """
        return await self._access.of_space(space, At(), queries.spaces.space_detail)

    @operation(example="recallog schema kinds --space village", command="schema kinds --space", shared=True)
    async def kinds(self, space: parameters.Space, **at: Unpack[At]) -> "KindsView":
        """The kinds of the catalogue and those that a space declares, each with its importance, text rule and readers.

        `space.configured {kinds}` declares them.
        """
        return await self._access.of_space(space, at, queries.spaces.kinds_of)

    @operation(example="recallog schema kinds", command="schema kinds", shared=True)
    async def catalogue(
        self, *, limit: parameters.ListLimit = limits.PAGE_ITEMS_MAX, cursor: parameters.Cursor = None
    ) -> "Catalogue":
        """All kinds: those of the catalogue, then a page of the kinds that spaces declare, by space and name."""
        declared = await self._access.router.of_all(queries.spaces.declared_kinds)
        return views.Catalogue.page(declared, limit, cursor)

    @check_arguments
    async def row(
        self,
        table: parameters.OwnTable[Row],
        space: parameters.Space,
        owner: parameters.Owner = "",
        key: str = "",
        **at: Unpack[At],
    ) -> Row | None:
        """One row of a projection of your own, once the views have processed `after`, or as of the past."""

        async def query(reading: "ReadSession") -> Row | None:
            return (await reading.snapshot([RowKey(table.name, space, owner, key)])).row(table, space, owner, key)

        return await self._access.of_views(table, space, at, query)

    @check_arguments
    async def log_entries(
        self,
        log: parameters.OwnLog[Row],
        space: parameters.Space,
        owner: parameters.Owner = "",
        *,
        newest: parameters.LogEntries = limits.PAGE_ITEMS,
        **at: Unpack[At],
    ) -> list[Row]:
        """The newest entries of a log of a projection of your own, oldest first, once the views have processed `after`,
        or as of the past."""

        async def query(reading: "ReadSession") -> list[Row]:
            snapshot = await reading.snapshot(logs=[(LogName(log.name, space, owner), newest)])
            return [log.decode(data) for data in snapshot.tail(log, space, owner).entries]

        return await self._access.of_views(log, space, at, query)

    async def _recall_for_prompt(
        self, query: "retrieval.query.RecallQuery", compared: int, *, past: bool
    ) -> "RecallView":
        """The answer to a query of another process, as of the past that it names, or once the views have caught up."""
        partition = await self.admin.partition_of(query.space)
        position = None if query.offset_until is None else Position(partition, query.offset_until)
        at = At(as_of=query.at_until or position) if past else At(after=position)
        return await self._access.of_agent(query.space, query.agent, at, retrieval.recall.recall, query, compared)

    async def _since_of(self, model: "ModuleType", trigger: "PendingTrigger") -> Position | None:
        """The position of the record that made a trigger due, for triggers that fall due by a count."""
        since: Position | None = await self._access.of_agent(trigger.space, trigger.agent, At(), model.since)
        return since

    @cached_property
    def _external_sources(self) -> "Mapping[str, ExternalSource]":
        settings = self._access.settings
        if self._external is None and settings is not None and settings.external:
            from recallog import loading

            return loading.external(settings.external)
        return self._external or {}

    def _wake_reactor(self) -> None:
        """Wake the reactor in the background: events have been published."""
        if self._background is not None:
            self._background.wake()

    def _own_reactor(self) -> "ReactorLoop":
        self._access.check_open()
        if self._reactor is None:
            from recallog import reacting

            self._reactor = reacting.loop_of(self, self._access, self._models, self._own_reactors)
        return self._reactor

    async def _last_positions(self, partition: int | None) -> list[Position]:
        """The position of the last record of each partition that has records, or only of `partition`."""
        ends = await self._components.ledger.ends()
        if partition is not None:
            positions.check_partition(len(ends), partition, "partition")
        return [Position(number, end - 1) for number, end in enumerate(ends) if end and partition in (None, number)]

    def _salience_query(self, query: str | None, top_k: int | None, options: SalienceOptions) -> "SalienceQuery":
        self._access.check_events("top_k", top_k)
        as_of = parameters.past_moment(options.get("as_of"))
        return queries.salient.SalienceQuery(query or "", top_k, options.get("turn"), as_of)


add_parts(Memory)


def _check_given(projections: object, progress: object = None, embedder: object = None) -> None:
    """Raise `InvalidArgument` for invalid projections, callbacks or embedders."""
    if isinstance(projections, str | bytes) or not isinstance(projections, Sequence):
        raise InvalidArgument("projections: should be a list of projections", path="projections", rule="sequence_type")
    for index, each in enumerate(projections):
        if isinstance(each, type) or not callable(getattr(each, "apply", None)):
            path = f"projections.{index}"
            raise InvalidArgument(f"{path}: should be a projection, an object", path=path, rule="is_instance_of")
    if progress is not None and not callable(progress):
        raise InvalidArgument("progress: should be a function", path="progress", rule="callable_type")
    if embedder is not None:
        from recallog_projections.index.embedders.embedder import Embedder

        if not isinstance(embedder, Embedder):
            message = "embedder: should be an object of a class that inherits from recallog.extending.Embedder"
            raise InvalidArgument(message, path="embedder", rule="is_instance_of")


def _check_reactors(given: object) -> None:
    """Raise `InvalidArgument` for invalid reactors, and if two reactors answer the same kind."""
    if isinstance(given, bool):
        return
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        message = "reactors: should be True, False or a list of reactors"
        raise InvalidArgument(message, path="reactors", rule="sequence_type")
    from recallog.reactors.reactor import Reactor

    answered = dict[str, int]()
    for index, each in enumerate(given):
        path = f"reactors.{index}"
        if not isinstance(each, Reactor):
            message = f"{path}: should be an object of a class that inherits from recallog.extending.Reactor"
            raise InvalidArgument(message, path=path, rule="is_instance_of")
        for kind in each.kinds:
            if answered.setdefault(kind, index) != index:
                message = f"{path}: reactors.{answered[kind]} answers {kind} too; each kind of trigger has one reactor"
                raise InvalidArgument(message, path=path, rule="unique")


def _check_index(index: object) -> None:
    """Raise `InvalidArgument` for an object without the methods of an index."""
    if index is None:
        return
    from recallog.retrieval.memory_index import MemoryIndex

    if isinstance(index, type) or not isinstance(index, MemoryIndex):
        message = "index: should be an object with the methods index(events) and search(query, k)"
        raise InvalidArgument(message, path="index", rule="is_instance_of")
