"""The shared parts of the facades of one memory: its components, publishing, queries of one space, and delegation of
operations.

`Memory` has one `MemoryAccess`, and each further facade (`Memory.facades`) receives it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from recallog import mistakes
from recallog.index import delegation, messages, remote
from recallog.operations import parameters
from recallog.operations.facade import Facade
from recallog.operations.operation import Scope
from recallog.operations.parameters import At
from recallog.operations.pipeline import Call, Host
from recallog_projections import notices
from recallog_projections.tables import Log, Table
from recallog_schemas import Event, Position, kinds, limits, rules
from recallog_schemas.docstrings import paragraphs
from recallog_schemas.errors import InvalidArgument, ProjectionError, RecallogError, SourcesErased, StorageError
from recallog_streams.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from recallog.components import Components
    from recallog.index.served_index import ServedIndex
    from recallog.queries.difference import Inventory
    from recallog.reactors.asker import Asked, Asker
    from recallog.reactors.chat_model import ChatModel
    from recallog.reading.filters import Passes
    from recallog.reading.projection_group import ProjectionGroup
    from recallog.reading.query_router import QueryRouter
    from recallog.reading.read_session import ReadSession
    from recallog.reading.readings import AgentReading, SpaceReading
    from recallog.retrieval.memory_index import FedIndex, MemoryIndex
    from recallog.retrieval.searcher import Searcher
    from recallog.retrieval.sources import CandidateSource
    from recallog.retrieval.term_cache import TermCache
    from recallog.scrubbing import Scrubber
    from recallog.settings import Settings
    from recallog_streams.ledgers.ledger import Times
    from recallog_streams.tracing import Tracing

Further = ParamSpec("Further")
Result = TypeVar("Result")
Reading = TypeVar("Reading", bound="SpaceReading")
Verdict = TypeVar("Verdict")


class Observer(Protocol):
    """Receives the answers to the calls of one memory, and may publish events about them later."""

    def observe(self, operation: str, arguments: Mapping[str, Any], answer: Any) -> None:
        """Called with each answer; `operation` is the qualified name."""

    async def flush(self) -> None:
        """Publish the given events. Called before the memory publishes."""

    async def close(self) -> None:
        """Publish the remaining events, and stop."""


Section = Callable[["MemoryAccess", str, str, At], Awaitable[tuple[str, str] | None]]
"""A section of the prompt of an agent: heading and text, of the state that `At` names; None if there is none.

