"""Calls to a Qdrant server: its address, deadlines, and errors that say what to do."""

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import parse_qs, quote, urlsplit

import httpx
from grpc import StatusCode
from grpc.aio import AioRpcError
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from recallog_projections.breaker import Breaker
from recallog_projections.index.engines.engine import closed_error
from recallog_schemas.errors import IndexLost, IndexUnavailable, SettingsError

VERSION_MIN = (1, 19)
"""The first version that computes idf over the points of a filter. Older ones use the points of all tenants."""

WRITE_SECONDS = 15.0
"""How long a call of a builder may take: it writes, or reads whole pages of points."""

_ADDRESS = "write https://host:6333, with ?api_key=… at the end if the server needs a key, percent-encoded"

_HTTP_STATUS = {StatusCode.NOT_FOUND: 404, StatusCode.UNAUTHENTICATED: 401, StatusCode.PERMISSION_DENIED: 403}
"""The statuses of HTTP that mean the same as those of gRPC."""

Result = TypeVar("Result")


class _NoAnswer(Exception):
    """The server cannot be reached, or does not answer in time."""


class QdrantConnection:
    """The clients of the server at `url`: http(s)://host[:port][/path][?api_key=…][&prefix=…], port 6333.

    With `client`, that client is used and finally closed, and `url` only appears in messages. With `grpc_port`, points
    are written by gRPC. Calls raise `IndexUnavailable` if the server cannot be reached, does not answer in time, or
    refuses, and `IndexLost` if it does not have the collection.
    """

    def __init__(
        self, url: str, client: AsyncQdrantClient | None, *, deadline_seconds: float, grpc_port: int | None
    ) -> None:
        self._secret = ""
        self.prefix = "recallog"
        """The option `prefix` of the URL."""
        if client is None:
            client, writer = self._connect(url, grpc_port)
        else:
            self.address, writer = url, client
        self.client = client
        self.writer = writer
        """Writes points."""
        self._version: tuple[int, int] | None = None
        self._closed = False
        self._breaker = Breaker(
            lambda reason: IndexUnavailable(
                f"the Qdrant at {self.address} {reason}: check that it runs and that the address is right"
            ),
            deadline_seconds,
            failures=(_NoAnswer,),
            reason_of=str,
        )

    def _connect(self, url: str, grpc_port: int | None) -> tuple[AsyncQdrantClient, AsyncQdrantClient]:
        try:
            parsed = urlsplit(url)
            options = parse_qs(parsed.query, strict_parsing=True) if parsed.query else {}
            host, port = parsed.hostname, parsed.port or 6333
        except ValueError:  # without the text of the error, which may show a part of the key
            raise SettingsError(f"not the address of a Qdrant server: {_ADDRESS}") from None
        known = options.keys() <= {"api_key", "prefix"}
        if parsed.scheme not in ("http", "https") or not host or parsed.username or not known:
            raise SettingsError(f"not the address of a Qdrant server: {_ADDRESS}")
        [*_, self._secret] = options.get("api_key", [""])
        [*_, self.prefix] = options.get("prefix", [self.prefix])
        self.address = f"{parsed.scheme}://{host}:{port}{parsed.path}"

        def open_client(grpc_port: int | None) -> AsyncQdrantClient:
            return AsyncQdrantClient(
                url=f"{parsed.scheme}://{f'[{host}]' if ':' in host else host}:{port}",
                prefix=parsed.path.rstrip("/") or None,
                api_key=self._secret or None,
                timeout=int(WRITE_SECONDS),
                prefer_grpc=grpc_port is not None,
                grpc_port=grpc_port or 6334,
                check_compatibility=False,  # it would query the server now, in a thread; `check_version` does so later
            )

        try:
            client = open_client(None)
            return client, client if grpc_port is None else open_client(grpc_port)
        except ValueError:  # an impossible host, such as one with a space
            raise SettingsError(f"not the address of a Qdrant server: {_ADDRESS}") from None

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.client.close()
            if self.writer is not self.client:
                await self.writer.close()

    async def check_version(self) -> tuple[int, int]:
        """The server's version, requested once. Raises `SettingsError` if it is too old."""
        if self._version is None:
            reported = (await self.run(self.client.info)).version
            found = re.match(r"(\d+)\.(\d+)", reported)
            version = (int(found[1]), int(found[2])) if found else (0, 0)
            if version < VERSION_MIN:
                raise SettingsError(
                    f"the Qdrant at {self.address} is {reported}; the semantic index needs {VERSION_MIN[0]}."
                    f"{VERSION_MIN[1]} or later, which computes idf per space: upgrade the server"
                )
            self._version = version
        return self._version

    async def write(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """As `run`, for a call of a builder, which may take `WRITE_SECONDS`."""
        return await self.run(call, WRITE_SECONDS)

    async def run(self, call: Callable[[], Awaitable[Result]], seconds: float | None = None) -> Result:
        """The result of `call`, which is repeated once after a network error: idle connections break unnoticed."""
        if self._closed:
            raise closed_error()

        async def work() -> Result:
            try:
                return await call()
            except (ResponseHandlingException, AioRpcError) as error:
                if not _is_broken(error):
                    raise self._no_answer(error) from error
            try:
                return await call()
            except (ResponseHandlingException, AioRpcError) as error:
                raise self._no_answer(error) from error

        with self._translated_errors():
            return await self._breaker.call(work, seconds)

    def _no_answer(self, error: ResponseHandlingException | AioRpcError) -> Exception:
        """The failure that an error means for the breaker; the error itself if it is an answer of the server."""
        if isinstance(error, AioRpcError):
            if error.code() is StatusCode.DEADLINE_EXCEEDED:
                return _NoAnswer(f"does not answer within {WRITE_SECONDS:g} s")
            unreachable = error.code() is StatusCode.UNAVAILABLE
            return _NoAnswer(f"cannot be reached ({self._safe(error.details() or '')})") if unreachable else error
        if isinstance(error.source, httpx.TimeoutException):
            return _NoAnswer(f"does not answer within {WRITE_SECONDS:g} s")
        return _NoAnswer(f"cannot be reached ({self._safe(str(error.source) or type(error.source).__name__)})")

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except UnexpectedResponse as error:
            raise self._translated_error(error.status_code, error.content.decode(errors="replace")) from error
        except AioRpcError as error:
            status = _HTTP_STATUS.get(error.code(), error.code().name)
            raise self._translated_error(status, error.details() or "") from error
        except (ApiException, QdrantException) as error:
            raise IndexUnavailable(
                f"the Qdrant at {self.address} failed a call ({self._safe(str(error))}); try again later"
            ) from error
        except ValueError as error:
            if re.fullmatch(r"Collection \S+ not found", str(error)):  # the client's local mode
                raise self.make_lost_error() from error
            raise IndexUnavailable(
                f"the server at {self.address} is not a Qdrant: check that the address is right"
            ) from error

    def _translated_error(self, status: int | str | None, content: str) -> IndexUnavailable:
        text = self._safe(content)
        if status == 404 and re.search(r"doesn't exist|Alias \S+ does not exist", text):
            return self.make_lost_error()
        if status in (401, 403):
            return IndexUnavailable(
                f"the Qdrant at {self.address} refuses the API key, or needs one: give it as ?api_key=…"
            )
        return IndexUnavailable(f"the Qdrant at {self.address} answers {status}: {text[:300]}; see its log")

    def make_lost_error(self) -> IndexLost:
        """The error of a call about a collection that the server does not have."""
        return IndexLost(f"the semantic index is no longer on the Qdrant at {self.address}; it is rebuilt. Try again")

    def _safe(self, text: str) -> str:
        return text.replace(self._secret, "***").replace(quote(self._secret), "***") if self._secret else text


def _is_broken(error: ResponseHandlingException | AioRpcError) -> bool:
    """Whether the connection broke, so that another attempt can succeed."""
    if isinstance(error, AioRpcError):
        return bool(error.code() is StatusCode.UNAVAILABLE)
    return isinstance(error.source, httpx.NetworkError | httpx.RemoteProtocolError)
