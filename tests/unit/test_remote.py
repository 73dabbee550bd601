"""The remote memory: what it sends, what it repeats, the errors it raises, and streams that go on."""

import asyncio
import inspect
import json
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

import recallog.remote
from recallog import (
    Forbidden,
    IdConflict,
    InvalidArgument,
    InvalidEvent,
    Memory,
    ModelFailed,
    Position,
    RateLimited,
    RecallogError,
    Remote,
    Settings,
    StorageError,
    StorageUnavailable,
    Unauthorized,
    UnknownOutcome,
    errors,
)
from recallog.operations.facade import all_operations
from recallog.remote import Gap, Tailed, answers, connection, frames
from recallog.sync import Remote as SyncRemote
from recallog_service.access import Access
from recallog_service.http.app import Application
from recallog_service.http.door import Limits
from recallog_service.http.problems import problem_of, status_of
from support.events import event, numbered, run
from support.http import served
from support.waiting import WAIT_SECONDS

URL = "http://127.0.0.1:8765"
KEY = "rl_abc_secretsecret"

Broken = Callable[[httpx.Request, httpx.AsyncBaseTransport], Awaitable[httpx.Response]]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WAIT_SECONDS_FIRST", 0.001)


class Flaky(httpx.AsyncBaseTransport):
    """A transport that breaks its first requests, each in its own way, and counts all."""

    def __init__(self, inner: httpx.AsyncBaseTransport, broken: Sequence[Broken]) -> None:
        self._inner = inner
        self._broken = list(broken)
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self._broken:
            return await self._broken.pop(0)(request, self._inner)
        return await self._inner.handle_async_request(request)


async def unreachable(request: httpx.Request, _: httpx.AsyncBaseTransport) -> httpx.Response:
    raise httpx.ConnectError("connection refused")


async def answer_lost(request: httpx.Request, inner: httpx.AsyncBaseTransport) -> httpx.Response:
    """The server does it, and its answer does not arrive."""
    await inner.handle_async_request(request)
    raise httpx.ReadError("connection reset")


def answering(status: int, content: bytes = b"", **headers: str) -> Broken:
    async def answer(request: httpx.Request, _: httpx.AsyncBaseTransport) -> httpx.Response:
        return httpx.Response(status, headers={k.replace("_", "-"): v for k, v in headers.items()}, content=content)

    return answer


def raising(error: RecallogError, **headers: str) -> Broken:
    content = json.dumps(problem_of(error)).encode()
    return answering(status_of(error), content, Content_Type=answers.PROBLEM, **headers)


@asynccontextmanager
async def world(home: Path, *broken: Broken, **options: Any) -> AsyncIterator[tuple[Memory, Remote, Flaky]]:
    """A memory, and a remote one of the same server, whose first requests are broken."""
    settings = Settings(home=home, index="off")
    async with Memory.open(settings) as memory:
        transport = Flaky(httpx.ASGITransport(Application(memory, Access.of(settings))), broken)
        async with Remote(URL, transport=transport, **options) as remote:
            yield memory, remote, transport


def over(*broken: Broken, **options: Any) -> tuple[Remote, Flaky]:
    """A remote memory over a transport that breaks its first requests, and cannot reach the server afterwards."""
    transport = Flaky(httpx.MockTransport(lambda request: httpx.Response(599)), broken)
    return Remote(URL, KEY, transport=transport, **options), transport


# What it has


def test_it_has_the_operations_and_facades_of_a_memory_with_their_signatures() -> None:
    ours, theirs = all_operations(recallog.remote.client.Remote), all_operations(Memory)
    assert ours == theirs
    assert inspect.signature(Remote.recall) == inspect.signature(Memory.recall)
    assert isinstance(inspect.getdoc(Remote), str)
    assert recallog.remote.client.Remote.facades.keys() == Memory.facades.keys()


def test_a_facade_with_more_than_operations_has_only_these() -> None:
    more = {name for name, part in recallog.remote.client.Remote.facades.items() if part is not Memory.facades[name]}
    assert more == {"admin", "workspace"}
    assert not hasattr(recallog.Remote(URL).workspace, "import_folder")


