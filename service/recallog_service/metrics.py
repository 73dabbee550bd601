"""The metrics of a worker process, for Prometheus."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from recallog_projections.stores.store import Outcome
from recallog_service.reacting.handler import ANSWERED, FAILED
from recallog_streams.live import LiveProjector
from recallog_streams.partition_task import TaskState
from recallog_streams.projector import ProcessedBatch


class ExposedRole(Protocol):
    """The parts of a worker's role that the metrics show."""

    @property
    def lives(self) -> Sequence[tuple[str, LiveProjector]]:
        """Its live projectors, each with the name of its views."""

    @property
    def unanswered(self) -> Mapping[int, Sequence[float]]:
        """By partition: for how many seconds each trigger that it has published has not been answered."""

    @property
    def answering(self) -> int:
        """Number of triggers that it is answering."""

    @property
    def problems(self) -> Sequence[str]:
        """Why it makes no progress, and what is wrong with the ledger."""

    @property
    def ledger_problems(self) -> Sequence[str]:
        """Those of its problems that are about the ledger."""


# From an answer by a rule to an answer of a slow model after retries.
_REACTION_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
# From a batch of one record to a full batch of large ones.
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class WorkerMetrics:
    """The metrics of one worker, in a registry of their own: a process may run several workers."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._events = Counter(
            "recallog_events", "Records folded into views.", ["views", "partition"], registry=self._registry
        )
        self._seconds = Histogram(
            "recallog_batch_seconds",
            "Seconds from reading a batch to its commit.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._commits = Counter("recallog_commits", "Commits by outcome.", ["outcome"], registry=self._registry)
        self._lag = Gauge(
            "recallog_lag_records",
            "Records that are not processed yet.",
            ["views", "partition"],
            registry=self._registry,
        )
        self._dead_letters = Gauge(
            "recallog_dead_letters",
            "Records that could not be applied.",
            ["views", "partition"],
            registry=self._registry,
        )
        self._states = Gauge("recallog_partitions", "Partitions by state.", ["views", "state"], registry=self._registry)
        self._published = Counter(
            "recallog_triggers_published", "Messages that a trigger is due.", ["repeated"], registry=self._registry
        )
        self._unanswered = Gauge(
            "recallog_triggers_unanswered",
            "Triggers that were published and are not answered yet.",
            ["partition"],
            registry=self._registry,
        )
        self._waiting = Gauge(
            "recallog_trigger_wait_seconds",
            "Seconds since the oldest unanswered trigger was published for the first time.",
            ["partition"],
            registry=self._registry,
        )
        self._reactions = Counter(
            "recallog_reactions",
            "Messages that agents handled, by outcome.",
            ["kind", "outcome"],
            registry=self._registry,
        )
        self._reaction_seconds = Histogram(
            "recallog_reaction_seconds",
            "Seconds from taking a message to the published answer.",
            ["kind"],
            buckets=_REACTION_SECONDS,
            registry=self._registry,
        )
        self._answering = Gauge("recallog_reactions_now", "Triggers that are being answered.", registry=self._registry)
        self._ticks = Counter("recallog_ticks", "Silent spaces in which time passed.", registry=self._registry)
        self._restarts = Counter("recallog_reactor_restarts", "Restarts after an error.", registry=self._registry)
        self._problems = Gauge(
            "recallog_problems", "Problems that /health names, by what has them.", ["of"], registry=self._registry
        )

    def count_batch(self, processed: ProcessedBatch) -> None:
        """Count a batch that was committed or refused."""
        outcome = processed.outcome.value.replace(" ", "_")
        self._commits.labels(outcome).inc()
        self._seconds.observe(processed.seconds)
        if processed.outcome is Outcome.APPLIED:
            self._events.labels(processed.views, processed.partition).inc(processed.records)

    def count_messages(self, messages: int, repeated: bool) -> None:
        """Count sent messages about due triggers, for the first time or again."""
        self._published.labels("yes" if repeated else "no").inc(messages)

    def count_reaction(self, kind: str, outcome: str, seconds: float) -> None:
        """Count a handled message. `outcome` is one of the outcomes in `reacting.handler`."""
        self._reactions.labels(kind, outcome).inc()
        if outcome in (ANSWERED, FAILED):
            self._reaction_seconds.labels(kind).observe(seconds)

    def count_restart(self) -> None:
        """Count a restart of the reactors after an error, such as agents that fetch nothing."""
        self._restarts.inc()

    def count_ticks(self, spaces: int) -> None:
        """Count silent spaces in which time was advanced."""
        self._ticks.inc(spaces)

    def expose(self, roles: Sequence[ExposedRole]) -> bytes:
        """The metrics in Prometheus' text format. Lag and dead letters cover the partitions assigned to this worker."""
        for gauge in (self._lag, self._dead_letters, self._states, self._unanswered, self._waiting):
            gauge.clear()
        self._answering.set(sum(role.answering for role in roles))
        of_ledger = {problem for role in roles for problem in role.ledger_problems}
        self._problems.labels("ledger").set(len(of_ledger))
        self._problems.labels("worker").set(len({each for role in roles for each in role.problems} - of_ledger))
        for partition, waits in (item for role in roles for item in role.unanswered.items()):
            self._unanswered.labels(partition).set(len(waits))
            self._waiting.labels(partition).set(max(waits, default=0.0))
        for views, live in (each for role in roles for each in role.lives):
            for state in TaskState:
                self._states.labels(views, state.value).set(sum(task.state is state for task in live.tasks))
            for task in live.tasks:
                if task.lag is not None:
                    self._lag.labels(views, task.partition).set(task.lag)
                if task.dead_letters is not None:
                    self._dead_letters.labels(views, task.partition).set(task.dead_letters)
        return generate_latest(self._registry)
