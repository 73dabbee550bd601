"""Event streams over HTTP: tails of a space, what an agent may see, and the progress of jobs."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from recallog import Memory, Position, Settings, StorageCorrupt
from recallog.composition import assemble
from recallog_projections.stores.memory import MemoryStore
from recallog_service.access import Access, Guarded
from recallog_service.http import sse, tailing
from recallog_service.http.app import Application
from support.events import event, numbered, run
from support.http import Stream, served, streaming
from support.partitioned import PartitionedLedger
from support.waiting import WAIT_SECONDS

EVENTS = "/v1/spaces/village/events"


@asynccontextmanager
async def world(home: Path) -> AsyncIterator[tuple[Memory, httpx.AsyncClient]]:
    """A memory and a client of its server."""
    async with Memory.open(home) as memory:
        access = Access.of(Settings(home=home))
        async with served(Application(memory, access)) as (_, url):
            async with httpx.AsyncClient(base_url=url, timeout=30) as client:
                yield memory, client


def turns(frames: Sequence[dict[str, str]]) -> list[int]:
    return [json.loads(frame["data"])["turn"] for frame in frames]


def test_a_tail_has_what_comes_and_a_client_that_returns_misses_and_repeats_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (memory, client):
            await memory.publish_many(numbered(3))
            async with streaming(client, EVENTS) as stream:
                await memory.publish_many([*numbered(2, first=3), *numbered(2, space="city")])
                frames = await stream.some(2)
                assert turns(frames) == [3, 4]
                assert frames[-1]["id"] == "0:4"
            await memory.publish_many(numbered(2, first=5))
            async with streaming(client, EVENTS, Last_Event_ID="0:3") as stream:
                await memory.publish_many(numbered(1, first=7))
                assert turns(await stream.some(4)) == [4, 5, 6, 7]
            async with streaming(client, f"{EVENTS}?start=0:0") as stream:
                assert turns(await stream.some(8)) == list(range(8))

    run(work())


def test_a_stream_says_where_it_begins(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (memory, client):
            await memory.publish_many(numbered(3))
            for path in (EVENTS, SEEN):
                async with streaming(client, path) as stream:
                    await memory.publish(event(turn=3))
                    await stream.next()
                    begun = stream.start
                async with streaming(client, f"{path}?start={begun}") as stream:
                    await stream.next()
                    assert stream.start == begun
                begin = int(begun.partition(":")[2])
                assert begin == (3 if path == EVENTS else 4)

    run(work())


def test_a_text_with_other_line_breaks_is_one_frame(tmp_path: Path) -> None:
    text = "one\u2028two\x0bthree\x85four\r\nfive\rsix"

    async def work() -> None:
        async with world(tmp_path) as (memory, client):
            await memory.publish(event(payload={"text": text}))
            async with streaming(client, f"{EVENTS}?start=0:0") as stream:
                assert json.loads((await stream.next())["data"])["payload"]["text"] == text

    run(work())


def test_streams_that_join_while_events_come_miss_and_repeat_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (memory, client):
            await memory.publish_many(numbered(50))

            async def publish() -> None:
                for first in range(50, 150, 5):
                    await memory.publish_many(numbered(5, first=first))
                    await asyncio.sleep(0.01)

            async def read(delay: float) -> list[int]:
                await asyncio.sleep(delay)
                async with streaming(client, EVENTS, Last_Event_ID="0:9") as stream:
                    return turns(await stream.some(140))

            _, *found = await asyncio.gather(publish(), *(read(n * 0.015) for n in range(12)))
            assert found == [list(range(10, 150))] * 12

    run(work())


def test_a_stream_that_is_too_slow_is_dropped_with_a_reason_and_the_others_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "BACKLOG_BYTES_MAX", 50_000)

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            tails = tailing.Tails(memory)
            begin = await tails.begin("village", None)
            slow, quick = tails.frames("village", begin), tails.frames("village", begin)
            first = [asyncio.ensure_future(anext(each)) for each in (slow, quick)]
            await asyncio.sleep(0)
            seen = 0
            for number in range(40):
                sent = event(payload={"text": "x" * 5_000}, turn=number)
                await memory.publish(sent)
                while seen <= number:
                    data = await (first.pop() if len(first) == 2 else anext(quick))
                    seen += data.count(b"data: ")
            assert seen == 40
            await first[0]
            rest = [data async for data in slow]
            assert rest == [sse.make_end(sse.End.SLOW)]
            assert tails.dropped == 1
            await quick.aclose()

    run(work())


def test_a_slow_stream_does_not_delay_what_others_get_as_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "BACKLOG_BYTES_MAX", 200_000)
    monkeypatch.setattr(tailing, "TURNS_MAX", 1_000_000)

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            tails = tailing.Tails(memory)
            slow, quick = [await tails.follow("village") for _ in range(2)]
            for number in range(15):
                await memory.publish(event(payload={"text": "x" * 10_000}, turn=number))
                async with asyncio.timeout(WAIT_SECONDS):
                    assert await quick.next() is not None
            assert slow.is_half_full
            assert not slow.ended
            for each in (slow, quick):
                tails.leave(each)

    run(work())


def test_a_burst_waits_for_streams_that_read_and_not_long_for_one_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "BACKLOG_BYTES_MAX", 200_000)
    monkeypatch.setattr(tailing, "PART_BYTES", 50_000)
    monkeypatch.setattr(tailing, "TURNS_MAX", 2)

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            tails = tailing.Tails(memory)
            silent, steady = [await tails.follow("village") for _ in range(2)]
            await memory.publish_many([event(turn=n, payload={"text": "x" * 10_000}) for n in range(200)])
            seen = 0
            async with asyncio.timeout(WAIT_SECONDS):
                while seen < 200:
                    chunk = await steady.next()
                    assert chunk is not None
                    seen += len(chunk.frames)
            assert (steady.ended, silent.ended) == (None, sse.End.SLOW)
            for each in (silent, steady):
                tails.leave(each)

    run(work())


def test_one_look_at_the_ledger_is_for_all_partitions_that_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, looks = PartitionedLedger(64), 0

    async def ends() -> list[int]:
        nonlocal looks
        looks += 1
        return await PartitionedLedger.ends(ledger)

    monkeypatch.setattr(ledger, "ends", ends)

    async def work() -> None:
        nonlocal looks
        memory = Memory(assemble(ledger, lambda namespace: MemoryStore()))
        tails = tailing.Tails(memory)
        following = [await tails.follow(f"village-{number}") for number in range(64)]
        await asyncio.sleep(0.1)
        looks = 0
        await asyncio.sleep(0.5)
        assert looks <= 10
        await memory.publish(event(space="village-7"))
        async with asyncio.timeout(WAIT_SECONDS):
            chunk = await following[7].next()
        assert chunk is not None
        for each in following:
            tails.leave(each)

    run(work())


def test_a_stream_that_catches_up_is_sent_in_pieces(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            texts = [{"text": "x" * size} for size in (10, 50_000, 100, 200_000, 30_000, 30_000, 30_000)]
            await memory.publish_many([event(turn=n, payload=each) for n, each in enumerate(texts)])
            tails = tailing.Tails(memory)
            frames = tails.frames("village", await tails.begin("village", Position(0, 0)))
            pieces = [await anext(frames) for _ in range(4)]
            assert [each.count(b"data: ") for each in pieces] == [3, 1, 2, 1]
            await frames.aclose()

    run(work())


def test_an_error_of_the_ledger_ends_a_stream_with_its_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise StorageCorrupt("the record at 0:3 is damaged")

    async def work() -> None:
        async with world(tmp_path) as (memory, client):
            await memory.publish_many(numbered(3))
            async with streaming(client, f"{SEEN}?start=0:0") as stream:
                await stream.some(3)
                monkeypatch.setattr(Guarded, "call", broken)
                await memory.publish(event())
                ended = await stream.next()
                document = json.loads(ended["data"])
                assert (ended["event"], document["reason"]) == ("end", "error")
                assert (document["problem"]["title"], document["problem"]["retryable"]) == ("StorageCorrupt", False)

    run(work())


def test_a_burst_that_is_larger_than_the_backlog_drops_no_stream_that_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "BACKLOG_BYTES_MAX", 200_000)
    monkeypatch.setattr(tailing, "PART_BYTES", 50_000)

    async def work() -> None:
        async with world(tmp_path) as (memory, client):
            async with streaming(client, EVENTS) as first, streaming(client, EVENTS) as second:
                burst = [event(turn=n, payload={"text": "x" * 10_000}) for n in range(200)]
                await memory.publish_many(burst)
                found = await asyncio.gather(first.some(200), second.some(200))
                assert [turns(each) for each in found] == [list(range(200))] * 2

    run(work())


def test_a_client_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "STALLED_SECONDS", 0.05)
    closed = asyncio.Event()

    async def frames() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"data: x\n\n"
        finally:
            closed.set()

    async def send(message: object) -> None:
        if isinstance(message, dict) and message.get("body") == b"data: x\n\n":
            await asyncio.Event().wait()

    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        return {}

    async def work() -> None:
        with pytest.raises(sse.ClientStalled):
            await sse.EventStream(frames())({"type": "http", "method": "GET"}, receive, send)  # type: ignore[arg-type]
        assert closed.is_set()

    run(work())


def test_a_silent_stream_has_heartbeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.02)

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            tails = tailing.Tails(memory)
            frames = tails.frames("village", await tails.begin("village", None))
            assert [await anext(frames), await anext(frames)] == [sse.HEARTBEAT] * 2
            await frames.aclose()

    run(work())


def test_a_stream_that_searches_for_its_first_event_has_heartbeats_and_ends_with_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0)

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([*numbered(100, space="city"), event(turn=100)])
            tails = tailing.Tails(memory)
            frames = tails.frames("village", Position(0, 0))
            assert [await anext(frames), await anext(frames)] == [sse.HEARTBEAT] * 2
            tails.close()
            assert [data async for data in frames] == [sse.make_end(sse.End.STOPPING)]

    run(work())


def test_a_server_that_stops_ends_its_streams_with_a_reason(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            app = Application(memory, Access.of(Settings(home=tmp_path)))
            async with served(app) as (server, url), httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client:
                async with streaming(client, EVENTS) as tail, streaming(client, f"{SEEN}") as seen:
                    server.should_exit = True
                    for stream in (tail, seen):
                        assert await stream.next() == {"event": "end", "data": '{"reason":"stopping"}'}
                        with pytest.raises(StopAsyncIteration):
                            await stream.next()

    run(work())


def test_a_position_that_is_not_in_the_ledger_is_an_error_and_not_a_silent_stream(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (_, client):
            for last, status in (("0:7", 404), ("7:0", 404), ("yesterday", 422)):
                answer = await client.get(EVENTS, headers={"Accept": "text/event-stream", "Last-Event-ID": last})
                assert answer.status_code == status, answer.text

    run(work())


SEEN = "/v1/spaces/village/agents/baker/stream"


def test_an_agents_stream_has_what_it_may_see_and_resumes(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (memory, client):
            thought, shared = event("agent.thought", agent="miller", turn=1), event("world.observed", turn=2)
            await memory.publish_many([thought, shared, event(turn=3)])
            async with streaming(client, SEEN) as stream:
                await memory.publish_many([thought.model_copy(update={"id": "t-2"}), event(turn=4, agent="baker")])
                (frame,) = await stream.some(1)
                item = json.loads(frame["data"])
                assert (frame["id"], item["text"], item["event"]["turn"]) == ("0:4", "Bread!", 4)
                await memory.publish(event("world.observed", agent="miller", turn=5))
                assert seen_turns(await stream.some(1)) == [5]
            async with streaming(client, SEEN, Last_Event_ID="0:0") as stream:
                assert seen_turns(await stream.some(4)) == [2, 3, 4, 5]

    run(work())


def test_an_agents_stream_that_resumes_far_back_has_every_page(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (memory, client):
            await memory.publish_many(numbered(1_300))
            async with streaming(client, SEEN, Last_Event_ID="0:99") as stream:
                assert seen_turns(await stream.some(1_200)) == list(range(100, 1_300))

    run(work())


def test_an_agents_stream_says_from_where_on_the_views_retain_events(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (memory, client):
            await memory.publish_many(numbered(2_100))
            async with streaming(client, f"{SEEN}?start=0:0") as stream:
                assert await stream.next() == {"event": "gap", "data": '{"kept_from":"0:100"}'}
                assert seen_turns(await stream.some(2)) == [100, 101]

    run(work())


def seen_turns(frames: Sequence[dict[str, str]]) -> list[int]:
    return [json.loads(frame["data"])["event"]["turn"] for frame in frames]


def test_a_job_is_answered_at_once_and_shows_its_progress_and_its_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (memory, client):
            await memory.publish_many(numbered(30))
            begun = await client.post("/v1/admin/verify", json={"what": "views"})
            assert begun.status_code == 202
            path = begun.headers["location"]
            assert path == f"/v1/admin/jobs/{begun.json()['id']}"
            async with streaming(client, path) as stream:
                last = await _last(stream)
            assert last["event"] == "done"
            job = json.loads(last["data"])
            assert (job["operation"], job["state"], job["problem"]) == ("admin.verify", "done", None)
            assert job["answer"]["tables"]
            assert (await client.get(path)).json() == job
            another = (await client.post("/v1/admin/verify", json={"what": "views"})).json()
            listed = (await client.get("/v1/admin/jobs")).json()["items"]
            assert [each["id"] for each in listed] == [another["id"], job["id"]]
            assert listed[1] == {**job, "answer": None}

    run(work())


def test_a_job_that_fails_has_the_problem(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as (_, client):
            begun = await client.post("/v1/admin/copy", json={"target": "gopher://nowhere"})
            async with streaming(client, begun.headers["location"]) as stream:
                job = json.loads((await _last(stream))["data"])
            assert (job["state"], job["problem"]["title"]) == ("failed", "SettingsError")
            unknown = await client.get("/v1/admin/jobs/none")
            assert (unknown.status_code, "only the server that started it" in unknown.json()["detail"]) == (404, True)

    run(work())


async def _last(stream: Stream) -> dict[str, str]:
    """The last frame of a stream that ends."""
    last: dict[str, str] = {}
    while True:
        try:
            last = await stream.next()
        except StopAsyncIteration:
            return last
