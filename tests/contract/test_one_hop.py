"""Operations that the process of an index executes: they answer as this process would, and end as this process ends.

The service is a real process with the real model. In this process the same index is opened after the service has ended.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recallog import Memory, errors, layout
from recallog.composition import compose
from recallog.extending import Reranker
from recallog.index import messages, remote
from recallog.index.indexer import Indexer
from recallog.index.semantic_index import IndexInProcess, SemanticIndex
from recallog.index_service.connection import Connection
from recallog.index_service.service import Service
from recallog.settings import Settings
from recallog_projections.index.embedders.registry import embedder
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.unread import UNREAD, key_of
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.sqlite import SqliteStore
from recallog_projections.stores.store import Checkpoint, Generation, Outcome
from recallog_schemas import Event, Position
from recallog_schemas.errors import (
    IndexUnavailable,
    InvalidArgument,
    ModelFailed,
    OutOfRange,
    StorageError,
    ViewsBehind,
)
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.locks.folder import FolderLock
from recallog_streams.stop_signal import StopSignal
from support.events import event, run
from support.waiting import until

QUESTION = "Did the smith burn the mill?"
ANSWER = "The smith burned the mill."
TEXTS = ["Bread!", "It was dark.", ANSWER, "I saw the river.", "The widow owes me nine sacks of flour."]


def events() -> list[Event]:
    spoken = [event(payload={"text": text}, turn=turn, session="one") for turn, text in enumerate(TEXTS)]
    configured = event(kind="agent.configured", agent="salty", payload={"use_salience": True})
    heard = event(kind="user.injected", agent="guest", payload={"text": "Who burned the mill, and why?"}, turn=9)
    return [*spoken, configured, heard]


def settings(home: Path, **more: Any) -> Settings:
    return Settings(home=home, index="embedded", deadline_seconds=20.0, **more)  # for a busy machine


def here(home: Path) -> Memory:
    """A memory that opens the index of the folder in this process."""
    components = compose(Settings(home=home, index="off"))
    indexer = Indexer(
        components.ledger,
        SqliteStore(home / layout.INDEX_ROWS),
        EdgeEngine(home / layout.INDEX_ENGINE),
        embedder,
        "minilm",
    )
    return Memory(replace(components, index=IndexInProcess(lambda: indexer)))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose index is built."""
    home = tmp_path_factory.mktemp("one") / "memory"

    async def build() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.publish_many(events())
            await memory.catch_up_index()

    run(build())
    return home


ASKED: dict[str, Callable[[Memory], Awaitable[Any]]] = {
    "recall": lambda memory: memory.recall("village", "baker", QUESTION, top_k=3),
    "recall as of a position": lambda memory: memory.recall("village", "baker", QUESTION, as_of=Position(0, 2)),
    "recall after a position, filtered": lambda memory: memory.recall(
        "village", "baker", QUESTION, after="0:6", kinds=["agent.spoke"], session="one", fusion="rrf", author="baker"
    ),
    "recall since a time": lambda memory: memory.recall(
        "village", "baker", QUESTION, since=events()[0].at - timedelta(days=1), channels=["keyword", "semantic"]
    ),
    "search": lambda memory: memory.search("village", "baker", QUESTION, limit=500),
    "salient": lambda memory: memory.salient("village", "baker", QUESTION, top_k=2, turn=11),
    "context": lambda memory: memory.context("village", "baker", query=QUESTION, budget_tokens=900),
    "context by salience": lambda memory: memory.context("village", "salty", scene="A mill burns.", extra="Hurry."),
    "explain": lambda memory: memory.explain("village", "baker", "e-unknown", query=QUESTION),
    "an agent that is not known": lambda memory: memory.recall("village", "stranger", QUESTION),
    "no question": lambda memory: memory.recall("village", "baker", "  "),
}


