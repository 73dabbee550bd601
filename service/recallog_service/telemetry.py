"""Exports the spans of a server or a worker to an OTLP endpoint, configured by the variables `OTEL_…`.

An existing tracer provider, for example from `opentelemetry-instrument`, is kept.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from recallog import Settings
from recallog_schemas import extras

FLUSH_SECONDS = 2.0
"""Seconds that an ending process waits until its last spans are sent."""

_SERVICE = "OTEL_SERVICE_NAME"


@contextmanager
def export_spans(settings: Settings, service: str) -> Iterator[None]:
    """Export the spans that the block creates, if the setting `telemetry` is on.

    `service` is the name of this process, unless the environment names it. Raises `SettingsError` if a package is
    missing.
    """
    if not settings.telemetry:
        yield
        return
    with extras.import_extra("telemetry"):
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        yield
        return
    named = {} if os.environ.get(_SERVICE) else {SERVICE_NAME: service}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        # Otherwise an endpoint that does not answer would delay the end until the exporter gives up.
        ending = threading.Thread(target=provider.shutdown, name="recallog-spans", daemon=True)
        ending.start()
        ending.join(FLUSH_SECONDS)
