"""Telemetry: the spans of operations and of the fold, from the publisher through the record to its views."""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import httpx
import pytest
from aiokafka import TopicPartition
from aiokafka.errors import NoError
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from recallog import IdConflict, Memory, Refused, Remote, Settings
from recallog.components import Components
from recallog.composition import compose
from recallog.operations.facade import all_operations
from recallog.operations.operation import GenAi, Scope
from recallog.sync import Memory as SyncMemory
from recallog_service.access import Access
from recallog_service.http.app import Application
from recallog_streams.ledgers.kafka import connection, group, writing
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import FetchedPartition
from recallog_streams.ledgers.kafka.group import ConsumerGroupSource
from recallog_streams.ledgers.kafka.ledger import KafkaLedger
from recallog_streams.ledgers.kafka.topic import Topic
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.tracing import Tracing
from support.cli import recallog, spawn
from support.collector import collecting_from_processes
from support.events import event, numbered, run
from support.http import served
from support.tracing import collecting, processor, traced

SECRET = "the miller owes me nine sacks"
URL = "http://127.0.0.1:8765"
CLIENTS_TRACE, CLIENTS_SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{CLIENTS_TRACE}-{CLIENTS_SPAN}-01"

Spans = Callable[[], Sequence[ReadableSpan]]


@pytest.fixture
def spans() -> Spans:
    return collecting()


def settings(home: Path, **more: Any) -> Settings:
    return Settings(home=home, index="off", telemetry=True, **more)


