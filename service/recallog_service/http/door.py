"""The shared parts of all routes: the memory, access, and limits."""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.requests import Request

from recallog import Memory
from recallog.operations.operation import Operation
from recallog_schemas.errors import RecallogError, StorageUnavailable, Unauthorized, UnknownOutcome
from recallog_service.access import Access, Caller, Guarded, Verb
from recallog_service.access.concealing import FOR_OPERATORS
from recallog_service.http import sse
from recallog_service.http.problems import problem_of

_SCHEME = "bearer "
RECHECK_SECONDS = 0.5
"""Maximum seconds that a stream with events continues after its key was revoked."""


TIMED = 120
"""Number of durations kept per operation, of the newest calls."""


@dataclass(frozen=True)
class Limits:
    """The limits of the door."""

    body_bytes: int = 8 * 1024 * 1024
    """Maximum size of a request: room for more than 30 of the largest events."""
    answer_seconds: float = 60.0
    """Time limit in seconds of an operation that is not a job."""


@dataclass(frozen=True)
class HttpClient:
    """The sender of a request, and what it may do."""

    caller: Caller
    memory: Guarded

    @property
    def name(self) -> str:
        """The name in rate limits and the log; it is not secret."""
        return self.caller.name

    def check(self, verb: Verb, space: str | None = None, agent: str | None = None) -> None:
        """Raise `Forbidden` if the grant does not allow this."""
        self.caller.grant.check(verb, space, agent)

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Errors raised here are reported to the client. `memory.call` already does that."""
        try:
            yield
        except FOR_OPERATORS as error:
            raise self.caller.grant.translate_error(error) from None


@dataclass
class Door:
    """The memory that the routes serve, with access control."""

    memory: Memory
    access: Access
    limits: Limits = field(default_factory=Limits)
    seconds: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(partial(deque, maxlen=TIMED)))
    """Seconds of the last calls of each operation, newest last."""

    async def client(self, request: Request) -> HttpClient:
        """The sender of a request. Raises `Unauthorized` and `RateLimited`."""
        return await self.client_with(request, _token(request))

    async def client_with(self, request: Request, token: str | None) -> HttpClient:
        """The sender of a request with this key or token. Counts one call."""
        found = await self.access.caller(token)
        request.state.client = found.name
        return HttpClient(found, Guarded(self.memory, found.grant))

    async def while_allowed(
        self, request: Request, client: HttpClient, frames: AsyncGenerator[bytes]
    ) -> AsyncGenerator[bytes]:
        """The frames of a stream, until the key of its client is revoked or expires, or its grant changes.

        An error ends the stream with its problem document.
        """
        try:
            checked = time.monotonic()
            async with aclosing(frames):
                async for frame in frames:
                    if time.monotonic() - checked > RECHECK_SECONDS:
                        if await self.access.identify(_token(request)) != client.caller:
                            raise Unauthorized("the grant of the key has changed")
                        checked = time.monotonic()
                    yield frame
        except RecallogError as error:
            reason = sse.End.UNAUTHORIZED if isinstance(error, Unauthorized) else sse.End.ERROR
            yield sse.make_end(reason, problem=problem_of(client.caller.grant.translate_error(error)))

    async def answer(self, client: HttpClient, operation: Operation, given: Mapping[str, Any]) -> Any:
        """The answer of an operation within the time limit. Raises its errors, and a retryable error after the
        limit."""
        began = time.perf_counter()
        async with self.limit_time(read_only=operation.read_only):
            found = await client.memory.call(operation, given)
        self.seconds[operation.qualified_name].append(time.perf_counter() - began)
        return found

    @asynccontextmanager
    async def limit_time(self, *, read_only: bool) -> AsyncIterator[None]:
        """Limit the time of the block. Raises a retryable error after the limit."""
        try:
            async with asyncio.timeout(self.limits.answer_seconds):
                yield
        except TimeoutError:
            message = f"no answer within {self.limits.answer_seconds:g} seconds"
            if read_only:
                raise StorageUnavailable(f"{message}; try again, or request less") from None
            raise UnknownOutcome(f"{message}: the write may have happened; send it again with the same ids") from None


def _token(request: Request) -> str | None:
    """The key or token of a request."""
    header = request.headers.get("authorization", "")
    return header[len(_SCHEME) :].strip() if header.lower().startswith(_SCHEME) else None
