"""The events of a space over HTTP: publishing, pages and tails of the ledger, and a stream of what one agent may
see."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Endpoint

from recallog import Memory
from recallog.operations import parameters
from recallog.operations.operation import CheckedMethod
from recallog.operations.routes import AGENT, PREFIX, SPACE
from recallog_projections import notices
from recallog_schemas import Position, limits
from recallog_schemas.errors import DeadLettered, InvalidArgument, InvalidEvent, OutOfRange
from recallog_schemas.names import in_nfc
from recallog_schemas.views import TimelinePage
from recallog_service.access import Verb
from recallog_service.http import cloudevents, requests, sse
from recallog_service.http.derived import add_warnings
from recallog_service.http.door import Door, HttpClient
from recallog_service.http.tailing import Tails, events_of
from recallog_streams.ledgers.ledger import Batch

EVENTS = f"{PREFIX}{SPACE}/events"
STREAM = f"{PREFIX}{SPACE}{AGENT}/stream"
LAST_EVENT_ID = "last-event-id"
"""The header with the last event that a reconnecting client received."""
PAGE_BYTES = 4 * 1024 * 1024
"""Maximum size of a page; only a larger first event exceeds it."""
SEEN_ITEMS = 100
"""Number of timeline events that the stream of an agent reads at once."""


class EventRoutes:
    """The routes of the events of spaces. They only transport: they publish, read the ledger, and page a timeline."""

    def __init__(self, door: Door, tails: Tails) -> None:
        self._door = door
        self._tails = tails

    def endpoints(self) -> Sequence[Endpoint]:
        return [
            Endpoint(EVENTS, self._publish, methods=["POST"], name="events.publish"),
            Endpoint(EVENTS, self._read, methods=["GET"], name="events.read"),
            Endpoint(STREAM, self._stream, methods=["GET"], name="events.stream"),
        ]

    async def _publish(self, request: Request) -> Response:
        """Publish one event, a list, or CloudEvents: 201 with the positions, which are durable."""
        client = await self._door.client(request)
        space = requests.in_path(request)["space"]
        sent = await _read_events(request)
        operation = Memory.operations["publish_many"]
        try:
            events = _in_space(sent if isinstance(sent, list) else [sent], space)
            with notices.collect_notices() as told:
                published = await self._door.answer(client, operation, {"events": events})
        except InvalidEvent as error:
            if isinstance(sent, list):
                raise
            raise _of_single(error) from None
        return add_warnings(Response(operation.to_json(published), status_code=201, media_type=requests.JSON), told)

    async def _read(self, request: Request) -> Response:
        """A page of the raw events of a space or, with `Accept: text/event-stream`, a tail."""
        client = await self._door.client(request)
        space = requests.in_path(request)["space"]
        client.check(Verb.TAIL, space)
        given = {**requests.query(request), "space": space}
        if not requests.accepts(request, sse.MEDIA_TYPE):
            wanted = PAGE.validate(given, strict=False)
            with client.translate_errors():
                async with self._door.limit_time(read_only=True):
                    return Response(await self.page(**wanted), media_type=requests.JSON)
        start = _start(request, TAIL.validate(given, strict=False))
        with client.translate_errors():
            begin = await self._tails.begin(space, start)
        frames = self._door.while_allowed(request, client, self._tails.frames(space, begin))
        return sse.EventStream(frames, sse.begun(begin))

    async def page(
        self,
        space: parameters.Space,
        *,
        start: parameters.FirstPosition = None,
        limit: parameters.PageLimit = limits.PAGE_ITEMS,
    ) -> bytes:
        """The events from `start` on, at most `limit`, oldest first, and the position where the `next` page begins;
        None at the end.

        A page is read from one batch of the ledger. It has fewer events if they are large, and few or none if many
        records of other spaces lie between them.
        """
        admin = self._door.memory.admin
        first = parameters.position(start) or Position(await admin.partition_of(space), 0)
        async with aclosing(cast("AsyncGenerator[Batch]", admin.records(first, space))) as batches:
            batch = await anext(batches, None)
        if batch is None:
            return _page([], None)
        found, size = list[msgspec.Raw](), 0
        for offset, data in events_of(batch, space):
            position, size = Position(batch.partition, offset), size + len(data)
            if len(found) == limit or (found and size > PAGE_BYTES):
                return _page(found, position)
            found.append(msgspec.Raw(b'{"position":"%s","event":%s}' % (str(position).encode(), data)))
        is_end = batch.next >= (await admin.ledger_ends())[batch.partition]
        return _page(found, None if is_end else Position(batch.partition, batch.next))

    async def tail(self, space: parameters.Space, *, start: parameters.FirstPosition = None) -> None:
        """The events from `start` on, as they are appended; without `start`, from now on."""

    async def _stream(self, request: Request) -> Response:
        """The events that an agent may see, from now on or after `Last-Event-ID`."""
        client = await self._door.client(request)
        named = requests.in_path(request)
        client.check(Verb.READ, named["space"], named["agent"])
        start = _start(request, SEEN.validate({**requests.query(request), **named}, strict=False))
        with client.translate_errors():
            begin = await self._tails.begin(named["space"], start)
        frames = self._door.while_allowed(request, client, self._follow_seen(client, named, begin))
        return sse.EventStream(frames, sse.begun(begin))

    async def follow(
        self, space: parameters.Space, agent: parameters.Agent, *, start: parameters.FirstPosition = None
    ) -> None:
        """The events from `start` on that an agent may see, as they are appended; without `start`, from now on."""

    async def _follow_seen(
        self, client: HttpClient, named: Mapping[str, str], begin: Position
    ) -> AsyncGenerator[bytes]:
        """The events from `begin` on that an agent may see, as items of its timeline."""
        subscription, after = await self._tails.follow(named["space"]), None
        try:
            while not subscription.ended:
                async with aclosing(self._newer(client, named, begin, after)) as found:
                    async for page in found:
                        if page.kept_from is not None and page.kept_from > begin:
                            yield sse.make_frame(msgspec.json.encode({"kept_from": str(page.kept_from)}), event="gap")
                        for item in page.items:
                            if item.position >= begin:
                                yield sse.make_frame(item.model_dump_json().encode(), last_id=str(item.position))
                                begin = _behind(item.position)
                while (chunk := await subscription.next()) is None and not subscription.ended:
                    yield sse.HEARTBEAT
                if chunk is not None:
                    after = Position(begin.partition, subscription.skip(chunk))
            yield sse.make_end(subscription.ended)
            self._tails.count(subscription)
        finally:
            self._tails.leave(subscription)

    async def _newer(
        self, client: HttpClient, named: Mapping[str, str], begin: Position, after: Position | None
    ) -> AsyncGenerator[TimelinePage]:
        """The pages of a timeline with events from `begin` on, oldest first, once the views have processed `after`. At
        most two are in memory: pages are located from the newest to the oldest, and are then read again."""
        newest = page = await self._page_of(client, named, None, after)
        between: list[Position] = []
        while page.older is not None and page.items[0].position > begin:
            between.append(page.older)
            page = await self._page_of(client, named, page.older, None)
        if page is not newest:
            yield page
            for before in reversed(between[:-1]):
                yield await self._page_of(client, named, before, None)
        yield newest

    async def _page_of(
        self, client: HttpClient, named: Mapping[str, str], before: Position | None, after: Position | None
    ) -> TimelinePage:
        given = {**named, "limit": SEEN_ITEMS, "before": before, "after": after}
        try:
            found: TimelinePage = await client.memory.call(Memory.operations["timeline"], given)
        except DeadLettered:  # this record is in no view, but earlier ones are
            found = await client.memory.call(Memory.operations["timeline"], {**given, "after": None})
        return found


PAGE, TAIL, SEEN = (CheckedMethod(function) for function in (EventRoutes.page, EventRoutes.tail, EventRoutes.follow))
"""The parameters of the routes that read."""


def _start(request: Request, valid: Mapping[str, Any]) -> Position | None:
    """The position at which a stream begins: after the client's last event, else at `start`."""
    last = request.headers.get(LAST_EVENT_ID)
    if last is None:
        return parameters.position(valid.get("start"))
    try:
        return _behind(Position.parse(last))
    except OutOfRange as error:
        raise InvalidArgument(f"Last-Event-ID: {error}", path="Last-Event-ID", rule="position") from None


