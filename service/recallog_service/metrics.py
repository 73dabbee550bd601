"""The metrics of a worker process, for Prometheus."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from recallog_projections.stores.store import Outcome
from recallog_streams.live import LiveProjector
from recallog_streams.partition_task import State
from recallog_streams.projector import ProcessedBatch

# From a batch of one record to a full batch of large ones.
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """The metrics of one worker, in a registry of their own: a process may run several workers."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._events = Counter("recallog_events", "Records folded into views.", ["partition"], registry=self._registry)
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

    def processed(self, processed: ProcessedBatch) -> None:
        """A batch was committed, or refused."""
        outcome = processed.outcome.value.replace(" ", "_")
        self._commits.labels(outcome).inc()
        self._seconds.observe(processed.seconds)
        if processed.outcome is Outcome.APPLIED:
            self._events.labels(processed.partition).inc(processed.records)

    def expose(self, projectors: Sequence[tuple[str, LiveProjector]]) -> bytes:
        """The metrics in Prometheus' text format. Lag and dead letters cover the partitions assigned to this worker."""
        for gauge in (self._lag, self._dead_letters, self._states):
            gauge.clear()
        for views, live in projectors:
            for state in State:
                self._states.labels(views, state.value).set(sum(task.state is state for task in live.tasks))
            for task in live.tasks:
                if task.lag is not None:
                    self._lag.labels(views, task.partition).set(task.lag)
                if task.dead_letters is not None:
                    self._dead_letters.labels(views, task.partition).set(task.dead_letters)
        return generate_latest(self._registry)
