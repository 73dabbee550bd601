"""The roles of a worker process, each a service supervised by Faust: maintaining views or the index, answering
triggers.

A role waits while the ledger or the views are unreachable. If another ledger has replaced the opened one, it reports
that, and continues with the new ledger once the old views are deleted. Any other error of views crashes the worker.
"""

import asyncio
import hashlib
import logging
from abc import abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import NamedTuple

import mode

from recallog import Memory, Settings
from recallog.components import Components
from recallog.composition import compose, database_of
from recallog.index.live_index import LiveIndex
from recallog.index.semantic_index import IndexInProcess
from recallog.reactors.reactor import Reactor
from recallog.reading.projection_group import INDEX, ProjectionGroup
from recallog.reading.query_router import QueryRouter
from recallog_projections.concurrency import cancel_all
from recallog_projections.projection import Projection
from recallog_schemas import limits
from recallog_schemas.errors import (
    LedgerMismatch,
    LockTimeout,
    Rebuilding,
    RecallogError,
    SettingsError,
    ViewsTooNew,
)
from recallog_service.metrics import WorkerMetrics
from recallog_service.reacting.handler import Handler
from recallog_service.reacting.publisher import TriggerPublisher
from recallog_streams.collector import collect_rarely
from recallog_streams.ledgers.ledger import Ledger, RecordSource
from recallog_streams.ledgers.polling import PollingSource
from recallog_streams.ledgers.trigger_queue import QueueFailed, TriggerQueue
from recallog_streams.live import LedgerReplaced, LiveProjector, ProjectedViews
from recallog_streams.partition_task import backoff
from recallog_streams.stop_signal import StopSignal

DRAIN_SECONDS = 30.0
"""Seconds that a stopping worker may take to commit its last batch."""

TICK_SECONDS = 10.0
"""Seconds between two searches for silent spaces in which work has become due."""
CHECK_SECONDS = 0.2
"""Seconds between two checks of the consumer of a queue of triggers."""

_log = logging.getLogger("recallog.worker")


class Own(NamedTuple):
    """A user's extensions of a worker."""

    projections: Sequence[Projection] = ()
    reactors: Callable[[], Sequence[Reactor]] = tuple
    """Makes the reactors. They are closed, and made again, when the memory is reopened."""


class Role(mode.Service):
    """One role of a worker process. It runs until the process stops."""

    def __init__(self, settings: Settings, own: Own, metrics: WorkerMetrics) -> None:
        super().__init__()
        self.settings = settings.model_copy(
            update={"deadline_seconds": max(limits.PATIENT_SECONDS, settings.deadline_seconds)}
        )
        self.own = own
        self.metrics = metrics
        self.stopping = StopSignal()
        self.why = "not started"
        """Why the role cannot work, in one sentence; "" if it can."""
        self.lives: Sequence[tuple[str, LiveProjector]] = ()
        """The live projectors of this role, each with the name of its views."""
        self._running: asyncio.Task[None] | None = None

    @property
    def problems(self) -> list[str]:
        """Why this role makes no progress, or faults of the ledger, one sentence per problem; empty if healthy."""
        return [*([self.why] if self.why else []), *self.ledger_problems]

    @property
    def ledger_problems(self) -> Sequence[str]:
        """Faults of a reachable ledger, one sentence each."""
        return list(dict.fromkeys(str(fault) for _, live in self.lives for fault in live.faults if fault.severe))

    @property
    def unanswered(self) -> Mapping[int, Sequence[float]]:
        """By partition: for how many seconds each trigger that this role has published has not been answered."""
        return {}

    @property
    def answering(self) -> int:
        """Number of triggers that this role is answering."""
        return 0

    @abstractmethod
    async def work(self) -> None:
        """Run until `stopping` is set. An error ends the process."""

    def _keep_name_free(self) -> None:
        """From now on, do not create the ledger if it is gone: an operator who restores it finds its name free."""
        self.settings = self.settings.model_copy(update={"create_ledger": False})

    def stop_work(self) -> None:
        """Ask the work to end."""
        self.stopping.set()

    async def on_start(self) -> None:
        collect_rarely()
        self._running = asyncio.create_task(self.work(), name=f"recallog-{type(self).__name__.lower()}")
        self.add_future(self._watch(self._running))

    async def _watch(self, running: "asyncio.Task[None]") -> None:
        await asyncio.wait([running])
        if not running.cancelled() and (error := running.exception()) is not None:
            _log.critical("this worker ends: %s", error, exc_info=error)
            await self.crash(error)

    async def on_stop(self) -> None:
        self.stop_work()
        if self._running is not None:
            await asyncio.wait([self._running], timeout=DRAIN_SECONDS)
            self._running.cancel()