def _page(items: Sequence[msgspec.Raw], following: Position | None) -> bytes:
    return msgspec.json.encode({"items": items, "next": None if following is None else str(following)})


def _behind(position: Position) -> Position:
    return Position(position.partition, position.offset + 1)


def _of_single(error: InvalidEvent) -> InvalidEvent:
    """The error of the only event of a list, worded for a caller who sent a single event."""
    first = "0."
    error.path = error.path.removeprefix(first)
    error.args = (str(error).removeprefix(first),)
    return error


async def _read_events(request: Request) -> Any:
    """The unchecked content of the body: a list of events, or a single event."""
    kind = requests.content_type(request.headers)
    if cloudevents.is_binary(request.headers):
        return cloudevents.binary(request.headers, await requests.body(request, kind))
    value = requests.json_value(
        await requests.body(request, requests.JSON, cloudevents.STRUCTURED, cloudevents.BATCHED)
    )
    if kind == cloudevents.STRUCTURED:
        return cloudevents.fields(value)
    if kind != cloudevents.BATCHED:
        return value
    return [cloudevents.fields(each) for each in (value if isinstance(value, list) else [value])]


def _in_space(events: Sequence[Any], space: str) -> Sequence[Any]:
    """The events with the space of the path. Raises `InvalidEvent` for an event that names another space."""
    found = []
    for index, fields in enumerate(events):
        if isinstance(fields, dict):
            if in_nfc(fields.get("space", space)) != space:
                path = f"{index}.space"
                message = f"{path}: should be {space!r}, as the path says; leave it out"
                raise InvalidEvent(message, path=path, rule="space")
            found.append({**fields, "space": space})
        else:
            found.append(fields)
    return found