def test_names_with_a_slash_are_one_segment(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (_, remote, transport):
            await remote.publish(event(space="acme/village", agent="team/baker"))
            found = await remote.episodic("acme/village", "team/baker", window=3)
            assert [item.text for item in found.memories] == ["Bread!"]
            assert transport.requests[-1].url.raw_path == (
                b"/v1/spaces/acme%2Fvillage/agents/team%2Fbaker/episodic?window=3"
            )

    run(work())


def test_a_server_behind_a_path_and_the_key_as_a_bearer() -> None:
    async def work() -> None:
        remote, transport = over(answering(200, b'{"partition":0,"offset":7}'))
        assert await remote.publish(event()) == Position(0, 7)
        (sent,) = transport.requests
        assert sent.headers["authorization"] == f"Bearer {KEY}"
        assert sent.headers["content-type"] == "application/json"
        behind = Remote(f"{URL}/memory/", transport=transport)
        with pytest.raises(StorageError, match="answered status 599"):
            await behind.spaces()
        assert str(transport.requests[-1].url) == f"{URL}/memory/v1/spaces"
        assert "authorization" not in transport.requests[-1].headers

    run(work())


@pytest.mark.parametrize("url", ["", "127.0.0.1:8765", "ftp://host", "http://", "http://u:p@host", "http://h?a=1", 7])
def test_a_url_that_is_none_is_refused(url: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"url: ") as raised:
        Remote(url)
    assert raised.value.path == "url"


@pytest.mark.parametrize("key", ["", "a b", "a\nb", "schlüssel"])
def test_a_key_that_is_none_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^key: should be a key of `recallog keys create`, or a JWT$"):
        Remote(URL, key)


@pytest.mark.models("items")
def test_a_closed_one_says_so_and_can_be_closed_again() -> None:
    async def work() -> None:
        remote, transport = over()
        await remote.close()
        await remote.close()
        for ask in (lambda: remote.spaces(), lambda: remote.items.list("village", "baker")):
            with pytest.raises(StorageError, match="the memory is closed; open it again"):
                await ask()
        with pytest.raises(StorageError, match="closed"):
            await anext(aiter(remote.tail("village")))
        assert not transport.requests

    run(work())


# Errors


@pytest.mark.models("items")
def test_arguments_are_checked_before_anything_is_sent() -> None:
    async def work() -> None:
        remote, transport = over()
        with pytest.raises(InvalidArgument, match="space: "):
            await remote.episodic(" no name", "baker")
        with pytest.raises(InvalidEvent):
            await remote.publish({"space": "village"})
        with pytest.raises(InvalidArgument, match="value: is not valid text"):
            await remote.items.put("village", "baker", "notes", "miller", "\ud800")
        assert not transport.requests

    run(work())


@pytest.mark.models("all")
def test_errors_are_those_that_the_server_raised(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (memory, remote, _):
            await remote.publish(event(id="e-1", turn=1))
            for call in (
                lambda of: of.publish(event(id="e-1", turn=2)),
                lambda of: of.episodic("village", "baker", after="0:99"),
                lambda of: of.around("village", "baker", "e-none"),
                lambda of: of.items.put("village", "baker", "notes", "k", "v", base=4),
                lambda of: of.admin.dead_letter("0:0"),
                lambda of: of.admin.rebuild("index"),
            ):
                with pytest.raises(RecallogError) as here:
                    await call(memory)
                with pytest.raises(RecallogError) as there:
                    await call(remote)
                assert type(there.value) is type(here.value)
                assert str(there.value) == str(here.value)
                assert vars(there.value) == vars(here.value)

    run(work())


def made(name: str) -> RecallogError:
    """An error of a class, with a value for each field."""
    kind = getattr(errors, name)
    error: RecallogError = kind.__new__(kind, f"{name}: what happened")
    fields = set(inspect.signature(kind.__init__).parameters) - {"self", "args", "kwargs", "message"}
    vars(error).update({field: 2.5 if field.endswith("seconds") else "0:41" for field in fields - {"retryable"}})
    return error


@pytest.mark.parametrize("name", errors.__all__)
def test_each_error_comes_back_with_its_fields(name: str) -> None:
    error = made(name)
    back = answers.error_of(json.loads(json.dumps(problem_of(error))))
    assert type(back) is type(error)
    assert (str(back), vars(back), back.retryable) == (str(error), vars(error), error.retryable)


@pytest.mark.parametrize("retryable", [True, False])
def test_a_failed_model_says_whether_a_retry_may_help(retryable: bool) -> None:
    error = ModelFailed("busy", retryable=retryable, retry_after_seconds=3.0)
    back = answers.error_of(json.loads(json.dumps(problem_of(error))))
    assert isinstance(back, ModelFailed)
    assert (back.retryable, back.retry_after_seconds, back.reason) == (retryable, 3.0, "busy")


def test_an_error_of_a_newer_server_is_an_error_of_recallog() -> None:
    back = answers.error_of({"title": "MoonTooFar", "detail": "too far", "retryable": True, "km": 3})
    assert type(back) is RecallogError
    assert (str(back), back.retryable, vars(back)["km"]) == ("too far", True, 3)
    assert type(answers.error_of({"title": "__all__", "detail": "x"})) is RecallogError


def test_without_a_key_and_with_a_wrong_one() -> None:
    async def work() -> None:
        for error in (Unauthorized("no such key"), Forbidden()):
            remote, transport = over(raising(error))
            with pytest.raises(type(error)):
                await remote.spaces()
            assert len(transport.requests) == 1

    run(work())


@pytest.mark.models("working")
def test_answers_of_something_else_than_a_server() -> None:
    page = b"<html>It works!</html>"

    async def work() -> None:
        for broken in (answering(404, page), answering(302, b"", Location="http://elsewhere/")):
            remote, transport = over(broken)
            with pytest.raises(StorageError, match="not as `recallog serve` does"):
                await remote.spaces()
            assert len(transport.requests) == 1  # nothing is sent to another host
        remote, _ = over(answering(200, page))
        with pytest.raises(StorageError, match="does not understand the answer"):
            await remote.spaces()
        remote, _ = over(answering(500, b"{", Content_Type=answers.PROBLEM))
        with pytest.raises(StorageError, match="a damaged error"):
            await remote.spaces()
        remote, _ = over(answering(502, page), answering(502, page))
        with pytest.raises(UnknownOutcome, match="a proxy answered status 502"):
            await remote.working.drain("village", "baker", "s-1", "todo")

    run(work())


def test_no_error_shows_the_key() -> None:
    async def work() -> None:
        for broken in (unreachable, answering(404), raising(Unauthorized("wrong key"))):
            remote, _ = over(broken, deadline_seconds=0.0001)
            with pytest.raises(RecallogError) as raised:
                await remote.publish(event())
            shown = "".join(traceback.format_exception(raised.value)) + repr(remote)
            assert "secretsecret" not in shown

    run(work())


# What is sent again


def test_a_lost_answer_to_a_publication_is_asked_for_again_and_the_event_counts_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path, answer_lost, answer_lost) as (memory, remote, transport):
            fields = {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}}
            assert await remote.publish(fields) == Position(0, 0)
            assert len({request.content for request in transport.requests}) == 1
            assert len(transport.requests) == 3
            assert await memory.admin.ledger_ends() == [1]

    run(work())


