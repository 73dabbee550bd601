"""The spans of tests, in memory."""

from collections.abc import Callable, Sequence

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

_exporter = InMemorySpanExporter()


class Processor(SpanProcessor):
    """A processor that fails if it is told to."""

    def __init__(self) -> None:
        self.fails = False

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self._work()

    def on_end(self, span: ReadableSpan) -> None:
        self._work()

    def _work(self) -> None:
        if self.fails:
            raise RuntimeError("the processor is broken")


processor = Processor()


def collecting() -> Callable[[], Sequence[ReadableSpan]]:
    """Forget the spans so far, and return the function that answers those that have ended, in their order.

    The provider is that of the whole process, which OpenTelemetry lets be set once.
    """
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(processor)
        provider.add_span_processor(SimpleSpanProcessor(_exporter))
        trace.set_tracer_provider(provider)
    processor.fails = False
    _exporter.clear()
    return _exporter.get_finished_spans


def traced(span: ReadableSpan) -> str:
    """The id of the trace of a span."""
    assert span.context is not None
    return f"{span.context.trace_id:032x}"
