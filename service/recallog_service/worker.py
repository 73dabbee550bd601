"""The worker process of a cluster: a Faust app that keeps views up to date.

Faust gives it what a long-running process needs: supervision, orderly shutdown, a web server for `/health` and
`/metrics`. The projector runs in it as a service with a Kafka consumer of its own, since a Faust agent owns no offset
that could be kept with the views. Start it with `recallog worker`, or with Faust's own command:

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
from recallog_streams.ledgers.kafka.group import ConsumerGroupSource
from recallog_streams.live import LedgerReplaced, LiveProjector
from recallog_streams.partition_task import backoff
from recallog_streams.stop_signal import StopSignal

DRAIN_SECONDS = 30.0
"""How long a worker that is told to stop may take over the batch in hand."""

_log = logging.getLogger("recallog.worker")


class _WithoutAgents(BootStrategy):
    """Starts no Kafka client of Faust's: there are no agents, and the projector has clients of its own."""

    enable_kafka = False


class App(faust.App):
    """The app of a worker."""

    BootStrategy = _WithoutAgents

    def _create_directories(self) -> None:
        """None: a worker keeps nothing on disk, and may have no right to write where it is started."""


class Projecting(mode.Service):
    """Keeps the views of the partitions that are assigned to this process.

    Away Kafka or Redis is waited for. Where another ledger takes the place of the one that was opened, that one is
    opened anew, and goes on once its views are deleted. Any other error crashes the worker.
    """

    def __init__(self, settings: Settings, projections: Sequence[Projection], metrics: Metrics) -> None:
        super().__init__()
        self.lives: Sequence[tuple[str, LiveProjector]] = ()
        self._settings = settings
        self._projections = projections
        self._metrics = metrics
        self._why = "not started"
        self._stopping = StopSignal()
        self._running: asyncio.Task[None] | None = None

    @property
    def label(self) -> str:
        """What logs call it."""
        return "projector of the views"

    @property
    def trouble(self) -> list[str]:
        """Why the views of this process do not move; nothing where they do."""
        why = [self._why] if self._why else []
        return why + [f"{name}: {said}" for name, live in self.lives for said in live.problems]

    async def on_start(self) -> None:
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
            made = compose(self._settings, self._projections, processed=self._metrics.processed)
            try:
                await self._keep(made)
            except LedgerMismatch as error:
                if not failures and not isinstance(error, LedgerReplaced):
                    raise  # it has never been the ledger that the settings describe
                failures += 1
                self._why = f"{error}. Until its views are deleted this worker waits"
                _log.warning("%s", self._why)
                await self._stopping.pause(backoff(failures))
            finally:
                await made.close()

    async def _keep(self, made: Components) -> None:
        """Keep all views until told to stop, or until one fails: then all stop."""
        address = address_of(self._settings.ledger or "")
        self.lives = [
            (views.name, LiveProjector(views.builder, ConsumerGroupSource(address, group_of(self._settings, views))))
            for views in made.groups()
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

    It names the code, so that workers of a new version build their generation beside the old ones, which go on until
    the cutover; and the store, since two stores are two copies of the views.
    """
    store = (settings.views or "").rpartition("@")[2]
    digest = hashlib.blake2b(f"{views.builder.fold.code} {store}".encode(), digest_size=6).hexdigest()
    return f"recallog.{views.name}.{digest}"


def build(settings: Settings, projections: Sequence[Projection] = ()) -> faust.App:
    """The app of one worker process, which keeps the views of `projections` of your own too.

    Raises `SettingsError`.
    """
    if settings.ledger is None or settings.views is None:
        raise SettingsError(
            "a worker keeps the views of a cluster, and none is named: set RECALLOG_LEDGER and RECALLOG_VIEWS. In a "
            "folder every query keeps the views itself"
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
    # It logs each attempt, twenty a second while a broker is away; what that means is in /health, and in our log once.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    metrics = Metrics()
    projecting = Projecting(settings, projections, metrics)
    app.service(projecting)  # type: ignore[arg-type]  # takes an instance as well

    @app.page("/health")
    class Health(View):
        """Whether the views move, and if not, why."""

        async def get(self, request: Request) -> Response:
            answer = health(projecting)
            return self.json(answer, status=200 if answer["healthy"] else 503)

    @app.page("/metrics")
    class Exposed(View):
        """For Prometheus."""

        async def get(self, request: Request) -> Response:
            return self.bytes(metrics.expose(projecting.lives), content_type="text/plain")

    return app


def health(projecting: Projecting) -> dict[str, Any]:
    """What `/health` answers: `healthy`, and in `trouble` why not, a sentence each; the partitions of this worker."""
    partitions = [
        {"views": name, "partition": task.partition, "state": task.state.value, "lag": task.lag, "why": task.why}
        for name, live in projecting.lives
        for task in live.tasks
    ]
    trouble = projecting.trouble
    return {"healthy": not trouble, "trouble": trouble, "partitions": partitions}


def __getattr__(name: str) -> faust.App:
    """`app`, which Faust's own command asks for, is built from the environment when it does."""
    if name != "app":
        raise AttributeError(name)
    return build(Settings())