@pytest.mark.models("prompt")
def test_the_service_answers_as_a_process_does_that_opens_the_index_itself(home: Path) -> None:
    async def served() -> dict[str, Any]:
        async with Memory.open(settings(home)) as memory:
            await memory.catch_up_index()
            return {name: await ask(memory) for name, ask in ASKED.items()}

    async def in_process() -> dict[str, Any]:
        async with here(home) as memory:
            return {name: await ask(memory) for name, ask in ASKED.items()}

    by_service, by_this_process = run(served()), run(in_process())
    assert by_service["recall"].hits[0].text == ANSWER
    assert by_service["recall"].degraded is None
    assert by_service["salient"].relevance_by == "meaning"
    for name, answer in by_service.items():
        past = {"generation": ""} if "as of" in name else {}  # the fold of a query about the past has a random id
        served_answer, own_answer = (each.model_copy(update=past) for each in (answer, by_this_process[name]))
        assert served_answer == own_answer, name
        assert served_answer.model_dump_json() == own_answer.model_dump_json(), name


def test_a_closed_memory_answers_nothing_although_the_service_could(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(home)) as serving:
            await serving.catch_up_index()
            memory = Memory.open(settings(home))
            assert (await memory.recall("village", "baker", QUESTION)).degraded is None
            await memory.close()
            for ask in (memory.recall, memory.salient):
                with pytest.raises(StorageError, match="is closed"):
                    await ask("village", "baker", QUESTION)

    run(work())


@pytest.mark.models("prompt")
def test_errors_of_the_service_are_those_of_the_operation(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.catch_up_index()
            with pytest.raises(OutOfRange):
                await memory.recall("village", "baker", QUESTION, after="0:99")
            with pytest.raises(InvalidArgument) as small:
                await memory.context("village", "baker", budget_tokens=1)
            assert small.value.path == "budget_tokens"
            with pytest.raises(InvalidArgument) as long:
                await memory.salient("village", "baker", QUESTION, top_k=5_000)
            assert (long.value.path, long.value.rule) == ("top_k", "less_than_equal")
            with pytest.raises(InvalidArgument) as half:
                await memory.recall("village", "baker", "half a surrogate pair: \ud800")
            assert half.value.path == "query"

    run(work())


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_reaches_the_client_as_it_was_raised(name: str) -> None:
    kind: Any = getattr(errors, name)
    raised: Exception = {
        "IdConflict": lambda: kind("It happened.", path="payload.text", position="0:41"),
        "LedgerMoved": lambda: kind("It happened.", ledger="recallog.events.2"),
        "ModelFailed": lambda: kind("It happened.", retryable=True, retry_after_seconds=2.5),
        "Refused": lambda: kind("It happened.", reason="pins"),
        "Conflict": lambda: kind("It happened.", version=3),
        "RateLimited": lambda: kind("It happened.", retry_after_seconds=2.5),
    }.get(name, lambda: kind("It happened."))()
    data = messages.frame_message(messages.failure(raised))[messages.LENGTH_BYTES :]
    received = messages.frame(data)
    assert isinstance(received, messages.Failed)
    found = messages.error_of(received)
    assert type(found) is kind
    assert str(found) == "It happened."
    assert vars(found) == vars(raised)
    if isinstance(found, ModelFailed):
        assert found.retry_after_seconds == 2.5


def test_an_error_of_another_tree_says_that_the_index_cannot_answer() -> None:
    found = messages.error_of(messages.failure(ZeroDivisionError("division by zero")))
    assert type(found) is IndexUnavailable
    assert str(found) == "ZeroDivisionError: division by zero"


def test_a_caller_sees_its_own_writes_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(tmp_path)) as memory:
            await memory.publish_many(events())
            await memory.catch_up_index()
            for number in range(20):
                text = f"The {number}th lantern hangs in the tower."
                position = await memory.publish(event(payload={"text": text}))
                found = await memory.recall("village", "baker", f"Where does the {number}th lantern hang?", top_k=30)
                assert found.checkpoint == position
                assert text in [hit.text for hit in found.hits]

    run(work())


def test_a_client_whose_views_retain_more_events_is_served_by_the_same_process(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(tmp_path)) as memory:
            await memory.publish_many(events())
            await memory.catch_up_index()
            assert (await memory.recall("village", "baker", QUESTION)).degraded is None
            pid = _address(tmp_path).pid
            async with Memory.open(settings(tmp_path, log_events=3_000)) as more:
                assert (await more.salient("village", "baker", QUESTION, top_k=2_500)).relevance_by == "meaning"
            assert _address(tmp_path).pid == pid

    run(work())


