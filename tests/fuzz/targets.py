"""What malformed inputs are given to. Each target judges one block of inputs and raises `Finding`."""

import asyncio
import io
import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import msgspec
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from fuzz import corpus
from recallog import Memory, Position
from recallog.composition import assemble
from recallog.index import messages
from recallog.index_service.connection import receive_message
from recallog.operations import pipeline
from recallog.operations.facade import all_operations
from recallog.retrieval import dates, names, persons
from recallog.retrieval.query import possible_names, query_terms
from recallog.settings import Settings
from recallog_eval import locomo
from recallog_projections.index import documents, passages, terms
from recallog_projections.index.embedders import prefixes
from recallog_projections.index.engines.server import ServerEngine
from recallog_projections.index.language import questions
from recallog_projections.stores import redis_server
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.views import activity
from recallog_schemas import codec, limits, repeats, text_rules
from recallog_schemas.errors import InvalidEvent, InvalidInput, OutOfRange, RecallogError, SettingsError
from recallog_schemas.validation import time_of
from recallog_schemas.visible import visible
from recallog_service.cli import rendering, wrapping
from recallog_service.formats import Item, chat, jsonl, registry
from recallog_service.ingest import ingest
from recallog_streams import chain, dead_letters
from recallog_streams.identity import Identity
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import batches_of
from recallog_streams.ledgers.kafka.headers import headers_of
from recallog_streams.ledgers.kafka.ledger import _id_of
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.ledgers.memory import MemoryLedger
from support import formats
from support.folding import all_rows, dead_letter_offsets, folded
from support.random_events import AGENTS, SPACES, random_event

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Finding(Exception):
    """An answer that is wrong."""


def require(right: bool, what: str) -> None:
    if not right:
        raise Finding(what)


@dataclass(frozen=True)
class Target:
    """A reader of inputs."""

    name: str
    weight: int
    """Its share of the blocks."""
    seeds: Callable[[random.Random], Sequence[bytes]]
    """Valid inputs."""
    judge: Callable[[Sequence[bytes], random.Random], None]
    """Gives the inputs of one block to the reader. Raises `Finding`, or whatever the reader raises."""


# The codec


def judge_codec(inputs: Sequence[bytes], rng: random.Random) -> None:
    for data in inputs:
        found = _id_of(data)
        with suppress(InvalidEvent):
            event = codec.decode(data)
            require(found == event.id, "the id of an event is not the one that a search in a topic finds")
            with suppress(InvalidEvent):  # an old envelope can be too long for the present one
                written = codec.encode(event)
                require(codec.decode(written) == event, "an event is not decoded as it was encoded")
                require(repeats.first_difference(event, codec.decode(written)) == "", "an event is no repeat of itself")
        with suppress(InvalidEvent):
            codec.decode(codec.encode(codec.parse(data)))
        with suppress(ValueError, RecursionError):
            fields = json.loads(data)
            if isinstance(fields, dict):
                with suppress(InvalidEvent):
                    codec.decode(codec.encode(codec.make(fields)))


# The fold


class Topic(MemoryLedger):
    """A ledger that other programs can write: its records have keys."""

    def __init__(self, values: Sequence[bytes], keys: Sequence[bytes | None]) -> None:
        super().__init__(unique_ids=False, batch_records=40)
        self._keys = keys
        for data in values:
            self.append_bytes(data)

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        async for batch in super().read(partition, start, until):
            yield msgspec.structs.replace(batch, keys=[self._keys[offset] for offset, _ in batch.records])


_ABOUT_RECORDS = {dead_letters.TABLE.name, dead_letters.COUNT.name, chain.BLOCKS.name}


def judge_fold(inputs: Sequence[bytes], rng: random.Random) -> None:
    """Every record is applied, skipped as a repeat, or a dead letter, and a dead letter changes nothing else."""
    values = [codec.encode(random_event(rng)) if rng.random() < 0.3 else data for data in inputs]
    keys = [_key(data, rng) for data in values]
    projector, generation = folded(Topic(values, keys))
    letters = set(dead_letter_offsets(projector.store, generation))
    rows = all_rows(projector, generation)

    ids: set[tuple[str, str]] = set()
    for offset, data in enumerate(values):
        if offset not in letters:
            event = codec.decode(data)  # raises if an invalid record was applied
            ids.add((event.space, event.id))
    counted = sum(activity.SPACES.decode(data).events for data in rows[activity.SPACES.name].values())
    require(counted == len(ids), f"{len(ids)} events were to be applied, and {counted} are")

    without = [b"nothing" if offset in letters else data for offset, data in enumerate(values)]
    projector, generation = folded(Topic(without, keys))
    require(set(dead_letter_offsets(projector.store, generation)) == letters, "other records are dead letters then")
    for table, found in all_rows(projector, generation).items():
        if table not in _ABOUT_RECORDS and table not in {each.name for each in Identity.tables}:
            require(found == rows[table], f"a dead letter changed the rows of {table}")
    if rng.random() < 0.2:
        asyncio.run(_ask(values, rng))


