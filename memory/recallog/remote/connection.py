"""The connection to a server: calls, which are sent again if that is safe, jobs, and streams that resume."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import cache, cached_property
from typing import Any

import httpx
import msgspec

from recallog.operations.operation import Operation
from recallog.operations.pipeline import Call, Host
from recallog.operations.routes import JOBS, WARNING, Route
from recallog.remote import answers, frames
from recallog.remote.answers import RequestFailure
from recallog.remote.frames import Frame
from recallog.version import __version__
from recallog_projections import notices
from recallog_schemas import Event, codec
from recallog_schemas.errors import (
    Forbidden,
    InvalidArgument,
    StorageError,
    UnknownOutcome,
)
from recallog_streams.tracing import TRACEPARENT, Tracing

CONNECT_SECONDS = 5.0
REPETITIONS = 5
"""How often a request is sent again at most."""
WAIT_SECONDS_FIRST = 0.25
WAIT_SECONDS_MAX = 10.0
IDLE_SECONDS = 3.0
"""How long an unused connection is kept. It is less than the server keeps it (5 s), so that requests do not meet its
end."""
SILENCE_SECONDS = 45.0
"""After this silence a stream is opened again: three heartbeats of the server."""

Query = Mapping[str, str]

_OPENED = Frame("open", "", b"")
_ABOUT_STREAM = frozenset({_OPENED.event, "end"})
"""Events about the stream, which are not a part of it."""


class _Failed(Exception):
    """A request without a result."""

    def __init__(self, failure: RequestFailure) -> None:
        super().__init__(failure)
        self.failure = failure


class ServerConnection(Host):
    """A server and the key for it. Any number of calls may be in progress. See `Remote` for the arguments."""

    def __init__(
        self,
        url: str,
        key: str | None,
        deadline_seconds: float,
        transport: httpx.AsyncBaseTransport | None,
        tracing: Tracing | None = None,
    ) -> None:
        self.url = _checked_url(url)
        self._key = _checked_key(key)
        self._deadline_seconds = deadline_seconds
        self._transport = transport
        self.tracing = tracing
        self._closed = False

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        headers = {"User-Agent": f"recallog/{__version__}", "Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        return httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, keepalive_expiry=IDLE_SECONDS),
            transport=self._transport,
            event_hooks={"request": [self._name_span], "response": [self._close_late]},
        )

    async def _name_span(self, request: httpx.Request) -> None:
        """Name the span in which a request is sent."""
        traceparent = None if self.tracing is None else self.tracing.traceparent()
        if traceparent is not None:
            request.headers[TRACEPARENT] = traceparent

    async def _close_late(self, response: httpx.Response) -> None:
        """Close a connection that was made while the client was closed, which no longer knows it."""
        if self._closed and (stream := response.extensions.get("network_stream")) is not None:
            await stream.aclose()

    async def close(self) -> None:
        """Close the connections. Calls in progress fail."""
        self._closed = True
        if "_client" in self.__dict__:
            await self._client.aclose()

    async def delegate(self, call: Call) -> Any:
        """The answer of the server, which executes every call. A call is sent again if repeating it is safe."""
        call.make_repeatable()
        operation = call.operation
        route = _route(operation)
        response = await self._fetch_answer(self._request(route, call.arguments), operation)
        if (warning := response.headers.get(WARNING)) is not None:
            notices.tell("remote", warning)
        content = await self._end_of_job(response.content, call.callbacks) if route.is_job else response.content
        try:
            return operation.from_json(content)
        except ValueError as error:
            raise StorageError(
                f"this version of Recallog ({__version__}) does not understand the answer of {self.url} to "
                f"{operation.qualified_name}: {error}. Install the version of the server"
            ) from None

    async def stream(self, path: str, begin: Callable[[], tuple[Query, Mapping[str, str]]]) -> AsyncGenerator[Frame]:
        """The frames of an event stream, which is opened again whenever it breaks.

        `begin` is called each time. It returns the query and the headers that say where to begin. Raises the error of
        the server, and `StorageUnavailable` if it cannot be reached for the time limit of a call.
        """
        tries, give_up_at = 0, self._deadline()
        while True:
            is_open = False
            try:
                async with aclosing(self._frames(path, *begin())) as found:
                    async for frame in found:
                        is_open = True
                        if frame.event not in _ABOUT_STREAM:
                            tries = 0
                            yield frame
                failure = answers.describe_loss(self.url, "the stream has ended", read_only=True)
            except _Failed as failed:
                failure = failed.failure
            if is_open:
                give_up_at = self._deadline()
            wait_seconds = _wait_seconds(tries, failure)
            if not failure.error.retryable or time.monotonic() + wait_seconds > give_up_at:
                raise failure.error
            tries += 1
            await asyncio.sleep(wait_seconds)

    def _deadline(self) -> float:
        return time.monotonic() + self._deadline_seconds

    def _request(self, route: Route, valid: Mapping[str, Any]) -> httpx.Request:
        """The request for a call. Raises `InvalidArgument` for values that JSON in UTF-8 cannot represent."""
        self._check_open()
        try:
            if route.method == "GET":
                path, query, _ = route.request(msgspec.to_builtins(valid))
                return self._client.build_request("GET", path, params=httpx.QueryParams(tuple(query)))
            path, _, body = route.request(valid)
            content = msgspec.json.encode(body, enc_hook=_encode)
        except (UnicodeEncodeError, OverflowError, TypeError, ValueError) as error:
            raise InvalidArgument(f"the arguments cannot be sent: {error}", rule="unencodable") from None
        return self._client.build_request("POST", path, content=content, headers={"Content-Type": "application/json"})

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("the memory is closed; open it again")

    async def _fetch_answer(self, request: httpx.Request, operation: Operation) -> httpx.Response:
        """The answer to a request, which is sent again after temporary failures.

        If one of the tries may have had an effect, and none was answered, the outcome is unknown.
        """
        is_safe, tries, until = operation.idempotent or operation.repeat_key is not None, 0, self._deadline()
        unknown: UnknownOutcome | None = None
        while True:
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    return await self._send(request, read_only=operation.read_only)
            except TimeoutError:
                reason = f"{self._deadline_seconds:g} seconds have passed"
                failure = answers.describe_loss(self.url, reason, read_only=operation.read_only)
            except _Failed as failed:
                failure = failed.failure
            if isinstance(failure.error, UnknownOutcome):
                unknown = failure.error
            wait_seconds = _wait_seconds(tries, failure)
            may_pass = failure.error.retryable and (is_safe or failure.nothing_done)
            if not may_pass or tries == REPETITIONS or time.monotonic() + wait_seconds >= until:
                raise failure.error if unknown is None or failure.is_final else unknown
            tries += 1
            await asyncio.sleep(wait_seconds)

    async def _send(self, request: httpx.Request, *, read_only: bool) -> httpx.Response:
        """Raises `_Failed`."""
        try:
            response = await self._client.send(request)
        except httpx.RequestError as error:
            raise _Failed(self._broken(error, read_only=read_only)) from None
        if not response.is_success:
            raise _Failed(answers.failure_of(response, self.url, read_only=read_only))
        return response

    def _broken(self, error: httpx.RequestError, *, read_only: bool) -> RequestFailure:
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.UnsupportedProtocol):
            return answers.not_sent(self.url, reason)
        return answers.describe_loss(self.url, reason, read_only=read_only)

    async def _frames(self, path: str, query: Query, headers: Mapping[str, str]) -> AsyncGenerator[Frame]:
        """The frames of a stream until it ends. Raises `_Failed`."""
        self._check_open()
        request = self._client.build_request(
            "GET",
            path,
            params=query,
            headers={**headers, "Accept": frames.MEDIA_TYPE},
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
        )
        try:
            response = await self._client.send(request, stream=True)
            try:
                if not response.is_success:
                    await response.aread()
                    raise _Failed(answers.failure_of(response, self.url, read_only=True))
                yield _OPENED
                async for frame in frames.parse_frames(response.aiter_bytes()):
                    yield frame
            finally:
                await response.aclose()
        except httpx.RequestError as error:
            raise _Failed(self._broken(error, read_only=True)) from None

    async def _end_of_job(self, begun: bytes, callbacks: Mapping[str, Any]) -> bytes:
        """The answer of a job, once it has ended. Callbacks are called with its progress."""
        job = _job(begun)
        path, shown = f"{JOBS}/{job.id}", (0, 0)
        try:
            async with aclosing(self.stream(path, lambda: ({}, {}))) as found:
                async for frame in found:
                    job = _job(frame.data)
                    if job.total and (job.done, job.total) != shown:
                        shown = (job.done, job.total)
                        for report in callbacks.values():
                            if report is not None:
                                report(*shown)
                    if job.state == "done":
                        return bytes(job.answer)
                    if job.state == "failed":
                        break
        except Forbidden:
            job.problem = None  # the server has started again, or it is another one: it does not know the job
        if job.problem is not None:
            raise answers.error_of(job.problem)
        raise UnknownOutcome(f"the server ended during {job.operation}, or another one answers now; call it again")


class _Job(msgspec.Struct):
    """The state of a job, as the server reports it."""

    id: str
    operation: str
    state: str
    done: int = 0
    total: int = 0
    answer: msgspec.Raw = msgspec.Raw(b"null")
    problem: dict[str, Any] | None = None


_jobs = msgspec.json.Decoder(_Job)


def _job(data: bytes) -> _Job:
    try:
        return _jobs.decode(data)
    except msgspec.MsgspecError as error:
        raise StorageError(f"the server's answer is not a job: {error}. Install the version of the server") from None


@cache
def _route(operation: Operation) -> Route:
    return Route(operation)


def _encode(value: object) -> msgspec.Raw:
    if isinstance(value, Event):
        return msgspec.Raw(codec.encode(value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def _wait_seconds(tries: int, failure: RequestFailure) -> float:
    """How long to wait before the next try: twice as long each time, at random, and at least as long as the server
    asks."""
    longest = min(WAIT_SECONDS_MAX, WAIT_SECONDS_FIRST * 2.0**tries)
    return max(failure.wait_seconds, 0.0) + random.uniform(0.5, 1.0) * longest


def _checked_url(url: str) -> str:
    """The URL without a `/` at its end. Raises `InvalidArgument`."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise InvalidArgument(f"url: {error}", path="url", rule="url") from None
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo or parsed.query or parsed.fragment:
        message = "url: should be the URL of a server, for example http://127.0.0.1:8765; the key is another argument"
        raise InvalidArgument(message, path="url", rule="url")
    return str(parsed).rstrip("/")


def _checked_key(key: str | None) -> str | None:
    if key is not None and not (key.isascii() and key.isprintable() and key and " " not in key):
        raise InvalidArgument("key: should be a key of `recallog keys create`, or a JWT", path="key", rule="key")
    return key
