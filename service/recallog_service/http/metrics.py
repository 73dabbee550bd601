"""The metrics of the HTTP door, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# From an answer of warm views to an answer that folds a ledger first.
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)

METHODS = frozenset({"GET", "HEAD", "POST"})
"""The methods of routes. A client may send any text as a method, and each value of a label is kept forever."""
OTHER = "OTHER"
"""The label of all other methods, and of all methods on unknown paths."""


class ServerMetrics:
    """The metrics of one server, in a registry of their own: a process may run several."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "recallog_http_requests", "Requests answered.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "recallog_http_request_seconds",
            "Seconds from a request to the end of its response.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._now = Gauge("recallog_http_requests_now", "Requests being answered.", registry=self._registry)
        self._streams = Gauge("recallog_http_streams_now", "Event streams that are open.", registry=self._registry)
        self._dropped = Counter(
            "recallog_http_streams_dropped", "Event streams dropped because of slow clients.", registry=self._registry
        )
        self._jobs = Gauge("recallog_http_jobs_now", "Jobs that are running.", registry=self._registry)
        self._fell_behind = 0
        """Number of streams dropped because their clients read too slowly."""

    def begun(self) -> None:
        """Count a request that has begun."""
        self._now.inc()

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request. `route` is the template of its path; "" for an unknown path."""
        self._now.dec()
        known = method if route and method in METHODS else OTHER
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(known, route).observe(seconds)

    def count_stalled(self) -> None:
        """Count a stream that was dropped because its client did not read."""
        self._dropped.inc()

    def expose(self, streams: int, fell_behind: int, jobs: int) -> bytes:
        """The metrics in Prometheus' text format. `fell_behind` is the number of streams dropped so far because
        their clients were too far behind."""
        self._streams.set(streams)
        self._dropped.inc(fell_behind - self._fell_behind)
        self._fell_behind = fell_behind
        self._jobs.set(jobs)
        return generate_latest(self._registry)