def _key(data: bytes, rng: random.Random) -> bytes | None:
    """Nearly always the space of the record, as a producer has to set it."""
    if rng.random() < 0.02:
        return rng.choice((None, b"", b"\xff", b"city"))
    try:
        return codec.decode(data).space.encode()
    except InvalidEvent:
        return b"village"


async def _ask(values: Sequence[bytes], rng: random.Random) -> None:
    """Every view of the records can be computed and shown."""
    ledger = MemoryLedger(unique_ids=False)
    for data in values:
        ledger.append_bytes(data)
    async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
        space, agent = rng.choice(SPACES), rng.choice(AGENTS)
        name = rng.choice(
            ("timeline", "salient", "context", "recall", "search", "reflection", "beliefs", "space", "kinds", "pending")
        )
        given: dict[str, Any] = {"space": space, "agent": agent, "query": rng.choice(corpus.QUESTIONS)}
        operation = all_operations(Memory)[name]
        await _shown(
            memory, operation.qualified_name, {key: given[key] for key in given if key in operation.parameters}
        )
        await _shown(memory, "admin.dead_letters", {})


async def _shown(memory: Memory, name: str, given: dict[str, Any]) -> None:
    operation = all_operations(Memory)[name]
    answer = await pipeline.call(memory, operation, given)
    require(operation.from_json(operation.to_json(answer)) == answer, f"the answer of {name} is not the same as JSON")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        rendering.renderer(operation.answer)(answer)


# Formats


def judge_lines(inputs: Sequence[bytes], rng: random.Random) -> None:
    for data in inputs:
        given = data.splitlines(keepends=True)
        with suppress(InvalidInput):
            items = list(jsonl.read(given))
            _check_items(items)
            first = given[0].removeprefix(b"\xef\xbb\xbf") if given else b""
            expected = sum(bool(line.strip()) for line in [first, *given[1:]])
            require(len(items) == expected, f"{expected} lines gave {len(items)} items")
            if rng.random() < _INGESTED:
                asyncio.run(_check_ingest(items, one_by_one=True))


def judge_chats(inputs: Sequence[bytes], rng: random.Random) -> None:
    for data in inputs:
        with suppress(InvalidInput):
            key = rng.choice(("messages", "messages", "history", "traj"))
            reader = rng.choice((chat.FORMAT, rng.choice([*registry.by_name().values()])))
            items = formats.items(reader, data, space=rng.choice((None, "village")), messages_key=key)
            _check_items(items)
            if rng.random() < _INGESTED:
                asyncio.run(_check_ingest(items))


def judge_locomo(inputs: Sequence[bytes], rng: random.Random) -> None:
    for data in inputs:
        with suppress(InvalidInput):
            items = list(locomo.read(data, space=rng.choice((None, "test"))))
            _check_items(items)
            if rng.random() < _INGESTED:
                asyncio.run(_check_ingest(items))


def _check_items(items: Sequence[Item]) -> None:
    for item in items:
        if item.event is not None:
            codec.encode(item.event)
        else:
            require((item.error is None) != (item.left_out is None), "an item without an event, an error and a reason")


_INGESTED = 0.05


async def _check_ingest(items: Sequence[Item], *, one_by_one: bool = False) -> None:
    """An ingest counts what it writes, and a second one adds nothing."""
    async with Memory.in_memory() as memory:
        first = await ingest(memory, items, unit="line", batch=7, keep_going=True)
        (end,) = await memory.admin.ledger_ends()
        require(first.added == end, f"{first.added} events added, and the ledger has {end}")
        if one_by_one:
            counted = first.added + first.known + len(first.problems) + sum(first.left_out.values())
            require(counted == len(items), f"{len(items)} items, of which {counted} are accounted for")
        second = await ingest(memory, items, unit="line", batch=7, keep_going=True)
        require(second.added == 0, f"a second ingest added {second.added} events")
        require(second.known == first.added + first.known, "a second ingest knows other events")


# The index protocol


def judge_messages(inputs: Sequence[bytes], rng: random.Random) -> None:
    asyncio.run(_judge_messages(inputs))


async def _judge_messages(inputs: Sequence[bytes]) -> None:
    for data in inputs:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        try:
            body = await receive_message(reader, messages.MESSAGE_BYTES_MAX)
        except (EOFError, ConnectionError):
            body = data[messages.LENGTH_BYTES :]
        for read in (messages.handshake, messages.call, messages.frame):
            with suppress(msgspec.MsgspecError):
                message = read(body)
                if isinstance(message, messages.Failed):
                    require(isinstance(messages.error_of(message), RecallogError), "an error of another tree")
                if isinstance(message, messages.Perform):
                    _ = all_operations(Memory).get(message.operation)


def judge_settings(inputs: Sequence[bytes], rng: random.Random) -> None:
    for data in inputs:
        with suppress(msgspec.MsgspecError, SettingsError):
            messages.decode_settings(data)