@pytest.mark.models("consensus", "conversations", "working")
@pytest.mark.parametrize(
    "write",
    [
        lambda of: of.publish_many(numbered(3)),
        lambda of: of.items.put("village", "baker", "notes", "miller", "owes nine sacks"),
        lambda of: of.items.append("village", "baker", "notes", "diary", "The miller came."),
        lambda of: of.working.set("village", "baker", "goals", "bake"),
        lambda of: of.long_term.retain("village", "baker", "Sift the flour first."),
        lambda of: of.long_term.record_experience("village", "baker", "bake", "Baked bread."),
        lambda of: of.consensus.record("village", "baker", "bread", "Bake at four.", confidence=0.9),
        lambda of: of.conversation.add("village", "baker", "s-1", [{"role": "user", "content": "Hello."}]),
    ],
)
def test_a_write_whose_answer_is_lost_happens_once(tmp_path: Path, write: Any) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path / "once", index="off")) as once:
            await write(once)
            expected = await once.admin.ledger_ends()
        async with world(tmp_path / "lost", answer_lost) as (memory, remote, transport):
            await write(remote)
            assert len(transport.requests) == 2
            assert await memory.admin.ledger_ends() == expected

    run(work())


@pytest.mark.models("working")
def test_what_cannot_be_repeated_is_sent_once_and_its_outcome_is_unknown(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path, answer_lost) as (memory, remote, transport):
            await memory.working.set("village", "baker", "todo", ["bread"], session="s-1")
            with pytest.raises(UnknownOutcome, match="connection reset"):
                await remote.working.drain("village", "baker", "s-1", "todo")
            assert len(transport.requests) == 1

    run(work())


