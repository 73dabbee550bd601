"""A collector of OpenTelemetry spans on this machine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span


class Collector:
    """The spans that were sent to `url`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.resources: list[ResourceSpans] = []
        self.bodies: list[bytes] = []

    @property
    def spans(self) -> list[Span]:
        return [span for resource in self.resources for scope in resource.scope_spans for span in scope.spans]

    @property
    def services(self) -> set[str]:
        """The names of the processes that have sent them."""
        attributes = (each for resource in self.resources for each in resource.resource.attributes)
        return {each.value.string_value for each in attributes if each.key == "service.name"}


@contextmanager
def collecting_from_processes() -> Iterator[Collector]:
    """A collector on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            found.resources.extend(ExportTraceServiceRequest.FromString(found.bodies[-1]).resource_spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield found
        finally:
            server.shutdown()