# Doors


def judge_arguments(inputs: Sequence[bytes], rng: random.Random) -> None:
    asyncio.run(_judge_arguments(inputs, rng))


_NOT_CALLED = frozenset({"admin.copy"})
"""Its argument names a ledger anywhere: a mutated one may be a folder or a server."""


async def _judge_arguments(inputs: Sequence[bytes], rng: random.Random) -> None:
    operations = {name: each for name, each in all_operations(Memory).items() if name not in _NOT_CALLED}
    async with Memory.in_memory() as memory:
        await memory.publish_many([random_event(rng).model_copy(update={"id": f"e-{number}"}) for number in range(20)])
        for data in inputs:
            try:
                given = json.loads(data)
            except (ValueError, RecursionError):
                continue
            name, arguments = next(iter(given.items()), ("", {})) if isinstance(given, dict) else ("", given)
            if isinstance(arguments, dict):
                operation = operations.get(name) or rng.choice(list(operations.values()))
                try:
                    answer = await pipeline.call(memory, operation, arguments)
                except RecallogError as error:
                    require(bool(str(error)), "an error without a message")
                else:
                    operation.to_json(answer)


# Short texts: positions, times, addresses


def judge_words(inputs: Sequence[bytes], rng: random.Random) -> None:
    for data in inputs:
        text = data.decode("utf-8", rng.choice(("replace", "surrogateescape", "ignore")))
        with suppress(OutOfRange):
            require(isinstance(Position.parse(text), Position), "no position")
        with suppress(ValueError):  # a `PydanticCustomError` is one
            require(time_of(text).tzinfo is not None, "a time without a zone")
        with suppress(SettingsError):
            KafkaAddress.parse(text)
        with suppress(SettingsError):
            redis_server.breaker_of(text)
        with suppress(SettingsError):
            prefixes.split_name(text)
        with suppress(SettingsError):
            Settings.valid(home=text, index=text, embedder=text, log_events=text, lock_wait_seconds=text)
        if text.startswith("http"):
            with suppress(SettingsError):
                ServerEngine(text)
        with suppress(InvalidInput):
            codec.checked_name(text)


# Texts of events and questions


def judge_texts(inputs: Sequence[bytes], rng: random.Random) -> None:
    for data in inputs:
        text = data.decode("utf-8", "replace")
        question = text[: limits.RECALL_QUERY_CHARS_MAX]
        terms.terms(text)
        passages.spans(text)
        documents.clean(text)
        questions.is_question(text)
        visible(text)
        wrapping.wrap_line(text[:2_000], 80)
        query_terms(question, AGENTS)
        names.find_named(question, AGENTS)
        persons.subject(question)
        possible_names(question)
        for each in dates.find(question):
            each.days(date(2026, 3, 1))
        rule = text[:200]
        with suppress(ValueError):
            text_rules.make_rule(rule)({"text": text, "a": {"b": [1, None]}})
        text_rules.tool_text({"tool": text, "arguments": {"x": text}, "result": text, "ok": False})


# Headers of Kafka's records


def judge_headers(inputs: Sequence[bytes], rng: random.Random) -> None:
    """A record with any header is read: its key and value are those of its producer."""
    sent = [(random_event(rng), data) for data in inputs]
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 16 * 1024 * 1024)
    for offset, (event, data) in enumerate(sent):
        headers = [*headers_of(event), ("x" * rng.randrange(9), data[:500]), ("\ufffd" * 3, b"")]
        builder.append(offset, 0, event.space.encode(), codec.encode(event), headers=headers)
    # The keys of headers are bytes that another program chose: they need not be text. Each has the same length then.
    raw = bytes(builder.build()).replace(
        "\ufffd".encode(), rng.choice((b"\xff\xfe\xfd", b"\x00\x00\x00", b"\xed\xa0\x80"))
    )
    found = [record for batch in batches_of(raw) for record in batch.records()]
    require(
        [(each.key, each.value) for each in found] == [(e.space.encode(), codec.encode(e)) for e, _ in sent],
        "another record",
    )


TARGETS = (
    Target("codec", 26, corpus.events, judge_codec),
    Target("fold", 30, corpus.events, judge_fold),
    Target("jsonl", 6, corpus.lines, judge_lines),
    Target("chat", 12, lambda rng: corpus.chats(), judge_chats),
    Target("locomo", 4, lambda rng: corpus.locomo(), judge_locomo),
    Target("messages", 6, lambda rng: corpus.index_messages(), judge_messages),
    Target("settings", 1, lambda rng: corpus.settings_lines(), judge_settings),
    Target("arguments", 10, corpus.arguments, judge_arguments),
    Target("words", 4, lambda rng: [text.encode() for text in (*corpus.TIMES, *corpus.URLS)], judge_words),
    Target("texts", 2, lambda rng: [text.encode() for text in corpus.QUESTIONS], judge_texts),
    Target("headers", 2, corpus.events, judge_headers),
)
