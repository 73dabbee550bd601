"""The layer around all routes: request ids, limits, errors, the log and the metrics.

Pure ASGI without buffering of responses, so that streams pass through.
"""

import re
import time
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import uuid_utils
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recallog_schemas.errors import Forbidden, RecallogError, StorageUnavailable
from recallog_service import logs
from recallog_service.http import problems
from recallog_service.http.metrics import ServerMetrics
from recallog_service.http.naming import Names
from recallog_service.http.problems import RequestError
from recallog_service.http.sse import ClientStalled
from recallog_streams.tracing import TRACEPARENT, Tracing

ABORT = "recallog.abort"
"""Key in the state of a scope: a function that aborts the connection."""
REQUEST_ID = "x-request-id"

PROBES = frozenset({"/healthz", "/readyz"})
"""The paths of the health checks."""
WAITS = "the server waits until its keys can be read"

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass
class _Exchange:
    """One request and its response."""

    request_id: str
    method: str
    began: float = field(default_factory=time.monotonic)
    status: int = 0
    sent: int = 0


class Transport:
    """The outermost layer of the application."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: ServerMetrics,
        body_bytes_max: int,
        hosts: Collection[str] | None,
        tracing: Tracing | None = None,
    ) -> None:
        """With `tracing`, spans join the trace that the client names in the header `traceparent`."""
        self._app = app
        self._metrics = metrics
        self._body_bytes_max = body_bytes_max
        self.hosts = hosts
        """The names of this server that requests may use; empty: any name. None: not known yet; meanwhile only the
        paths in `PROBES` are answered."""
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(REQUEST_ID.encode(), b"").decode("latin-1")
        exchange = _Exchange(given if _ID.fullmatch(given) else str(uuid_utils.uuid7()), scope["method"])
        state = {**scope.get("state", {}), "request": exchange.request_id}
        # Names may have a slash: routes are compared before special characters are decoded.
        scope = {**scope, "path": scope["raw_path"].decode("latin-1"), "state": state, "app": self}

        async def send_answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (REQUEST_ID.encode(), exchange.request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]
            else:
                exchange.sent += len(message.get("body", b""))
            await send(message)

        self._metrics.begun()
        try:
            self._check(scope, headers)
            with self._continue_trace(headers):
                await self._app(scope, self._limit_body(headers, receive), send_answer)
        except ClientStalled:
            self._metrics.count_stalled()
            await _abort(scope, receive)
        except Exception as error:
            answer = answer_to(error, exchange.request_id)
            if exchange.status:
                raise
            await answer(scope, receive, send_answer)
        finally:
            self._note(exchange, scope)

    def _continue_trace(self, headers: dict[bytes, bytes]) -> AbstractContextManager[None]:
        if self._tracing is None:
            return nullcontext()
        return self._tracing.continue_trace(headers.get(TRACEPARENT.encode(), b"").decode("latin-1"))

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        names = Names.of(scope["headers"])
        if self.hosts is None and scope["path"] not in PROBES:
            raise StorageUnavailable(WAITS)
        if self.hosts:
            names.check_answers(self.hosts)
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > self._body_bytes_max:
            raise self._too_large()

    def _limit_body(self, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._body_bytes_max:
                raise self._too_large()
            return message

        return receive_limited

    def _too_large(self) -> RequestError:
        message = (
            f"the body is longer than {self._body_bytes_max:,} bytes, the limit of a request; send it in parts: each "
            "is done whole or not at all"
        )
        return RequestError(413, message, rule="too_large")

    def _note(self, exchange: _Exchange, scope: Scope) -> None:
        seconds = time.monotonic() - exchange.began
        # The template, not the path: names of spaces and agents may be personal.
        route = getattr(scope.get("route"), "path", "")
        self._metrics.count_request(exchange.method, route, exchange.status, seconds)
        logs.request(
            "request",
            request=exchange.request_id,
            method=exchange.method,
            route=route,
            status=exchange.status,
            ms=round(1000 * seconds, 1),
            bytes=exchange.sent,
            client=scope["state"].get("client", ""),
        )


def answer_to(error: Exception, request_id: str) -> Response:
    """The response for `error`. An unexpected error is logged as a defect."""
    if isinstance(error, RecallogError):
        return problems.answer_to(error)
    if isinstance(error, HTTPException):
        if error.status_code == 404:
            return problems.answer_to(Forbidden())
        if error.status_code == 405:
            allowed = (error.headers or {}).get("Allow", "")
            problem = RequestError(405, f"this path takes {allowed}", rule="method")
            return problems.answer_to(problem, error.headers)
        return problems.answer_to(RequestError(error.status_code, str(error.detail), rule="request"), error.headers)
    return problems.answer_to(logs.defect(error, request_id))


async def _abort(scope: Scope, receive: Receive) -> None:
    """Abort a connection whose client does not read: closing it would wait until its buffer is empty."""
    scope["state"][ABORT]()
    while (await receive())["type"] != "http.disconnect":
        pass