def ident(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def named(span: ReadableSpan) -> tuple[str, Any, Any]:
    found = span.attributes or {}
    return span.name, found.get("recallog.operation"), found.get("gen_ai.memory.record.count")


# Operations


@pytest.mark.models("long_term")
def test_each_operation_on_memories_has_a_span_with_its_space_and_their_number(spans: Spans, tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(tmp_path)) as memory:
            await memory.publish(event(payload={"text": SECRET}))
            await memory.publish_many(numbered(3))
            await memory.recall("village", "baker", SECRET)
            await memory.long_term.retain("village", "baker", "Sift the flour first.", entry_id="l-1")
            await memory.long_term.update("village", "baker", "l-1", text="Sift it twice.")
            await memory.long_term.forget("village", "baker", ["l-1"])
            await memory.items.get("village", "baker", "notes", "nothing")
            await memory.agents("village")

    run(work())
    assert [named(each) for each in spans()] == [
        ("create_memory", "publish", 1),
        ("create_memory", "publish_many", 3),
        ("search_memory", "recall", 4),
        ("upsert_memory", "long_term.retain", 1),
        ("update_memory", "long_term.update", 1),
        ("delete_memory", "long_term.forget", 1),
        ("search_memory", "items.get", 0),
    ]
    for span in spans():
        assert span.kind is SpanKind.INTERNAL
        assert dict(span.attributes or {}) == {
            "gen_ai.operation.name": span.name,
            "gen_ai.memory.store.id": "village",
            "gen_ai.memory.record.count": named(span)[2],
            "recallog.operation": named(span)[1],
        }


@pytest.mark.models("long_term")
def test_no_span_says_what_agents_have_said(spans: Spans, tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(tmp_path)) as memory:
            await memory.publish(event(id="e-1", payload={"text": SECRET}))
            await memory.recall("village", "baker", SECRET)
            with pytest.raises(IdConflict):
                await memory.publish(event(id="e-1", payload={"text": f"{SECRET}, or ten"}))
            with pytest.raises(Refused):
                await memory.long_term.retract("village", "baker", SECRET)

    run(work())
    assert len(spans()) == 4
    for span in spans():
        assert "miller" not in span.to_json()
        assert not span.events
        assert span.status.description is None


@pytest.mark.models("long_term")
def test_an_error_names_its_class(spans: Spans, tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(tmp_path)) as memory:
            with pytest.raises(Refused):
                await memory.long_term.retract("village", "baker", "l-7")

    run(work())
    (span,) = spans()
    assert (span.attributes or {})["error.type"] == "Refused"
    assert span.status.status_code is StatusCode.ERROR


def test_a_call_belongs_to_the_span_of_its_caller(spans: Spans, tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(tmp_path)) as memory:
            with trace.get_tracer("agent").start_as_current_span("turn"):
                await memory.publish(event())

    run(work())
    with SyncMemory.open(settings(tmp_path)) as memory, trace.get_tracer("agent").start_as_current_span("turn"):
        memory.episodic("village", "baker")
    published, turn, asked, other_turn = spans()
    assert (traced(published), traced(asked)) == (traced(turn), traced(other_turn))


def test_events_of_several_spaces_name_no_store(spans: Spans, tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(tmp_path)) as memory:
            await memory.publish_many([event(), event(space="farm")])

    run(work())
    (span,) = spans()
    assert "gen_ai.memory.store.id" not in (span.attributes or {})


def test_what_changes_or_finds_memories_has_a_name_and_operators_work_has_none() -> None:
    operations = all_operations(Memory)
    assert {name for name, each in operations.items() if each.scope is Scope.PUBLISH and each.gen_ai is None} == {
        "configure_agent",
        "react",
    }
    assert not [name for name, each in operations.items() if each.scope is Scope.OPERATE and each.gen_ai is not None]
    for each in operations.values():
        assert not each.destructive or each.gen_ai is GenAi.DELETE
        if each.gen_ai is not None and each.records:
            assert each.records in each.answer.model_fields


# From the publisher through the record to the fold


class Broker:
    """A topic of one partition: what aiokafka's producer sends to it is fetched, by the one member of its group."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    settings: Mapping[str, Any] = MappingProxyType({})

    def aiokafka(self, *_: Any, **__: Any) -> "Broker":
        return self

    async def end(self, *_: Any) -> None: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def flush(self) -> None: ...

    async def send(
        self, topic: str, value: bytes, key: bytes, partition: int, appended: int, headers: Any
    ) -> "asyncio.Future[Any]":
        offset = len(self.records)
        self.records.append(SimpleNamespace(value=value, key=key, headers=list(headers)))
        sent: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        sent.set_result(SimpleNamespace(offset=offset))
        return sent

    def subscribe(self, topics: Sequence[str], listener: Any) -> None: ...

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition("recallog.events", 0)}

    async def getmany(self) -> dict[Any, Any]:
        return {}

    def connection(self, *_: Any) -> "Broker":
        return self

    async def ask(self, doing: str, work: Any) -> Any:
        return await work(self)

    def topics(self, _: Any, *, create: bool) -> "Broker":
        return self

    async def open(self) -> Topic:
        return Topic("cluster", "topic-of-22-characters", 1, 0)

    def leader(self, topic: str, partition: int) -> int:
        return 1

    async def fetch(self, *_: Any, **__: Any) -> dict[int, FetchedPartition]:
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1_000_000)
        for offset, each in enumerate(self.records):
            builder.append(offset, 0, each.key, each.value, each.headers)
        return {0: FetchedPartition(NoError, (), bytes(builder.build()))}


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(connection, "make_client", broker.aiokafka)
    monkeypatch.setattr(group, "make_client", broker.aiokafka)
    monkeypatch.setattr(writing, "end_without_flushing", broker.end)
    monkeypatch.setattr(group, "stop_consumer", broker.end)
    monkeypatch.setattr(group, "KafkaConnection", broker.connection)
    monkeypatch.setattr(group, "Topics", broker.topics)
    return broker


def cluster(*, telemetry: bool = True) -> tuple[Settings, Components]:
    """A memory on a cluster whose topic is known."""
    found = Settings(ledger="kafka://127.0.0.1:1/recallog.events", views="memory://", telemetry=telemetry)
    components = compose(found)
    assert isinstance(components.ledger, KafkaLedger)
    topics = components.ledger._topics
    topics.opened, topics._checked_at = Topic("cluster", "topic-of-22-characters", 1, 0), float("inf")
    return found, components


async def fold(settings: Settings, components: Components) -> None:
    """Fold what a worker gets of the broker, as a worker does."""
    source = ConsumerGroupSource(KafkaAddress.parse(settings.ledger or ""), "workers", traced=settings.telemetry)
    await source.start()
    source.seek(0, 0)
    projector = components.views.builder
    generation = await projector.first_generation(0, 0)
    for batch in await source.poll([0], 0.01):
        checkpoint = await projector.store.checkpoint(generation)
        assert await projector.process(generation, batch, checkpoint) is not None


def test_one_trace_leads_from_the_caller_over_http_through_the_record_to_the_fold(spans: Spans, broker: Broker) -> None:
    async def work() -> None:
        settings, components = cluster()
        memory = Memory(components)
        memory._access.tracing = settings.tracing()
        app = Application(memory, Access.of(Settings(index="off")), tracing=settings.tracing())
        async with served(app) as (_, url), Remote(url, telemetry=True) as remote:
            with trace.get_tracer("agent").start_as_current_span("turn"):
                await remote.publish(event(payload={"text": SECRET}))
        await fold(settings, components)

    run(work())
    server, client, turn, last = spans()
    assert [each.name for each in (server, client, turn, last)] == ["create_memory", "create_memory", "turn", "fold"]
    assert [each.kind for each in (client, server, last)] == [SpanKind.CLIENT, SpanKind.INTERNAL, SpanKind.CONSUMER]
    assert len({traced(each) for each in (turn, client, server, last)}) == 1
    assert [each.parent and each.parent.span_id for each in (client, server, last)] == [
        ident(each) for each in (turn, client, server)
    ]
    assert [link.context.span_id for link in last.links] == [ident(server)]
    assert dict(last.attributes or {}) == {
        "messaging.operation.name": "fold",
        "messaging.operation.type": "process",
        "messaging.destination.partition.id": "0",
        "messaging.batch.message_count": 1,
    }
    (record,) = broker.records
    assert dict(record.headers)["traceparent"].decode().startswith(f"00-{traced(server)}-{ident(server):016x}-")


def test_the_fold_of_events_of_several_calls_is_one_span_that_names_them_all(spans: Spans, broker: Broker) -> None:
    async def work() -> None:
        settings, components = cluster()
        for number in range(3):
            with trace.get_tracer("agent").start_as_current_span(f"turn {number}"):
                await components.ledger.append(numbered(2, first=2 * number))
        await components.ledger.append(numbered(1, first=6))
        await fold(settings, components)

    run(work())
    *turns, last = spans()
    assert last.parent is None
    assert [link.context.span_id for link in last.links] == [ident(each) for each in turns]
    assert (last.attributes or {})["messaging.batch.message_count"] == 7
    assert last.start_time is not None
    assert last.end_time is not None
    assert 0 <= last.end_time - last.start_time < 60e9


def test_a_batch_that_no_traced_call_has_published_has_no_span(spans: Spans, broker: Broker) -> None:
    unsampled = f"00-{CLIENTS_TRACE}-{CLIENTS_SPAN}-00"
    foreign = [b"", b"nonsense", b"\xff\xfe", unsampled.encode(), f"{TRACEPARENT}\n".encode() * 50]

    async def work() -> None:
        settings, components = cluster()
        await components.ledger.append(numbered(len(foreign)))
        for record, header in zip(broker.records, foreign, strict=True):
            record.headers = [*record.headers, ("traceparent", header)]
        await fold(settings, components)

    run(work())
    assert spans() == ()


def test_without_the_setting_records_have_no_header_and_the_fold_no_span(spans: Spans, broker: Broker) -> None:
    async def work() -> None:
        settings, components = cluster(telemetry=False)
        with trace.get_tracer("agent").start_as_current_span("turn"):
            await components.ledger.append(numbered(1))
        (record,) = broker.records
        assert "traceparent" not in dict(record.headers)
        record.headers = [("traceparent", TRACEPARENT.encode())]
        await fold(settings, components)

    run(work())
    assert [each.name for each in spans()] == ["turn"]


def test_a_part_of_a_batch_names_the_publishers_of_its_records() -> None:
    batch = Batch(0, 0, 9, [(0, b"a"), (2, b"b"), (4, b"c")], None, ["x", "", "z"])
    assert [batch.cut(0, 1), batch.cut(1, 3)] == [
        Batch(0, 0, 1, [(0, b"a")], None, ["x"]),
        Batch(0, 1, 9, [(2, b"b"), (4, b"c")], None, ["", "z"]),
    ]


# HTTP


@pytest.mark.parametrize(
    ("header", "continues"), [(TRACEPARENT, True), ("", False), ("nonsense", False), ("00-0-0-01", False)]
)
def test_a_request_names_the_trace_that_it_belongs_to(
    spans: Spans, tmp_path: Path, header: str, continues: bool
) -> None:
    async def work() -> None:
        given = settings(tmp_path)
        async with Memory.open(given) as memory:
            app = Application(memory, Access.of(given), tracing=given.tracing())
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=URL) as client:
                sent = await client.post(
                    "/v1/spaces/village/events",
                    json={"agent": "baker", "kind": "agent.spoke", "payload": {"text": SECRET}},
                    headers={"traceparent": header},
                )
                assert sent.status_code == 201

    run(work())
    (span,) = spans()
    assert (traced(span) == CLIENTS_TRACE) is continues


def test_a_span_that_the_program_has_made_of_a_request_is_kept(spans: Spans) -> None:
    tracing = Tracing()
    with trace.get_tracer("middleware").start_as_current_span("request"):
        with tracing.continue_trace(TRACEPARENT), tracing.span("search_memory", {}):
            pass
    operation, request = spans()
    assert traced(operation) == traced(request) != CLIENTS_TRACE


def test_without_the_setting_a_client_sends_no_header() -> None:
    async def work() -> None:
        def answer(request: httpx.Request) -> httpx.Response:
            assert "traceparent" not in request.headers
            return httpx.Response(200, content=b'{"partition":0,"offset":7}')

        async with Remote(URL, transport=httpx.MockTransport(answer)) as remote:
            with trace.get_tracer("agent").start_as_current_span("turn"):
                await remote.publish(event())

    run(work())


# Where spans go, and what fails


def test_a_command_sends_its_spans_to_a_collector(tmp_path: Path) -> None:
    recallog("publish", "village", "baker", "agent.spoke", SECRET, "--home", tmp_path)
    with collecting_from_processes() as collector:
        given = {"RECALLOG_INDEX": "off", "RECALLOG_TELEMETRY": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        assert SECRET in spawn("episodic", "village", "baker", "--home", tmp_path, **given).out
        assert [span.name for span in collector.spans] == ["search_memory"]
        assert collector.services == {"recallog"}
        assert not any(b"miller" in body for body in collector.bodies)


def test_a_command_whose_collector_is_away_answers_as_without_it(tmp_path: Path) -> None:
    recallog("publish", "village", "baker", "agent.spoke", SECRET, "--home", tmp_path)
    given = {"RECALLOG_INDEX": "off", "RECALLOG_TELEMETRY": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    ended = spawn("episodic", "village", "baker", "--home", tmp_path, **given)
    assert (ended.code, ended.out.splitlines()[-1]) == (0, f"[turn 000][agent.spoke] {SECRET}")


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.sdk.trace"])
def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    recallog("publish", "village", "baker", "agent.spoke", SECRET, "--home", tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    ended = recallog("episodic", "village", "baker", "--home", tmp_path, RECALLOG_TELEMETRY="true")
    assert ended.code == 2
    assert "opentelemetry is not installed. Install it: pip install '.[telemetry]'" in ended.err


@pytest.mark.models("long_term")
def test_neither_an_operation_nor_a_fold_fails_because_its_span_does(
    spans: Spans, broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    processor.fails = True

    async def work() -> None:
        async with Memory.open(settings(tmp_path)) as memory:
            await memory.publish(event())
            assert len((await memory.episodic("village", "baker")).memories) == 1
            with pytest.raises(Refused):
                await memory.long_term.retract("village", "baker", "l-7")
        found, components = cluster()
        await components.ledger.append(numbered(1))
        broker.records[0].headers = [("traceparent", TRACEPARENT.encode())]
        await fold(found, components)

    with caplog.at_level(logging.WARNING):
        run(work())
    processor.fails = False
    assert {record.getMessage() for record in caplog.records} == {"a span was lost: RuntimeError"}