@pytest.mark.models("working")
def test_what_the_server_has_not_begun_is_sent_again_whatever_it_is(tmp_path: Path) -> None:
    limited = raising(RateLimited("too many", retry_after_seconds=0.01))

    async def work() -> None:
        async with world(tmp_path, unreachable, limited, answering(429)) as (memory, remote, transport):
            await memory.working.set("village", "baker", "todo", ["bread"], session="s-1")
            assert (await remote.working.drain("village", "baker", "s-1", "todo")).values == ("bread",)
            assert len(transport.requests) == 4

    run(work())


def test_a_write_that_may_have_happened_has_an_unknown_outcome_however_its_repetitions_end(tmp_path: Path) -> None:
    async def work() -> None:
        for ending in (unreachable, raising(Unauthorized("revoked")), raising(errors.LockTimeout("locked"))):
            async with world(tmp_path, answer_lost, *[ending] * 9) as (_, remote, _):
                with pytest.raises(UnknownOutcome, match="connection reset"):
                    await remote.publish(event())
        async with world(tmp_path, answer_lost, raising(IdConflict("taken", path="id", position=""))) as (_, remote, _):
            with pytest.raises(IdConflict):
                await remote.publish(event())

    run(work())


def test_it_waits_as_long_as_the_server_asks_but_not_beyond_the_deadline() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        remote, transport = over(answering(503, Retry_After="1"), answering(200, b'{"items":[]}'))
        began = loop.time()
        await remote.spaces()
        assert loop.time() - began >= 1
        remote, transport = over(raising(RateLimited("too many", retry_after_seconds=30)), deadline_seconds=5)
        with pytest.raises(RateLimited) as raised:
            await remote.spaces()
        assert (raised.value.retry_after_seconds, len(transport.requests)) == (30, 1)

    run(work())


def test_a_server_that_stays_away_is_tried_six_times() -> None:
    async def work() -> None:
        remote, transport = over(*[unreachable] * 20)
        with pytest.raises(StorageUnavailable, match=r"127\.0\.0\.1:8765 cannot be reached: connection refused"):
            await remote.spaces()
        assert len(transport.requests) == 1 + connection.REPETITIONS

    run(work())


def test_a_server_that_says_nothing_is_left_at_the_deadline() -> None:
    async def hangs(request: httpx.Request, _: httpx.AsyncBaseTransport) -> httpx.Response:
        await asyncio.sleep(60)
        raise AssertionError

    async def work() -> None:
        remote, _ = over(hangs, deadline_seconds=0.05)
        with pytest.raises(StorageUnavailable, match=r"0\.05 seconds have passed"):
            await remote.spaces()
        remote, _ = over(hangs, deadline_seconds=0.05)
        with pytest.raises(UnknownOutcome, match="It may be done"):
            await remote.publish(event())

    run(work())