class Maintaining(Role):
    """Runs live projectors for the partitions that are assigned to this process."""

    @abstractmethod
    def projectors(self, components: Components) -> Sequence[tuple[str, LiveProjector]]:
        """The live projectors of built components, each with the name of its views."""

    @asynccontextmanager
    async def beside(self, components: Components) -> AsyncIterator[Sequence["asyncio.Task[None]"]]:
        """Tasks that run beside the projectors; none by default."""
        yield ()

    @property
    def problems(self) -> list[str]:
        return super().problems + [f"{name}: {problem}" for name, live in self.lives for problem in live.problems]

    async def work(self) -> None:
        failures = 0
        while not self.stopping:
            components = compose(self.settings, self.own.projections, processed=self.metrics.count_batch)
            try:
                await self._maintain(components)
            except LedgerMismatch as error:
                if not failures and not isinstance(error, LedgerReplaced):
                    raise  # the settings name a ledger from which these views were not built
                failures += 1
                self._keep_name_free()
                self.why = f"{error}. The worker waits until the ledger is restored or the views are deleted"
                _log.warning("%s", self.why)
                await self.stopping.pause(backoff(failures))
            finally:
                await components.close()

    def source(self, components: Components, name: str, code: str) -> RecordSource:
        """The source of new records for this process, one of the workers that maintain views of the same code."""
        group = group_of(self.settings, name, code)
        lock = database_of(self.settings).lock(group, 0)
        return components.ledger.record_source(group) or PollingSource(components.ledger, lock)

    async def _maintain(self, components: Components) -> None:
        """Maintain everything until the worker stops. If one projector fails, all stop."""
        self.lives = self.projectors(components)
        self.why = ""
        async with self.beside(components) as others:
            running = [asyncio.create_task(live.run()) for _, live in self.lives]
            try:
                await asyncio.gather(*running, *others)
            finally:
                for _, live in self.lives:
                    live.stop()
                await asyncio.gather(*running, return_exceptions=True)

    def stop_work(self) -> None:
        super().stop_work()
        for _, live in self.lives:
            live.stop()


class Projecting(Maintaining):
    """Maintains the views, and publishes the triggers that are due in them."""

    def __init__(self, settings: Settings, own: Own, metrics: WorkerMetrics) -> None:
        super().__init__(settings, own, metrics)
        self._publishers: Sequence[TriggerPublisher] = ()

    @property
    def label(self) -> str:
        """The name of the service in logs."""
        return "projector of the views"

    @property
    def problems(self) -> list[str]:
        of_triggers = dict.fromkeys(publisher.problem for publisher in self._publishers if publisher.problem)
        return [*super().problems, *of_triggers]

    @property
    def unanswered(self) -> Mapping[int, Sequence[float]]:
        found = defaultdict[int, list[float]](list)
        for partition, waits in (item for publisher in self._publishers for item in publisher.unanswered.items()):
            found[partition] += waits
        return found

    def projectors(self, components: Components) -> Sequence[tuple[str, LiveProjector]]:
        def live_of(views: ProjectionGroup) -> LiveProjector:
            source = self.source(components, views.name, views.builder.fold.code)
            return LiveProjector(ProjectedViews(views.builder), source)

        return [(views.name, live_of(views)) for views in components.groups()]

    @asynccontextmanager
    async def beside(self, components: Components) -> AsyncIterator[Sequence["asyncio.Task[None]"]]:
        queue = components.ledger.trigger_queue()
        if queue is None:
            yield ()
            return
        lives = dict(self.lives)
        self._publishers = [
            TriggerPublisher(
                QueryRouter(components.ledger, views, None),
                lives[views.name],
                queue,
                self.metrics.count_messages,
                recurring=views is components.views,
            )
            for views in components.due_groups()
        ]
        publishing = [
            asyncio.create_task(publisher.run(self.stopping), name="recallog-triggers")
            for publisher in self._publishers
        ]
        try:
            yield publishing
        finally:
            await cancel_all(*publishing)
            await queue.close()


class Indexing(Maintaining):
    """Maintains the index on a Qdrant server."""

    @property
    def label(self) -> str:
        """The name of the service in logs."""
        return "projector of the index"

    def projectors(self, components: Components) -> Sequence[tuple[str, LiveProjector]]:
        if not isinstance(components.index, IndexInProcess):
            raise SettingsError("a worker maintains the index on a Qdrant server: set RECALLOG_INDEX=http://host:6333")
        index = LiveIndex(components.index.indexer)
        source = self.source(components, INDEX, index.code)
        # One batch at a time: a model uses all cores for one batch.
        return [(INDEX, LiveProjector(index, source, building_at_once=1))]


