"""The worker process of a cluster: a Faust app that keeps views up to date.

Faust gives it what a long-running process needs: supervision, orderly shutdown, a web server for `/health` and
`/metrics`. The projector runs in it as a service with a Kafka consumer of its own, since a Faust agent owns no offset
that could be kept with the views. Start it with `recallog worker`, or with Faust's own command:

    faust -A recallog_service.worker worker
"""

import asyncio
import hashlib
import faust
import mode
from faust.app.base import BootStrategy
from faust.web import Request, Response, View

from recallog import Settings
from recallog.wiring import Views, address_of, parts
from recallog_schemas.errors import SettingsError
from recallog_service.metrics import Metrics
from recallog_streams.kafka.group import GroupFeed
from recallog_streams.live import LiveProjector

DRAIN_SECONDS = 30.0
"""How long a worker that is told to stop may take over the batch in hand."""


class _WithoutAgents(BootStrategy):
    """Starts no Kafka client of Faust's: there are no agents, and the projector has clients of its own."""

    enable_kafka = False


class App(faust.App):
    """The app of a worker."""

    BootStrategy = _WithoutAgents


class Projecting(mode.Service):
    """Keeps the views of the partitions that are assigned to this process."""

    def __init__(self, name: str, live: LiveProjector) -> None:
        super().__init__()
        self._name = name
        self._live = live
        self._running: asyncio.Task[None] | None = None

    @property
    def label(self) -> str:
        """What logs call it."""
        return f"projector of the {self._name} views"

    async def on_start(self) -> None:
        self._running = asyncio.create_task(self._live.run(), name="recallog-projector")
        self.add_future(self._watch(self._running))

    async def _watch(self, running: "asyncio.Task[None]") -> None:
        await asyncio.wait([running])
        if not running.cancelled() and (error := running.exception()) is not None:
            await self.crash(error)

    async def on_stop(self) -> None:
        self._live.stop()
        if self._running is not None:
            await asyncio.wait([self._running], timeout=DRAIN_SECONDS)
            self._running.cancel()


def group_of(settings: Settings, views: Views) -> str:
    """The consumer group that shares the partitions among workers.

    It names the code, so that workers of a new version build their generation beside the old ones, which go on until
    the cutover; and the store, since two stores are two copies of the views.
    """
    store = (settings.views or "").rpartition("@")[2]
    digest = hashlib.blake2b(f"{views.builder.fold.code} {store}".encode(), digest_size=6).hexdigest()
    return f"recallog.{views.name}.{digest}"


def build(settings: Settings) -> faust.App:
    """The app of one worker process. Raises `SettingsError`."""
    if settings.ledger is None:
        raise SettingsError(
            "a worker keeps the views of a cluster, and none is named: set RECALLOG_LEDGER and RECALLOG_VIEWS. In a "
            "folder every query keeps the views itself"
        )
    metrics = Metrics()
    made = parts(settings, decided=metrics.decided)
    address = address_of(settings.ledger)
    lives = [
        (views.name, LiveProjector(views.builder, GroupFeed(address, group_of(settings, views))))
        for views in made.all_views()
    ]
    app = App(
        "recallog-worker",
        broker=[f"kafka://{server}" for server in address.servers],
        store="memory://",
        web_host=settings.worker_host,
        web_bind=settings.worker_host,
        web_port=settings.worker_port,
        topic_disable_leader=True,
        Supervisor=mode.CrashingSupervisor,
        worker_redirect_stdouts=False,
    )

    for name, live in lives:
        app.service(Projecting(name, live))  # type: ignore[arg-type]  # takes an instance as well

    @app.page("/health")
    class Health(View):
        """Whether the views move, and if not, why."""

        async def get(self, request: Request) -> Response:
            trouble = [f"{name}: {said}" for name, live in lives for said in live.trouble]
            partitions = [
                {
                    "views": name,
                    "partition": kept.partition,
                    "state": kept.state.value,
                    "lag": kept.lag,
                    "why": kept.why,
                }
                for name, live in lives
                for kept in live.kept
            ]
            answer = {"healthy": not trouble, "trouble": trouble, "partitions": partitions}
            return self.json(answer, status=503 if trouble else 200)

    @app.page("/metrics")
    class Exposed(View):
        """For Prometheus."""

        async def get(self, request: Request) -> Response:
            return self.bytes(metrics.expose(lives), content_type="text/plain")

    return app


def __getattr__(name: str) -> faust.App:
    """`app`, which Faust's own command asks for, is built from the environment when it does."""
    if name != "app":
        raise AttributeError(name)
    return build(Settings())