class Backwards(Reranker):
    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        assert os.getpid() == self.pid
        return [float(number) for number, _ in enumerate(texts)]

    pid = os.getpid()


def test_a_reranker_is_called_in_the_process_of_its_caller(home: Path) -> None:
    async def work() -> None:
        async with (
            Memory.open(settings(home)) as memory,
            Memory.open(settings(home), reranker=Backwards()) as reranking,
        ):
            await memory.catch_up_index()
            plain = await memory.recall("village", "baker", QUESTION, top_k=20)
            turned = await reranking.recall("village", "baker", QUESTION, top_k=2)
            assert [hit.text for hit in turned.hits] == [hit.text for hit in reversed(plain.hits)][:2]
            assert turned.top_k == 2
            page = await reranking.search("village", "baker", QUESTION, limit=2)
            assert [hit.id for hit in page.hits] == [hit.event.id for hit in turned.hits]

    run(work())


def test_hostile_bytes_get_no_answer_and_disturb_nobody(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.catch_up_index()
            right = _address(home)
            greeting = messages.frame_message(messages.Handshake(right.token))
            for sent in (
                b"hello",
                b"\xff\xff\xff\xff" + b"\0" * 100,
                (5).to_bytes(4, "big") + b"hello",
                messages.frame_message(messages.Health()),
                messages.frame_message(messages.Handshake("0" * 32)) + messages.frame_message(messages.Health()),
                messages.frame_message(messages.Handshake("ü" * 200)) + messages.frame_message(messages.Health()),
                messages.frame_message(messages.Handshake("x" * 2_000)),
                greeting + b"\xff\xff\xff\xff",
                greeting + greeting,
                greeting + messages.frame_message(messages.Health()) + b"more",
            ):
                reader, writer = await asyncio.open_unix_connection(right.socket)
                writer.write(sent)
                writer.write_eof()
                with contextlib.suppress(ConnectionError):
                    answered = await reader.read()
                    assert b"Result" not in answered or sent.endswith(b"more")
                writer.close()
            for arguments in (b"", b"[]", b'{"space": 1}', b'{"no": "such"}'):
                call = messages.Perform("recall", arguments, 2_000)
                with pytest.raises((IndexUnavailable, InvalidArgument)):
                    await remote.call(home, call)
            with pytest.raises(IndexUnavailable):
                await remote.call(home, messages.Perform("publish", b"{}", 2_000))
            assert (await memory.recall("village", "baker", QUESTION)).degraded is None
            assert _address(home) == right

    run(work())


def _address(home: Path) -> messages.ServiceAddress:
    return msgspec.json.decode((home / layout.INDEX_ADDRESS).read_bytes(), type=messages.ServiceAddress)


def test_a_service_of_another_version_gives_way(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.catch_up_index()
            before = _address(home)
            _, writer = await asyncio.open_unix_connection(before.socket)
            writer.write(messages.frame_message(messages.Handshake(before.token, "0.0.0")))
            await until(lambda: _is_gone(home), "the service of another version ends")
            writer.close()
            found = await memory.recall("village", "baker", QUESTION)
            assert (found.hits[0].text, found.degraded) == (ANSWER, None)
            assert _address(home).pid != before.pid

    run(work())


async def _is_gone(home: Path) -> bool:
    return not (home / layout.INDEX_ADDRESS).exists()


def test_a_service_whose_views_were_deleted_gives_way(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(tmp_path)) as memory:
            await memory.publish_many(events())
            await memory.catch_up_index()
            await memory.recall("village", "baker", QUESTION)
            for suffix in ("", "-wal", "-shm"):
                (tmp_path / f"views.db{suffix}").unlink(missing_ok=True)
        async with Memory.open(settings(tmp_path)) as other:
            found = await other.recall("village", "baker", QUESTION)
            assert (found.hits[0].text, found.degraded) == (ANSWER, None)

    run(work())


def test_a_call_whose_client_has_gone_is_cancelled_and_blocks_no_other(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.publish_many(events())
        (tmp_path / layout.INDEX).mkdir()
        stopping = StopSignal()
        path = str(Path(os.environ["XDG_RUNTIME_DIR"]) / "one-hop.socket")
        service = Service(settings(tmp_path), stopping, EdgeEngine(tmp_path / layout.INDEX_ENGINE), tmp_path, path)

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async with Connection(reader, writer) as connection:
                await connection.receive_handshake()
                await service.execute(await connection.receive_call(), connection)

        server = await asyncio.start_unix_server(answer, path)
        serving = asyncio.create_task(service.run())

        async def is_indexed() -> bool:
            with contextlib.suppress(IndexUnavailable):
                return (await service._index.open(0)).checkpoint >= 0
            return False

        await until(is_indexed, "the index is built")
        asked = messages.Perform("recall", msgspec.json.encode(_arguments()), 2_000)
        async with FolderLock(tmp_path / layout.views_lock(), 30)():  # the views cannot be folded meanwhile
            first = asyncio.create_task(remote.call(tmp_path, asked))
            await until(lambda: _has_calls(service, 1), "the service executes the call")
            await remote.call(tmp_path, messages.Health())
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            await until(lambda: _has_calls(service, 0), "the call is cancelled")
        assert b"burned the mill" in await remote.call(tmp_path, asked)
        stopping.set()
        await serving
        server.close()

    run(work())


def _arguments() -> dict[str, Any]:
    return {"space": "village", "agent": "baker", "query": QUESTION}


async def _has_calls(service: Service, count: int) -> bool:
    return service._calls == count


class Standing(SemanticIndex):
    """An index that commits nothing, and embeds `texts` texts of its first batch before it stops."""

    def __init__(self, texts: int) -> None:
        self._rows, self._ledger = MemoryStore(), MemoryLedger()
        self.left = texts
        self.indexed = 0

    async def open(self, partition: int) -> Any:
        raise IndexUnavailable("the index is being built")

    @property
    def rows(self) -> MemoryStore:
        return self._rows

    @property
    def ledger(self) -> MemoryLedger:
        return self._ledger

    def exists(self) -> bool:
        return True

    async def size_bytes(self) -> int:
        return 0

    async def begin(self) -> bool:
        return False

    async def start(self) -> messages.HealthReport:
        if self.left:
            self.left, self.indexed = self.left - 1, self.indexed + 1
        return messages.HealthReport("", self.indexed)

    async def health(self) -> None:
        return None

    def note_damage(self, partition: int, found: str) -> None:
        raise AssertionError(found)

    async def close(self) -> None:
        return


def test_a_wait_for_the_index_sees_the_texts_of_a_batch_that_is_not_committed() -> None:
    index = Standing(texts=20)

    shown: list[tuple[int, int]] = []

    async def work() -> None:
        with pytest.raises(ViewsBehind, match="has stopped at -1, before 255"):
            await index.wait(0, 255, 0.2, lambda done, total: shown.append((done, total)))

    run(work())
    assert index.left == 0
    assert shown[0] == (1, 256)
    assert shown[-1] == (20, 256)


class FirstPass(Standing):
    """An index that reads one record of a backlog each time it is asked, and computes their vectors after the last."""

    def __init__(self, records: int) -> None:
        super().__init__(0)
        self.generation = Generation("first", 0, "{}", records)
        self.records, self.read = records, 0

    async def start(self) -> messages.HealthReport:
        if self.read == 0:
            await self.rows.create(self.generation)
        noted = [(UNREAD, "", "", key_of(offset, "point")) for offset in range(self.records)]
        if self.read < self.records:
            rows = {noted[self.read]: b""}
            await self._commit(self.read - 1, self.read, rows)
            self.read += 1
        else:
            await self._commit(self.read - 1, self.read - 1, dict.fromkeys(noted))
            await self.rows.activate(self.generation)
        return await super().start()

    async def _commit(self, expected: int, new: int, rows: Mapping[tuple[str, str, str, str], bytes | None]) -> None:
        found = await self.rows.commit(self.generation, Checkpoint(expected), Checkpoint(new), Changes(rows, {}, {}))
        assert found is Outcome.APPLIED


def test_the_first_pass_over_a_backlog_is_progress_though_it_computes_no_vectors() -> None:
    run(FirstPass(10).wait(0, 9, 0.2))
