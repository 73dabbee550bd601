"""The HTTP client of a wrapped client: it sees every request and its answer, streamed or not.

Both clients of each API send all requests with the method `send` of an HTTP client, which is from httpx or a similar
library.
"""

import asyncio
import copy
import json
import logging
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from recallog_wrap.anthropic_messages import AnthropicMessages
from recallog_wrap.chat_completions import ChatCompletions
from recallog_wrap.exchanges import Answer, Exchange, Message
from recallog_wrap.remembering import Remembering
from recallog_wrap.responses import Responses

EXCHANGES: Sequence[Exchange] = (ChatCompletions(), Responses(), AnthropicMessages())

logger = logging.getLogger("recallog.wrap")


@dataclass
class _Turn:
    """An exchange in progress."""

    remembering: Remembering
    exchange: Exchange
    body: Mapping[str, Any]
    session: str

    def enriched(self) -> Mapping[str, Any]:
        return self.remembering.enrich(self.exchange, self.body, self.session)

    def store(self, answered: Sequence[Message]) -> None:
        self.remembering.store(self.exchange.asked(self.body), answered, self.session)

    def store_whole(self, answer: bytes) -> None:
        try:
            body = json.loads(answer)
        except ValueError:
            body = None
        self.store(self.exchange.answered(body) if isinstance(body, dict) else [])


def remembering_http(http: Any, remembering: Remembering) -> Any:
    """A copy of an HTTP client, synchronous or asynchronous, that remembers."""
    wrapped = copy.copy(http)
    mixin = _Asynchronous if hasattr(http, "aclose") else _Synchronous
    wrapped.__class__ = type(type(http).__name__, (mixin, type(http)), {})
    wrapped.remembering = remembering
    wrapped.original = http  # a client closes its connections when nothing refers to it
    return wrapped


class _Synchronous:
    remembering: Remembering

    def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        turn = _turn_of(self.remembering, request)
        if turn is None:
            return super().send(request, stream=stream, **options)  # type: ignore[misc]
        response = super().send(_changed(request, turn.enriched()), stream=stream, **options)  # type: ignore[misc]
        if not response.is_success:
            return response
        if not stream:
            turn.store_whole(response.content)
        elif _is_readable(response):
            response.stream = _of_library(request, "SyncByteStream", _Recorded)(response, turn)
        return response


class _Asynchronous:
    remembering: Remembering

    async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        turn = _turn_of(self.remembering, request)
        if turn is None:
            return await super().send(request, stream=stream, **options)  # type: ignore[misc]
        changed = _changed(request, await asyncio.to_thread(turn.enriched))
        response = await super().send(changed, stream=stream, **options)  # type: ignore[misc]
        if not response.is_success:
            return response
        if not stream:
            await asyncio.to_thread(turn.store_whole, response.content)
        elif _is_readable(response):
            response.stream = _of_library(request, "AsyncByteStream", _AsyncRecorded)(response, turn)
        return response


class _Recording:
    """An answer that is recorded while it is read, and stored once it ends or is abandoned."""

    def __init__(self, response: Any, turn: _Turn) -> None:
        self._stream = response.stream
        self._turn = turn
        self._answer: Answer = turn.exchange.answer()
        self._has_events = response.headers.get("content-type", "").startswith("text/event-stream")
        self._rest = b""
        """The received part of an incomplete line, or of an answer that is not sent as events."""
        self._is_stored = False

    def _take(self, data: bytes) -> None:
        self._rest += data
        if not self._has_events:
            return
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._add(line.removeprefix(b"data:").strip())

    def _add(self, data: bytes) -> None:
        try:
            event = json.loads(data)
        except ValueError:  # "[DONE]"
            return
        if isinstance(event, dict):
            self._answer.add(event)

    def _store(self) -> None:
        if self._is_stored:
            return
        self._is_stored = True
        if self._has_events:
            self._turn.store(self._answer.messages())
        else:
            self._turn.store_whole(self._rest)


class _Recorded(_Recording):
    def __iter__(self) -> Iterator[bytes]:
        for data in self._stream:
            self._take(data)
            yield data
        self._store()

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._store()


class _AsyncRecorded(_Recording):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            self._take(data)
            yield data
        await asyncio.to_thread(self._store)

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._store()  # not in a thread: a task that is cancelled may not wait


def _turn_of(remembering: Remembering, request: Any) -> _Turn | None:
    """The exchange that a request begins; None if it does not begin one."""
    if request.method != "POST":
        return None
    exchange = next((each for each in EXCHANGES if request.url.path.endswith(each.path)), None)
    if exchange is None:
        return None
    try:
        body = json.loads(request.read())
    except (ValueError, RuntimeError):  # not JSON, or an upload
        return None
    return _Turn(remembering, exchange, body, remembering.session()) if isinstance(body, dict) else None


def _changed(request: Any, body: Mapping[str, Any]) -> Any:
    """A request with another body, whose answer is not compressed."""
    headers = request.headers.copy()
    headers["accept-encoding"] = "identity"
    for name in ("content-length", "transfer-encoding"):
        headers.pop(name, None)
    content = json.dumps(body).encode()
    return type(request)(request.method, request.url, headers=headers, content=content, extensions=request.extensions)


def _is_readable(response: Any) -> bool:
    if response.headers.get("content-encoding", "identity") == "identity":
        return True
    logger.error("an answer was not stored: it is compressed, although it should not be")
    return False


def _of_library(request: Any, base: str, mixin: type[_Recording]) -> Any:
    """A class of streams that the HTTP library of a request accepts."""
    library: ModuleType = sys.modules[type(request).__module__.partition(".")[0]]
    return type(mixin.__name__, (mixin, getattr(library, base)), {})
