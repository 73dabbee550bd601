"""The worker process of a cluster: a Faust app that keeps views up to date.

Faust provides supervision, orderly shutdown, and a web server for `/health` and `/metrics`. The projector runs in it as
a service with its own Kafka consumer, because a Faust agent cannot store its offset together with the views. Start it
with `recallog worker`, or with Faust's own command:

    faust -A recallog_service.worker worker
"""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from typing import Any

import faust
import mode
from faust.app.base import BootStrategy
from faust.web import Request, Response, View

from recallog import Settings
from recallog.components import Components
from recallog.composition import address_of, compose
from recallog.reading.projection_group import ProjectionGroup
from recallog_projections.projection import Projection
from recallog_schemas.errors import LedgerMismatch, SettingsError
from recallog_service.metrics import Metrics
from recallog_streams.collector import collect_rarely
from recallog_streams.ledgers.kafka.group import ConsumerGroupSource
from recallog_streams.live import LedgerReplaced, LiveProjector
from recallog_streams.partition_task import backoff
from recallog_streams.stop_signal import StopSignal

DRAIN_SECONDS = 30.0
"""How long a worker that is stopping may take to commit its last batch."""

DEADLINE_SECONDS = 10.0
"""How long a worker waits at least for an answer: it has nobody who waits, and an answer that comes late saves work."""

_log = logging.getLogger("recallog.worker")


class _WithoutAgents(BootStrategy):
    """Starts no Kafka client of Faust: there are no agents, and the projector has its own clients."""

    enable_kafka = False


class App(faust.App):
    """The app of a worker."""

    BootStrategy = _WithoutAgents

    def _create_directories(self) -> None:
        """Creates none: a worker writes no files, and may lack permission to write to its working directory."""


class Projecting(mode.Service):
    """Maintains the views of the partitions that are assigned to this process.

    It waits while Kafka or Redis is unreachable. If another ledger has replaced the one that was opened, it reports
    that, and continues with the new one once the old views are deleted. Any other error crashes the worker.
    """

    def __init__(self, settings: Settings, projections: Sequence[Projection], metrics: Metrics) -> None:
        super().__init__()
        self.lives: Sequence[tuple[str, LiveProjector]] = ()
        deadline_seconds = max(DEADLINE_SECONDS, settings.deadline_seconds)
        self._settings = settings.model_copy(update={"deadline_seconds": deadline_seconds})
        self._projections = projections
        self._metrics = metrics
        self._why = "not started"
        self._stopping = StopSignal()
        self._running: asyncio.Task[None] | None = None

    @property
    def label(self) -> str:
        """The name of the service in logs."""
        return "projector of the views"

    @property
    def problems(self) -> list[str]:
        """Why the views of this process make no progress; empty if they do."""
        why = [self._why] if self._why else []
        return why + [f"{name}: {problem}" for name, live in self.lives for problem in live.problems]

    async def on_start(self) -> None:
        collect_rarely()
        self._running = asyncio.create_task(self._run(), name="recallog-projecting")
        self.add_future(self._watch(self._running))

    async def _watch(self, running: "asyncio.Task[None]") -> None:
        await asyncio.wait([running])
        if not running.cancelled() and (error := running.exception()) is not None:
            _log.critical("this worker ends: %s", error, exc_info=error)
            await self.crash(error)

    async def _run(self) -> None:
        failures = 0
        while not self._stopping:
            components = compose(self._settings, self._projections, processed=self._metrics.processed)
            try:
                await self._project(components)
            except LedgerMismatch as error:
                if not failures and not isinstance(error, LedgerReplaced):
                    raise  # the settings name a ledger that these views were never built from
                failures += 1
                self._why = f"{error}. The worker waits until the views are deleted"
                _log.warning("%s", self._why)
                await self._stopping.pause(backoff(failures))
            finally:
                await components.close()

    async def _project(self, components: Components) -> None:
        """Maintain all views until the worker stops. If one fails, all stop."""
        address = address_of(self._settings.ledger or "")
        self.lives = [
            (views.name, LiveProjector(views.builder, ConsumerGroupSource(address, group_of(self._settings, views))))
            for views in components.groups()
        ]
        self._why = ""
        running = [asyncio.create_task(live.run()) for _, live in self.lives]
        try:
            await asyncio.gather(*running)
        finally:
            self._stop_all()
            await asyncio.gather(*running, return_exceptions=True)

    def _stop_all(self) -> None:
        for _, live in self.lives:
            live.stop()

    async def on_stop(self) -> None:
        self._stopping.set()
        self._stop_all()
        if self._running is not None:
            await asyncio.wait([self._running], timeout=DRAIN_SECONDS)
            self._running.cancel()


def group_of(settings: Settings, views: ProjectionGroup) -> str:
    """The consumer group that shares the partitions among workers.

    Its name contains a digest of the code and the store. Workers of a new version therefore build their generation
    while the old ones continue until the cutover, and two stores, which hold two copies of the views, have two groups.
    """
    store = (settings.views or "").rpartition("@")[2]
    digest = hashlib.blake2b(f"{views.builder.fold.code} {store}".encode(), digest_size=6).hexdigest()
    return f"recallog.{views.name}.{digest}"


def build(settings: Settings, projections: Sequence[Projection] = ()) -> faust.App:
    """The app of one worker process. It also maintains the views of your own `projections`.

    Raises `SettingsError`.
    """
    if settings.ledger is None or settings.views is None:
        raise SettingsError(
            "a worker maintains the views of a cluster: set RECALLOG_LEDGER and RECALLOG_VIEWS. In a folder no worker "
            "is needed, because queries update the views"
        )
    app = App(
        "recallog-worker",
        broker=[f"kafka://{server}" for server in address_of(settings.ledger).servers],
        store="memory://",
        web_host=settings.worker_host,
        web_bind=settings.worker_host,
        web_port=settings.worker_port,
        topic_disable_leader=True,
        Supervisor=mode.CrashingSupervisor,
        worker_redirect_stdouts=False,
    )
    # aiokafka logs each connection attempt, twenty per second while a broker is unreachable; /health and our log
    # report that once.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    metrics = Metrics()
    projecting = Projecting(settings, projections, metrics)
    app.service(projecting)  # type: ignore[arg-type]  # takes an instance as well

    @app.page("/health")
    class Health(View):
        """Whether the views make progress, and if not, why."""

        async def get(self, request: Request) -> Response:
            answer = health(projecting)
            return self.json(answer, status=200 if answer["healthy"] else 503)

    @app.page("/metrics")
    class Exposed(View):
        """The metrics in Prometheus' text format."""

        async def get(self, request: Request) -> Response:
            return self.bytes(metrics.expose(projecting.lives), content_type="text/plain")

    return app


def health(projecting: Projecting) -> dict[str, Any]:
    """The answer of `/health`: `healthy`, `problems` (a sentence each, empty if healthy), and `partitions`.

    `partitions` lists those assigned to this worker, each with `views`, `partition`, `state`, `lag` and `why`.
    """
    partitions = [
        {"views": name, "partition": task.partition, "state": task.state.value, "lag": task.lag, "why": task.why}
        for name, live in projecting.lives
        for task in live.tasks
    ]
    problems = projecting.problems
    return {"healthy": not problems, "problems": problems, "partitions": partitions}


def __getattr__(name: str) -> faust.App:
    """Builds `app`, which Faust's own command imports, from the environment."""
    if name != "app":
        raise AttributeError(name)
    return build(Settings.valid())