It is called with the space and the agent. If the prompt exceeds its budget, the lines of this section are left out
first.
"""
Candidates = Callable[["MemoryAccess", At], "CandidateSource"]
"""Makes the candidate source of a model for one query of the state that `At` names."""
_DECLARED_SECONDS = 1.0
"""How long publishing a kind that is probably misspelt waits for the declarations of its space."""
_VERDICTS_MAX = 1_024
"""The most verdicts on names that a memory caches, for each sort of name."""


class MemoryAccess(Host):
    """Access to one memory for its facades and for the handlers of commands."""

    def __init__(
        self,
        components: "Components | Callable[[], Components]",
        progress: Progress | None,
        memory: Any,
        published: Callable[[], None],
    ) -> None:
        """`components` are built, or a function that builds them when they are first needed.

        `progress` is called with (done, total) while a query must build the views first, and `published` after each
        append, even by the process that serves the index. `memory` is the `recallog.Memory`.
        """
        self.memory = memory
        self._published = published
        self.settings: Settings | None = None
        """The settings of the memory; None if it was made of built components."""
        self.tracing: Tracing | None = None
        """Makes the spans of operations; None if telemetry is off."""
        self.progress = progress
        self._built: Components | None = None if callable(components) else components
        self._compose = components if callable(components) else lambda: components
        self._closed = False
        self.sections: Sequence[Section] = ()
        """The sections that models add to prompts."""
        self.inventories: Sequence[Callable[[], Inventory]] = ()
        """Makers of the inventories of models."""
        self.candidates: Mapping[str, Candidates] = {}
        """Functions that make the candidate sources of models that are not built in, by the names of the models."""
        self.added_models: Sequence[str] = ()
        """The models that are not built in and take part in recall or prompts. The process that serves the index must
        have them."""
        self.observers: Sequence[Observer] = ()
        """The observers of answers to calls."""
        self.relevance: MemoryIndex | None = None
        """The program's own index, which measures the relevance of events to a query."""
        self.count_tokens: Callable[[str], int] | None = None
        """The program's own counter of the tokens of prompts."""
        self.given: Mapping[str, Any] = {}
        """The program's own objects that call models, by the name of their `Asker`."""
        self.chat_model: ChatModel | None = None
        """The program's own chat model for all other purposes."""
        self._askers: dict[str, Any] = {}
        self._chat_models: dict[str, ChatModel] = {}
        """The models by the URLs of the settings."""
        self._near_agents: dict[tuple[str, str], str | None] = {}
        """By space and the name of an agent that was never seen: the agent that was probably meant."""
        self._declared: dict[tuple[str, str], bool] = {}
        """Whether a space declares a kind, by space and kind."""

    def check_open(self) -> None:
        """Raise `StorageError` if the memory was closed."""
        if self._closed:
            raise StorageError("the memory is closed; open it again")

    async def close(self) -> None:
        """Close files and connections. Later calls raise `StorageError`."""
        if not self._closed:
            for observer in self.observers:
                await observer.close()
        self._closed = True
        models = [*self._chat_models.values(), self.chat_model]
        for asked in (*self._askers.values(), *models):
            if asked is not None:
                await asked.close()
        if self._built is not None:
            await self._built.close()

    @property
    def components(self) -> "Components":
        """The components, built on first use. Raises `StorageError` if the memory was closed."""
        self.check_open()
        if self._built is None:
            self._built = self._compose()
        return self._built

    def asker(self, asker: "Asker[Asked]") -> "Asked":
        """The program's own object for a purpose, or else the one that the settings name. It is the same one until the
        memory is closed.

        Raises `ModelMisconfigured`, and `StorageError` if the memory was closed.
        """
        self.check_open()
        if asker.name not in self._askers:
            given = self.given.get(asker.name)
            self._askers[asker.name] = self._make_view(asker) if given is None else given
        found: Asked = self._askers[asker.name]
        return found

    def _make_view(self, asker: "Asker[Asked]") -> "Asked":
        if self.chat_model is not None:
            return asker.by_model(self.chat_model)
        from recallog.reactors import model_settings

        url = model_settings.named_model(self.settings, asker.use)
        if self.settings is None or url is None:
            return asker.offline()
        if url not in self._chat_models:
            self._chat_models[url] = model_settings.endpoint_of(self.settings, url)
        return asker.by_model(self._chat_models[url])

    @cached_property
    def scrubber(self) -> "Scrubber | None":
        """Replaces secrets and personal data before they are stored; None if it is off. Raises `SettingsError`."""
        if self.settings is None or not self.settings.scrub:
            return None
        from recallog.scrubbing import Scrubber

        return Scrubber.of(self.settings.scrub)

    @cached_property
    def router(self) -> "QueryRouter":
        """Runs queries on the views."""
        from recallog.reading.query_router import QueryRouter

        return QueryRouter(self.components.ledger, self.components.views, self.progress)

    @cached_property
    def term_cache(self) -> "TermCache":
        """The cached terms of the texts that queries by words have compared."""
        from recallog.retrieval.term_cache import TermCache

        return TermCache()

    def searcher(self, options: At) -> "Searcher":
        """The searcher of a query for memories, in the state that its options name."""
        from recallog.retrieval.searcher import Searcher

        at = parameters.state(options)
        added = {name: partial(make, self, at) for name, make in self.candidates.items()}
        return Searcher(self.components.index, self.term_cache, self._fed_index, added)

    @cached_property
    def _fed_index(self) -> "FedIndex | None":
        """The program's own index, which receives the events that queries read; None without one."""
        from recallog.retrieval.memory_index import FedIndex

        return None if self.relevance is None else FedIndex(self.relevance)

    def check_events(self, path: str, events: int | None) -> None:
        """Raise `InvalidArgument` for more events than the logs of this memory retain."""
        if events is not None and events > self.log_events:
            message = f"{path}: at most {self.log_events:,}, the events that the views retain, not {events:,}"
            raise InvalidArgument(message, path=path, rule="less_than_equal")

    @cached_property
    def log_events(self) -> int:
        """The number of newest events that each log of the views retains."""
        return self.components.log_events if self.settings is None else self.settings.log_events

    @property
    def deadline_seconds(self) -> float:
        """How long a call waits for another process, or for a function of the program."""
        return limits.DEADLINE_SECONDS if self.settings is None else self.settings.deadline_seconds

    @cached_property
    def served_home(self) -> "Path | None":
        """The folder whose index another process serves; None if this process can use the index, or if it is off."""
        if self._built is None and self.settings is not None:
            return self.settings.home if self.settings.serves_index else None
        from recallog.index.served_index import ServedIndex

        index = self.components.index
        return index.home if isinstance(index, ServedIndex) else None

    async def publish(self, events: Sequence[Event], appended: "Times" = None) -> list[Position]:
        """Append the events of a caller, and warn the caller about names in them that are probably misspelt."""
        positions = await self.append(events, appended)
        await self.tell_mistakes(events)
        return positions

    async def append(
        self, events: Sequence[Event], appended: "Times" = None, keys: Collection[str] = ()
    ) -> list[Position]:
        """Write events, all or none, and return their positions once they are durable. See `Memory.publish_many`.

        `appended` as in `Ledger.append`. `keys` are the keys of the sources of all of them, see `keys_at`. The caller
        is warned about times that are ahead.
        """
        await self.publish_reads()
        positions = await self.append_silently(events, appended, keys)
        self._published()
        mistakes.tell_ahead(events)
        return positions

    async def append_silently(
        self, events: Sequence[Event], appended: "Times" = None, keys: Collection[str] = ()
    ) -> list[Position]:
        """Write events of an observer. Observers do not publish other events first, and no reactor is woken."""
        with_rules, with_sources = [rules.with_newest_rule(event) for event in events], kinds.kinds_with_sources()
        if self.scrubber is not None:
            with_rules = self.scrubber.scrub_events(with_rules)
        derived = [event for event in events if event.kind in with_sources]
        if not derived and not keys:
            return await self.components.append(with_rules, appended)
        from recallog_streams.sealing import made_from  # a query that another process answers does not need it

        of_events = {(event.space, event.id): {*keys} for event in events} if keys else {}
        for event in derived:
            if found := await self._keys_of(event):
                of_events[event.space, event.id] = {*keys, *found}
        try:
            with made_from(of_events):
                return await self.components.append(with_rules, appended)
        except SourcesErased:
            if not (repeated := await self._find_repeated(derived)):
                raise
        with made_from({name: of_event for name, of_event in of_events.items() if name not in repeated}):
            return await self.components.append(with_rules, appended)

    async def _find_repeated(self, events: Iterable[Event]) -> set[tuple[str, str]]:
        """The spaces and ids of the events that are in the ledger. An event that was erased with its sources may be
        sent again."""
        names = [(each.space, each.id) for each in events]
        return {name for name in names if await self.components.ledger.find(*name) is not None}

    async def _keys_of(self, event: Event) -> set[str]:
        """The ids of the keys of the events and entries that an event names as its sources."""
        ledger, ids = self.components.ledger, event.payload.get(kinds.kind_of(event.kind).sources)
        if not ids or await ledger.sealing.refresh() is None:
            return set()
        from recallog.queries import event_lookup

        offsets = await self.of_space(event.space, At(), event_lookup.offsets_of, ledger, event.space, ids)
        return await self.keys_at(event.space, offsets.values())

    async def keys_at(self, space: str, offsets: Iterable[int]) -> set[str]:
        """The ids of the keys of the records of a space at some offsets. Events that are made from these records and
        appended with their keys are erased with them."""
        from recallog_streams import erasing

        ledger = self.components.ledger
        await ledger.open()
        return await erasing.keys_at(ledger, ledger.partition_of(space), offsets)

    async def catch_up(self, views: "ProjectionGroup", partition: int) -> None:
        """Wait until `views` have processed what a partition holds now. Raises `ViewsBehind`."""
        end = (await self.components.ledger.ends())[partition]
        if end:
            await views.access.catch_up(partition, Position(partition, end - 1), self.progress)

    async def of_agent(
        self,
        space: str,
        agent: str,
        at: At,
        handler: "Callable[Concatenate[AgentReading, Further], Awaitable[Result]]",
        /,
        *further: Further.args,
        **more: Further.kwargs,
    ) -> Result:
        """The answer of `handler` about an agent. `at` names the views; `further` and `more` are passed to the
        handler."""
        from recallog.reading.readings import AgentReading

        return await self._route(space, at, partial(AgentReading, agent=agent), handler, *further, **more)

    async def of_space(
        self,
        space: str,
        at: At,
        handler: "Callable[Concatenate[SpaceReading, Further], Awaitable[Result]]",
        /,
        *further: Further.args,
        **more: Further.kwargs,
    ) -> Result:
        """The answer of `handler` about a space. `at` names the views; `further` and `more` are passed to the
        handler."""
        from recallog.reading.readings import SpaceReading

        return await self._route(space, at, SpaceReading, handler, *further, **more)

    async def passes(self, space: str, given: "Mapping[str, Any] | str | None", at: At) -> "Passes | None":
        """The predicate of a validated filter, with the source classes of a space; None without one."""
        if given is None:
            return None
        from recallog.reading import filters, source_classes

        valid = cast("Mapping[str, Any]", given)
        if not filters.names_trust(valid):
            return filters.compile_filter(valid)
        return filters.compile_filter(valid, sources=await self.of_space(space, at, source_classes.read_sources))

    def _route(
        self,
        space: str,
        at: At,
        make_reading: "Callable[..., Reading]",
        handler: "Callable[Concatenate[Reading, Further], Awaitable[Result]]",
        /,
        *further: Further.args,
        **more: Further.kwargs,
    ) -> "Awaitable[Result]":
        after, as_of = parameters.position(at.get("after")), parameters.past_moment(at.get("as_of"))

        def query(session: "ReadSession") -> "Awaitable[Result]":
            reading = make_reading(
                session.store,
                session.partition,
                session.source,
                space=space,
                ledger=self.components.ledger,
                log_events=self.log_events,
                as_of=as_of,
                progress=self.progress,
                past_at=partial(self.router.past_at, space, as_of),
                make_searcher=partial(self.searcher, at),
            )
            return handler(reading, *further, **more)

        return self.router.of_space(space, query, after, as_of)

    async def of_views(
        self, table: Table[Any] | Log[Any], space: str, at: At, query: "Callable[[ReadSession], Awaitable[Result]]"
    ) -> Result:
        """The result of a query of the views that have a table or a log: the built-in views, or those of the program.

        Raises `ProjectionError` if no projection of this memory has it.
        """
        after, as_of = parameters.position(at.get("after")), parameters.past_moment(at.get("as_of"))
        return await self.router.of_space(space, query, after, as_of, self._views_of(table))

    def _views_of(self, table: Table[Any] | Log[Any]) -> "ProjectionGroup":
        for group in self.components.groups():
            if table in group.builder.fold.tables:
                return group
        raise ProjectionError(f"{table.name!r} belongs to no projection that this memory was opened with")

    def delegate(self, call: Call) -> Awaitable[Any] | None:
        """The answer of the process that serves the index, if the call may need the index and it is served."""
        self.check_open()
        if call.operation.maintains_index:
            return self._on_served_index(call)
        if not call.operation.uses_index or call.own_parts or self.served_home is None:
            return None
        return self._delegate(call, self.served_home)

    async def _delegate(self, call: Call, home: "Path") -> Any:
        """The answer of the process that serves the index, or without an index if it cannot answer.

        With `wait_index`, only that process answers, once its index has processed the whole ledger. If
        that process ends meanwhile, the call is executed again.
        """
        writes = call.operation.scope is not Scope.READ
        if writes:
            call.make_repeatable()
            await self.publish_reads()
        waits = bool(call.arguments.get("wait_index"))

        async def serve() -> Any:
            progress = call.callbacks.get("progress", self.progress)
            answer = await remote.call(home, self._message(call), progress, self.deadline_seconds, patient=waits)
            if writes:
                self._published()
                if self.scrubber is not None:
                    self.scrubber.scrub_given(call.arguments)  # only to notify the caller: it was scrubbed there
            return call.operation.from_json(answer)

        async def start() -> None:
            index = cast("ServedIndex", self.components.index)
            await (index.serve() if call.starts_index else index.open(0))

        if not waits:
            return await delegation.answer(serve, start, call.execute)
        partition = await self.memory.admin.partition_of(call.arguments["space"])
        return await delegation.answer_after(partial(self.memory.catch_up_index, partition=partition), serve)

    def _on_served_index(self, call: Call) -> Awaitable[Any] | None:
        """The answer of the process that serves the index. It is started if it does not run. None if no process serves
        the index, or if the call is about the views."""
        from recallog.index.served_index import ServedIndex

        what, index = call.operation.parameters.get("what"), self.components.index
        is_about_index = what is None or call.arguments.get("what", what.default) == "index"
        if not is_about_index or not isinstance(index, ServedIndex):
            return None

        async def serve() -> Any:
            await index.start()
            progress = call.callbacks.get("progress")
            answer = await remote.call(index.home, self._message(call), progress, index.deadline_seconds, patient=True)
            return call.operation.from_json(answer)

        return serve()

    def _message(self, call: Call) -> messages.Perform:
        asked = delegation.encode(call.arguments)
        scrub, seal = ("", None) if self.settings is None else (self.settings.scrub, self.settings.seal)
        return messages.Perform(call.operation.qualified_name, asked, self.log_events, self.added_models, scrub, seal)

    async def count(self, call: Call, answer: Any) -> None:
        """Count the entries in an answer as read, and warn the caller about an agent that is probably misspelt."""
        operation, valid = call.operation, call.arguments
        for observer in self.observers:
            observer.observe(operation.qualified_name, valid, answer)
        if operation.read_only and valid.get("agent") is not None and getattr(answer, "known", True) is False:
            await self._tell_agent(valid["space"], valid["agent"])

    async def tell_mistakes(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind == "space.configured":
                self._declared.clear()
            if mistakes.is_plain(event):
                continue
            near = mistakes.near_kind(event.kind)
            if near is not None and not await self._is_declared(event.space, event.kind):
                notices.tell("publish", f"the kind {event.kind!r} is not known; did you mean {near!r}?")
            if (field := mistakes.field_of(event)) is not None:
                near = mistakes.near_field(event.kind, field)
                notices.tell("publish", f"{event.kind} has no field {field!r}; did you mean {near!r}?")

    async def _tell_agent(self, space: str, agent: str) -> None:
        """Warn the caller if an agent that was never seen has nearly the name of an agent that has acted."""
        from recallog.queries import spaces

        if (space, agent) not in self._near_agents:
            try:
                known = await self.of_space(space, At(), spaces.agent_names)
            except RecallogError:
                return
            if agent in known:  # it has acted meanwhile
                return
            _remember(self._near_agents, (space, agent), mistakes.near_agent(agent, known))
        near = self._near_agents[space, agent]
        if near is not None:
            notices.tell("names", f"no event of {space} is by {agent!r} or addressed to it; did you mean {near!r}?")

    async def _is_declared(self, space: str, kind: str) -> bool:
        """Whether the space declares a kind; False if that cannot be determined in time."""
        from recallog.reading.read_session import ReadSession
        from recallog_projections.tables import RowKey
        from recallog_projections.views import settings

        if (space, kind) not in self._declared:
            key = RowKey(settings.SPACES.name, space)
            try:
                async with asyncio.timeout(_DECLARED_SECONDS):
                    found = await self.of_space(space, At(), ReadSession.snapshot, [key])
            except (RecallogError, TimeoutError):
                return False
            row = found.row(settings.SPACES, space)
            _remember(self._declared, (space, kind), row is not None and kind in row.kinds)
        return self._declared[space, kind]

    async def publish_reads(self) -> None:
        """Publish the events of observers so far."""
        for observer in self.observers:
            await observer.flush()


def _remember(verdicts: dict[tuple[str, str], Verdict], names: tuple[str, str], verdict: Verdict) -> None:
    if len(verdicts) >= _VERDICTS_MAX:
        verdicts.clear()
    verdicts[names] = verdict


class FacadePart(Facade):
    """Base of the facades that a memory has as attributes, such as `memory.items`."""

    def __init__(self, access: MemoryAccess) -> None:
        self._access = access

    @property
    def _host(self) -> MemoryAccess:
        return self._access


def add_parts(memory: type[Facade]) -> None:
    """Give the class of a memory an attribute for each of its facades, whose object is made when it is first used."""
    for name, part in vars(memory).get("facades", {}).items():
        if name not in vars(memory):
            attribute = _attribute_of(name, cast("type[FacadePart]", part))
            attribute.__set_name__(memory, name)
            setattr(memory, name, attribute)


def _attribute_of(name: str, part: type[FacadePart]) -> "cached_property[FacadePart]":
    def facade(self: Any) -> FacadePart:
        if name not in self.facades:
            raise AttributeError(f"this memory was opened without the model that has {name!r}")
        return part(self._access)

    facade.__doc__, facade.__annotations__ = paragraphs(part)[0], {"return": part}
    return cached_property(facade)
