"""OpenTelemetry spans: of operations on the memory, where they are called, and of the fold of the events they wrote.

The names are those of OpenTelemetry's conventions for operations on memories of GenAI and for messaging. Attributes
have names, counts and classes of errors, but no words of agents. The program decides where spans go: they belong to its
tracer provider. OpenTelemetry is imported when the first `Tracing` is made, and not before.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recallog_schemas import extras

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext

TRACEPARENT = "traceparent"
"""The header of a request or a record that names the span of its sender (W3C Trace Context)."""

Attribute = str | int

_log = logging.getLogger("recallog.tracing")


class Tracing:
    """Makes the spans of one process, or of one client. Its own failures are logged, and never raised."""

    def __init__(self, *, remote: bool = False) -> None:
        """`remote`: the called code is in another process. Raises `SettingsError` if OpenTelemetry is not installed."""
        with extras.import_extra("telemetry"):
            from opentelemetry import context, trace
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        self._context, self._trace = context, trace
        self._propagator = TraceContextTextMapPropagator()
        self._tracer = trace.get_tracer("recallog")
        self._kind = trace.SpanKind.CLIENT if remote else trace.SpanKind.INTERNAL

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Attribute]) -> "Iterator[Span]":
        """A span around the `with` block; an error gives it the attribute `error.type`."""
        span: Span = self._trace.INVALID_SPAN
        with _harmless():
            span = self._tracer.start_span(name, kind=self._kind, attributes=attributes)
        token = self._context.attach(self._trace.set_span_in_context(span))
        try:
            yield span
        except BaseException as error:
            with _harmless():  # the message of an error may quote what agents have said
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(self._trace.StatusCode.ERROR)
            raise
        finally:
            self._context.detach(token)
            with _harmless():
                span.end()

    @contextmanager
    def continue_trace(self, traceparent: str | None) -> Iterator[None]:
        """Spans inside belong to the trace of a header. An invalid header changes nothing, and neither does a
        valid one if the program has already made a span for the request."""
        context = self._context.get_current()
        if traceparent and not self._trace.get_current_span(context).get_span_context().is_valid:
            context = self._propagator.extract({TRACEPARENT: traceparent}, context)
        token = self._context.attach(context)
        try:
            yield
        finally:
            self._context.detach(token)

    def traceparent(self) -> str | None:
        """The header that names the current span; None if there is none."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get(TRACEPARENT)

    def add_span(self, partition: int, records: int, seconds: float, traceparents: Iterable[str]) -> None:
        """Add the span of a batch that was just committed, with a link to each span that has published records of it.

        `traceparents` are their headers. If there is a single span, the fold belongs to its trace. A batch without
        traced records has none.
        """
        with _harmless():
            publishers = [each for each in map(self._find_sampled, dict.fromkeys(traceparents)) if each is not None]
            if not publishers:
                return
            parent = self._context.Context()
            if len(publishers) == 1:
                parent = self._trace.set_span_in_context(self._trace.NonRecordingSpan(publishers[0]), parent)
            now = time.time_ns()
            self._tracer.start_span(
                "fold",
                parent,
                self._trace.SpanKind.CONSUMER,
                {
                    "messaging.operation.name": "fold",
                    "messaging.operation.type": "process",
                    "messaging.destination.partition.id": str(partition),
                    "messaging.batch.message_count": records,
                },
                [self._trace.Link(each) for each in publishers],
                start_time=now - round(seconds * 1e9),
            ).end(now)

    def _find_sampled(self, traceparent: str) -> "SpanContext | None":
        """The span that a header names, if its trace is recorded."""
        extracted = self._propagator.extract({TRACEPARENT: traceparent}, self._context.Context())
        found = self._trace.get_current_span(extracted).get_span_context()
        return found if found.is_valid and found.trace_flags.sampled else None


@contextmanager
def _harmless() -> Iterator[None]:
    """Errors inside must not fail the operation: samplers and processors of spans are code of the program."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - see above
        _log.warning("a span was lost: %s", type(error).__name__)