def test_a_refused_write_is_not_sent_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (_, remote, transport):
            await remote.publish(event(id="e-1", turn=1))
            with pytest.raises(IdConflict):
                await remote.publish(event(id="e-1", turn=2))
            assert len(transport.requests) == 2

    run(work())


def test_a_query_sees_the_position_that_a_publication_answered(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (_, remote, _):
            for turn in range(20):
                position = await remote.publish(event(turn=turn))
                found = await remote.timeline("village", "baker", after=position, limit=1)
                assert found.items[-1].position == position

    run(work())


def test_fifty_calls_at_a_time(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            app = Application(memory, Access.of(Settings(home=tmp_path)))
            async with served(app) as (_, url), Remote(url) as remote:
                await asyncio.gather(*(remote.publish(event(turn=turn)) for turn in range(50)))
                found = await remote.timeline("village", "baker", limit=50)
                assert sorted(item.event.turn or 0 for item in found.items) == list(range(50))

    run(work())


def test_more_events_than_one_request_may_have_are_refused_whole(tmp_path: Path) -> None:
    """To divide them would break the promise that all are written or none."""

    async def work() -> None:
        async with world(tmp_path) as (memory, remote, transport):
            large = [event(payload={"text": "x" * 250_000}) for _ in range(40)]
            with pytest.raises(
                InvalidArgument, match=r"8,388,608 bytes, the limit of a request; send it in parts"
            ) as no:
                await remote.publish_many(large)
            assert no.value.rule == "too_large"
            assert len(transport.requests) == 1
            assert await memory.admin.ledger_ends() == [0]

    run(work())


# Jobs


def test_the_progress_of_a_job_is_called(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (memory, remote, _):
            await memory.publish_many(numbered(3))
            called: list[tuple[int, int]] = []
            assert (await remote.admin.rebuild(progress=lambda *done: called.append(done))).ok
            assert called[-1] == (3, 3)
            assert (await remote.admin.verify("views")).ok

    run(work())


@pytest.mark.models("beliefs")
def test_reactions_may_take_longer_than_a_request_and_report_their_progress(tmp_path: Path) -> None:
    async def work() -> None:
        settings = Settings(home=tmp_path, index="off")
        async with Memory.open(settings) as memory:
            app = Application(memory, Access.of(settings), limits=Limits(answer_seconds=0))
            async with Remote(URL, transport=httpx.ASGITransport(app)) as remote:
                await memory.publish_many(
                    [event("agent.configured", payload={"reflection_threshold": 3}), *numbered(3)]
                )
                called: list[tuple[int, int]] = []
                answered = await remote.react(progress=lambda *done: called.append(done))
                assert (len(answered.items), called[-1]) == (1, (1, 1))

    run(work())


def test_a_job_that_the_server_no_longer_knows_has_an_unknown_outcome() -> None:
    job = b'{"id": "j-1", "operation": "admin.rebuild", "state": "running", "done": 0, "total": 0}'
    failed = b'event: failed\ndata: {"id": "j-1", "operation": "admin.rebuild", "state": "failed"}\n\n'

    async def work() -> None:
        for ending in (raising(Forbidden()), answering(200, failed, Content_Type=frames.MEDIA_TYPE)):
            remote, _ = over(answering(202, job), ending)
            with pytest.raises(UnknownOutcome, match=r"ended during admin\.rebuild, .*; call it again"):
                await remote.admin.rebuild()

    run(work())


# Streams


@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 1000])
def test_frames_are_parsed_whatever_the_pieces_they_come_in(pieces: int) -> None:
    text = (
        ': heartbeat\n\nid: 0:1\ndata: {"t": "a\u2028b\x85c"}\n\nevent: end\r\ndata: 1\r\ndata: 2\r\n\r\n'
        "retry: 3\n\ndata:4\n\nid: 0:9\ndata: cut"
    ).encode()

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(text), pieces):
            yield text[at : at + pieces]

    async def work() -> list[frames.Frame]:
        return [frame async for frame in frames.parse_frames(chunks())]

    assert run(work()) == [
        frames.Frame("", "0:1", '{"t": "a\u2028b\x85c"}'.encode()),
        frames.Frame("end", "", b"1\n2"),
        frames.Frame("", "", b"4"),
    ]