class Reacting(Role):
    """Answers triggers with reactors, and advances time in silent spaces."""

    def __init__(self, settings: Settings, own: Own, metrics: WorkerMetrics) -> None:
        super().__init__(settings, own, metrics)
        self._handler: Handler | None = None
        self._ledger_problems: Sequence[str] = ()

    @property
    def ledger_problems(self) -> Sequence[str]:
        return self._ledger_problems

    @property
    def label(self) -> str:
        """The name of the service in logs."""
        return "reactors"

    @property
    def problems(self) -> list[str]:
        return super().problems + ([] if self._handler is None else self._handler.problems)

    @property
    def answering(self) -> int:
        return 0 if self._handler is None else self._handler.answering

    async def work(self) -> None:
        failures = 0

        def start() -> None:
            nonlocal failures
            failures, self.why = 0, ""
            self._keep_name_free()

        while not self.stopping:
            # Not entered by `async with`, which would start reactors in the background: this role answers.
            memory = Memory.open(self.settings, projections=self.own.projections, reactors=self.own.reactors())
            try:
                await self._answer(memory, start)
            except (RecallogError, QueueFailed) as error:
                failures += 1
                self.metrics.count_restart()
                self.why = str(error)
                _log.warning("%s", self.why)
                await self.stopping.pause(backoff(failures))
            finally:
                await memory.close()

    async def _answer(self, memory: Memory, started: Callable[[], None]) -> None:
        """Answer triggers until the worker stops, or until the consumer of their queue fails."""
        components = compose(self.settings, self.own.projections)
        self._handler = handler = Handler(
            memory, self.stopping, self.metrics.count_reaction, self.settings.reactor_at_once
        )
        ticking = asyncio.create_task(self._tick(memory, components.ledger, handler), name="recallog-ticks")
        try:
            if (queue := components.ledger.trigger_queue()) is None:
                await self._look_for_triggers(memory, handler, started)
            else:
                group = group_of(self.settings, "reactors", components.views.builder.fold.code)
                await self._consume(queue, group, handler, started)
        finally:
            await handler.close()
            await cancel_all(ticking)
            await components.close()

    async def _consume(self, queue: TriggerQueue, group: str, handler: Handler, started: Callable[[], None]) -> None:
        consuming = None
        try:
            await queue.create()
            consuming = asyncio.create_task(queue.consume(group, handler.handle, started), name="recallog-triggers")
            while not (self.stopping or consuming.done() or handler.replaced or handler.failure):
                await self.stopping.pause(CHECK_SECONDS)
            if problem := handler.replaced or handler.failure:
                raise QueueFailed(problem)
            if consuming.done():
                consuming.result()
        finally:
            if consuming is not None:
                await cancel_all(consuming)
            await queue.close()

    async def _look_for_triggers(self, memory: Memory, handler: Handler, started: Callable[[], None]) -> None:
        """Answer what falls due whenever this process holds the lock of reactors."""

        def choose_pause(error: RecallogError) -> float:
            if isinstance(error, LedgerMismatch):
                raise error  # the memory is reopened
            if isinstance(error, LockTimeout):
                return CHECK_SECONDS  # another process answers
            handler.report("reactors", str(error))
            return TICK_SECONDS

        started()
        await self.stopping.unless(memory.keep_reacting(None, choose_pause))

    async def _tick(self, memory: Memory, ledger: Ledger, handler: Handler) -> None:
        while True:
            try:
                self._ledger_problems = [str(fault) for fault in await ledger.faults() if fault.severe]
                self.metrics.count_ticks(await memory.tick(datetime.now(UTC)))
            except (LockTimeout, Rebuilding, ViewsTooNew):
                pass  # another process does it, or a process with the code that built the views
            except LedgerMismatch as error:
                handler.replaced = str(error)
            except RecallogError as error:
                _log.warning("silent spaces are not checked: %s", error)
            except Exception:  # noqa: BLE001 - a defect must not end the agents
                _log.exception("silent spaces are not checked")
            await asyncio.sleep(TICK_SECONDS)


def group_of(settings: Settings, name: str, code: str) -> str:
    """The consumer group that shares the partitions among workers.

    Its name contains a digest of the code and the store. So workers of a new version build their generation while the
    old workers continue until the cutover, and two stores, with two copies of the views, have two groups.
    """
    store = (settings.views or "").rpartition("@")[2]
    digest = hashlib.blake2b(f"{code} {store}".encode(), digest_size=6).hexdigest()
    return f"recallog.{name}.{digest}"
