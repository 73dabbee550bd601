"""The worker process of a cluster: a Faust app that maintains views and the index, and answers triggers.

Faust provides supervision, orderly shutdown, and a web server for `/health` and `/metrics`. What the process does are
its roles; the ledger gives them its newest records and its queue of triggers. Start it with `recallog worker`, or with
Faust's own command:

    faust -A recallog_service.worker worker
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import faust
import mode
from faust.app.base import BootStrategy
from faust.web import Request, Response, View

from recallog import Settings, loading
from recallog.reactors.reactor import Reactor
from recallog_projections.projection import Projection
from recallog_schemas.errors import SettingsError
from recallog_service import logs
from recallog_service.metrics import WorkerMetrics
from recallog_service.roles import Indexing, Own, Projecting, Reacting, Role
from recallog_streams.partition_task import TaskState

ROLES: Mapping[str, type[Role]] = {"views": Projecting, "index": Indexing, "reactors": Reacting}
"""The roles of a worker, by name."""
_CLIENT = "aiokafka"
"""The logger of the client that Faust's agents use."""


class _WithoutAgents(BootStrategy):
    """Does not start Faust's Kafka client for the worker itself, because its roles have their own clients."""

    enable_kafka = False


class App(faust.App):
    """The app of a worker."""

    BootStrategy = _WithoutAgents

    def _create_directories(self) -> None:
        """Does nothing: a worker writes no files, and may lack permission to write to its working directory."""


def build(
    settings: Settings,
    projections: Sequence[Projection] = (),
    only: Sequence[str] = (),
    reactors: Callable[[], Sequence[Reactor]] = tuple,
) -> faust.App:
    """The app of one worker process. It also maintains the views of custom `projections` (default: from the settings),
    and answers triggers with custom reactors, which `reactors` makes.

    `only` names its roles; by default it has all of `ROLES`, the index if the settings name one. Raises
    `SettingsError`.
    """
    if settings.ledger is None or settings.views is None:
        raise SettingsError(
            "a worker maintains the views of a cluster: set RECALLOG_LEDGER and RECALLOG_VIEWS. In a folder no worker "
            "is needed, because queries update the views"
        )
    names = _roles(settings, only)
    projections = projections or loading.projections(settings.projections)
    app = App(
        "recallog-worker",
        store="memory://",
        web_host=settings.worker_host,
        web_bind=settings.worker_host,
        web_port=settings.worker_port,
        topic_disable_leader=True,
        Supervisor=mode.CrashingSupervisor,
        worker_redirect_stdouts=False,
        logging_config={"merge": True, **logs.CONFIGURATION},
    )
    # Its messages about groups do not help operators; `client_log` limits its warnings.
    logging.getLogger(_CLIENT).setLevel(logging.WARNING)
    metrics = WorkerMetrics()
    roles = {name: ROLES[name](settings, Own(projections, reactors), metrics) for name in names}
    for role in roles.values():
        app.service(role)  # type: ignore[arg-type]  # takes an instance as well

    @app.page("/health")
    class HealthPage(View):
        """Whether all roles make progress, and if not, why."""

        async def get(self, request: Request) -> Response:
            answer = health(roles)
            return self.json(answer, status=200 if answer["healthy"] else 503)

    @app.page("/readyz")
    class ReadyPage(View):
        """Whether the views of all partitions of this worker are live. A deployment waits for it."""

        async def get(self, request: Request) -> Response:
            answer = health(roles)
            ready = answer["healthy"] and all(each["state"] == TaskState.LIVE.value for each in answer["partitions"])
            return self.json({"ready": ready}, status=200 if ready else 503)

    @app.page("/metrics")
    class MetricsPage(View):
        """The metrics in Prometheus' text format."""

        async def get(self, request: Request) -> Response:
            return self.bytes(metrics.expose(list(roles.values())), content_type="text/plain")

    return app


def run(app: faust.App, log_level: str) -> None:
    """Run the app of a worker until SIGTERM."""
    if log_level == "debug":
        logging.getLogger(_CLIENT).setLevel(logging.DEBUG)
    process = faust.Worker(app, loglevel=log_level, quiet=True)
    process.spinner = None  # its signs are not lines of the log
    process.execute_from_commandline()


def _roles(settings: Settings, only: Sequence[str]) -> list[str]:
    unknown = sorted(set(only) - ROLES.keys())
    if unknown:
        raise SettingsError(f"{unknown[0]!r} is not a role of a worker: {', '.join(ROLES)}")
    has_index = settings.index not in (None, "off")
    if "index" in only and not has_index:
        raise SettingsError("a worker maintains the index on a Qdrant server: set RECALLOG_INDEX=http://host:6333")
    return [name for name in ROLES if (name in only if only else name != "index" or has_index)]


def health(roles: Mapping[str, Role]) -> dict[str, Any]:
    """The answer of `/health`: `healthy`, `roles`, `problems` (a sentence each, empty if healthy), and `partitions`.

    `partitions` lists the assigned partitions, each with `views`, `partition`, `state`, `lag` and `why`.
    """
    partitions = [
        {"views": name, "partition": task.partition, "state": task.state.value, "lag": task.lag, "why": task.why}
        for role in roles.values()
        for name, live in role.lives
        for task in live.tasks
    ]
    # Each role opens the ledger itself and finds the same faults.
    problems = list(dict.fromkeys(problem for role in roles.values() for problem in role.problems))
    return {"healthy": not problems, "roles": [*roles], "problems": problems, "partitions": partitions}


def __getattr__(name: str) -> faust.App:
    """Builds `app`, which Faust's own command imports, from the environment."""
    if name != "app":
        raise AttributeError(name)
    return build(Settings.valid())