class Cut(httpx.AsyncBaseTransport):
    """A transport over the network that cuts event streams after some bytes, as often as `cuts` says."""

    def __init__(self, cuts: Sequence[int]) -> None:
        self._inner = httpx.AsyncHTTPTransport()
        self._cuts = list(cuts)
        self.opened = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        if request.headers["accept"] == frames.MEDIA_TYPE:
            self.opened += 1
            if self._cuts:
                response.stream = _CutStream(cast("httpx.AsyncByteStream", response.stream), self._cuts.pop(0))
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _CutStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, size: int) -> None:
        self._inner = inner
        self._size = size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._size
        async for chunk in self._inner:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                raise httpx.ReadError("connection reset")

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def network(
    home: Path, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[tuple[Memory, Remote]]:
    """A memory, and a remote one over the network."""
    async with Memory.open(home) as memory:
        async with served(Application(memory, Access.of(Settings(home=home)))) as (_, url):
            async with Remote(url, transport=transport) as remote:
                yield memory, remote


async def some(stream: AsyncIterator[Any], count: int) -> list[Any]:
    found = []
    async with asyncio.timeout(WAIT_SECONDS), aclosing(cast("Any", stream)) as items:
        async for item in items:
            found.append(item)
            if len(found) == count:
                break
    return found


def test_a_tail_that_is_cut_again_and_again_misses_and_repeats_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        transport = Cut([30, 700, 1500, 100, 2000, 1])
        async with network(tmp_path, transport) as (memory, remote):
            await memory.publish_many(numbered(20))
            found = asyncio.ensure_future(some(remote.tail("village", start="0:0"), 40))
            await asyncio.sleep(0.2)
            await memory.publish_many([*numbered(10, first=20), *numbered(5, space="city")])
            await asyncio.sleep(0.1)
            await memory.publish_many(numbered(10, first=30))
            events: list[Tailed] = await found
            assert [each.event.turn for each in events] == list(range(40))
            assert [each.position for each in events][-1] == Position(0, 44)
            assert events[0].event == numbered(1)[0].model_copy(
                update={"id": events[0].event.id, "at": events[0].event.at}
            )
            assert transport.opened >= 6

    run(work())


def test_a_tail_from_now_on_that_is_cut_before_its_first_event_misses_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        began = asyncio.Event()
        reached = asyncio.Event()

        class Held(httpx.AsyncByteStream):
            def __init__(self, inner: httpx.AsyncByteStream) -> None:
                self._inner = inner

            async def __aiter__(self) -> AsyncIterator[bytes]:
                async for chunk in self._inner:
                    if b"event: begin" in chunk:
                        yield chunk
                        reached.set()
                        await began.wait()
                        raise httpx.ReadError("connection reset")
                    yield chunk

            async def aclose(self) -> None:
                await self._inner.aclose()

        class First(Cut):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                response = await super().handle_async_request(request)
                if self.opened == 1:
                    response.stream = Held(cast("httpx.AsyncByteStream", response.stream))
                return response

        async with network(tmp_path, First([])) as (memory, remote):
            await memory.publish_many(numbered(3))
            stream = remote.tail("village")
            first = asyncio.ensure_future(anext(stream))
            async with asyncio.timeout(WAIT_SECONDS):
                await reached.wait()
                await memory.publish(event(turn=3, payload={"text": "one\u2028two"}))
                began.set()
                tailed = await first
            assert (tailed.position, tailed.event.text) == (Position(0, 3), "one\u2028two")
            await cast("Any", stream).aclose()

    run(work())


def test_what_an_agent_may_see_comes_as_items_of_its_timeline(tmp_path: Path) -> None:
    async def work() -> None:
        transport = Cut([1200, 900])
        async with network(tmp_path, transport) as (memory, remote):
            await memory.publish_many(
                [event(turn=n, agent=("baker", "miller")[n % 2], kind="agent.thought") for n in range(12)]
            )
            found = await some(remote.seen("village", "baker", start="0:0"), 6)
            expected = await memory.timeline("village", "baker")
            assert [each.event for each in found] == [each.event for each in expected.items]
            assert transport.opened >= 2

    run(work())


def test_what_the_views_have_dropped_shows_as_a_gap() -> None:
    stream = b'event: gap\ndata: {"kept_from":"0:7"}\n\n'

    async def work() -> None:
        remote, _ = over(answering(200, stream, Content_Type=frames.MEDIA_TYPE))
        assert await some(remote.seen("village", "baker", start="0:0"), 1) == [Gap(Position(0, 7))]

    run(work())


def test_a_stream_goes_on_behind_what_it_has_or_where_it_began() -> None:
    begin = b'event: begin\ndata: {"start":"0:3"}\n\n'
    data = json.dumps(json.loads(event(id="e-1").model_dump_json())).encode()

    async def work() -> None:
        remote, transport = over(
            answering(200, begin, Content_Type=frames.MEDIA_TYPE),
            answering(200, begin + b"id: 0:5\ndata: " + data + b"\n\n", Content_Type=frames.MEDIA_TYPE),
            unreachable,
            raising(Forbidden()),
        )
        stream = aiter(remote.tail("village"))
        assert (await anext(stream)).position == Position(0, 5)
        with pytest.raises(Forbidden):
            await anext(stream)
        queries = [request.url.query for request in transport.requests]
        assert queries == [b"", b"start=0%3A3", b"", b""]
        assert [request.headers.get("last-event-id") for request in transport.requests] == [None, None, "0:5", "0:5"]

    run(work())


def test_a_stream_gives_up_when_the_server_stays_away() -> None:
    async def work() -> None:
        remote, transport = over(*[unreachable] * 10_000, deadline_seconds=1.0)
        with pytest.raises(StorageUnavailable, match="cannot be reached"):
            await anext(aiter(remote.tail("village")))
        assert len(transport.requests) > 1

    run(work())


def test_a_start_that_the_ledger_does_not_have_is_an_error(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (_, remote, _):
            with pytest.raises(errors.OutOfRange, match="before 0:99"):
                await anext(aiter(remote.tail("village", start="0:99")))
            with pytest.raises(InvalidArgument, match="start"):
                remote.tail("village", start="nowhere")

    run(work())


# Without an event loop


@pytest.mark.models("items")
def test_the_synchronous_one(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            app = Application(memory, Access.of(Settings(home=tmp_path)))
            async with served(app) as (_, url):
                await asyncio.to_thread(plain, url)

    def plain(url: str) -> None:
        with SyncRemote(url) as remote:
            position = remote.publish(event())
            assert [each.text for each in remote.episodic("village", "baker", after=position).memories] == ["Bread!"]
            remote.items.put("village", "baker", "notes", "miller", "owes")
            found = remote.items.get("village", "baker", "notes", "miller").item
            assert found is not None
            assert found.value == "owes"
            called: list[tuple[int, int]] = []
            assert remote.admin.rebuild(progress=lambda *done: called.append(done)).ok
            assert called
            for each in remote.tail("village", start="0:0"):
                assert each.event.text == "Bread!"
                break
            with pytest.raises(InvalidArgument):
                remote.episodic(" no name", "baker")
        with pytest.raises(StorageError, match="closed"):
            remote.spaces()

    run(work())


def test_a_call_looks_for_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for: list[str] = []

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            looked_for.append(name)

    async def scenario() -> None:
        async with Memory.in_memory() as memory:
            app = Application(memory, Access.of(Settings(home=tmp_path)))
            async with served(app) as (_, url), Remote(url) as remote:
                await remote.episodic("village", "baker")
                monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
                await remote.episodic("village", "baker")

    run(scenario())
    assert looked_for == []  # httpcore looked for sniffio, which took half of the time of a call
