"""The Redis store meets the contract of stores, equals the store in memory, and refuses a Redis that may lose views."""

import asyncio
import gc
import logging
import os
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis
from deploy.local import LocalRedis
from deploy.local.server import START_SECONDS
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contract.damage_contract import DamageContract
from contract.random_commits import NAMES, answers, changes, pages
from live.conftest import NewRedis
from live.support import DEADLINE_SECONDS, SECONDS
from recallog_projections.concurrency import cancel_all
from recallog_projections.patience import patient
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.redis import READ_ROWS_MAX, RedisStore
from recallog_projections.stores.redis_format import pack_key
from recallog_projections.stores.redis_server import RedisServer, breaker_of
from recallog_projections.stores.store import Generation, Outcome, Pointer, Store
from recallog_projections.tables import LogName, RowKey
from recallog_schemas.errors import (
    InvariantViolation,
    Rebuilding,
    SettingsError,
    StorageError,
    StorageFull,
    StorageUnavailable,
)
from recallog_testing.contracts.store import LOG, ROW, A, B, C, activate, at, build, commit, data_of, row, tail
from recallog_testing.contracts.store import entries as log_entries
from support.events import one_loop, run

BLOCKED_MS_MAX = 20
"""The longest time that one call may block others."""


def new_store(url: str, namespace: str = "") -> RedisStore:
    """A store in `namespace`, or in a new one."""
    breaker = breaker_of(url, DEADLINE_SECONDS)
    return RedisStore(url, namespace=namespace or f"test-{os.urandom(6).hex()}", breaker=breaker)


async def ask(store: RedisStore, *words: Any) -> Any:
    """The server's answer to a command, as the store itself would get it."""
    return await store._server.command(*words)


def reached_again(store: RedisStore) -> None:
    """Return when the store calls its server again, which it does some seconds after a failure."""
    give_up = time.monotonic() + SECONDS
    while time.monotonic() < give_up:
        with suppress(StorageUnavailable):
            run(ask(store, "PING"))
            return
        time.sleep(0.05)
    raise AssertionError("the store does not call its server again")


async def keys(store: RedisStore) -> set[bytes]:
    """All keys of the store's namespace, the index of partitions apart."""
    found: set[bytes] = set()
    cursor = 0
    while True:
        cursor, some = await ask(store, "SCAN", cursor, "MATCH", f"{{{store._namespace}[:}}]*", "COUNT", 10_000)
        found |= set(some)
        if cursor == 0:
            return found - {f"{{{store._namespace}}}:partitions".encode()}


async def clean(store: RedisStore) -> None:
    try:
        await ask(store, "UNLINK", f"{{{store._namespace}}}:partitions", *await keys(store))
    finally:
        await store.close()


class TestRedisStore(DamageContract):
    def damage(self, store: Store, kind: str) -> None:
        assert isinstance(store, RedisStore)
        run(damage(store, kind))

    @pytest.fixture(autouse=True)
    def _url(self, redis_url: str) -> None:
        self.url = redis_url

    def make(self, folder: Path) -> RedisStore:
        return new_store(self.url)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with one_loop():
            store = self.make(tmp_path)
            yield store
            run(clean(store))

    def lose_checkpoint(self, store: Store, generation: Generation) -> None:
        assert isinstance(store, RedisStore)
        run(ask(store, "DEL", store._prefix(generation) + "checkpoint"))


async def damage(store: RedisStore, kind: str) -> None:
    """Alter what the store has written; see `DamageContract`."""
    of_a, of_b, pointer = store._prefix(A), store._prefix(B), store._partition(0) + "pointer"
    baker, miller = pack_key("village", "baker", "k"), pack_key("village", "miller", "k")
    log, other_log = (f"{of_a}log:l:{pack_key('village', owner)}" for owner in ("baker", "miller"))
    row, entry, checkpoint = (
        await ask(store, "HGET", f"{of_a}rows:t", baker),
        await ask(store, "LINDEX", log, -1),
        await ask(store, "GET", f"{of_a}checkpoint"),
    )
    commands: dict[str, Callable[[], Awaitable[Any]]] = {
        "a flipped value": lambda: ask(store, "HSET", f"{of_a}rows:t", baker, bytes([row[0] ^ 1]) + row[1:]),
        "a truncated value": lambda: ask(store, "HSET", f"{of_a}rows:t", baker, row[:-1]),
        "an empty value": lambda: ask(store, "HSET", f"{of_a}rows:t", baker, b""),
        "the value of another row": lambda: copied(store, f"{of_a}rows:t", miller, f"{of_a}rows:t", baker),
        "the value of another generation": lambda: copied(store, f"{of_b}rows:t", baker, f"{of_a}rows:t", baker),
        "a flipped entry": lambda: ask(store, "LSET", log, -1, bytes([entry[0] ^ 1]) + entry[1:]),
        "a truncated entry": lambda: ask(store, "LSET", log, -1, entry[:-1]),
        "the entries of another log": lambda: ask(store, "COPY", other_log, log, "REPLACE"),
        "the pointer": lambda: copied(store, pointer, "building-generation", pointer, "active-generation"),
        "the checkpoint": lambda: ask(store, "COPY", f"{of_b}checkpoint", f"{of_a}checkpoint", "REPLACE"),
        "a truncated checkpoint": lambda: ask(store, "SET", f"{of_a}checkpoint", checkpoint[:3]),
        "the manifest": lambda: ask(store, "SET", f"{{{store._namespace}}}:manifest", b"1"),
    }
    await commands[kind]()


async def copied(store: RedisStore, from_key: str, from_field: str, key: str, field: str) -> None:
    await ask(store, "HSET", key, field, await ask(store, "HGET", from_key, from_field))


@pytest.fixture
def store(redis_url: str) -> Iterator[RedisStore]:
    with one_loop():
        store = new_store(redis_url)
        yield store
        run(clean(store))


@pytest.fixture
def server(own_redis: NewRedis) -> LocalRedis:
    """A Redis that the test may kill, flush and corrupt."""
    return own_redis()


@pytest.fixture
def own(server: LocalRedis) -> Iterator[RedisStore]:
    """A store in that Redis."""
    with one_loop():
        store = new_store(server.url)
        yield store
        run(store.close())


# Equality with the store in memory.


@settings(max_examples=60)
@example(commits=[Changes({}, {LogName("l", "a\0", ""): [b""]}, {"l": 3})], limit=1, space="a", newest=0)
@given(
    commits=st.lists(changes((*NAMES, "a\0", "a\0b", "\0", "\x01")), max_size=8),
    limit=st.integers(1, 5) | st.integers(20, 50),
    space=st.none() | st.sampled_from((*NAMES, "a\0")),
    newest=st.integers(0, 9) | st.integers(30, 80),
)
def test_it_answers_like_the_store_in_memory(
    redis_url: str, commits: list[Changes], limit: int, space: str | None, newest: int
) -> None:
    async def both() -> tuple[list[object], list[object]]:
        redis = new_store(redis_url)
        try:
            return (
                await answers(redis, commits, limit=limit, space=space, newest=newest),
                await answers(MemoryStore(), commits, limit=limit, space=space, newest=newest),
            )
        finally:
            await clean(redis)

    found, expected = run(both())
    assert found == expected


def test_row_keys_are_ordered_by_their_parts_whatever_characters_they_contain(store: RedisStore) -> None:
    parts = ["", "\0", "\0\0", "\0a", "\x01", "a", "a\0", "a\0\0b", "a\x01", "ab", "é", "\uffff", "\U0001f956"]
    needs = [RowKey("t", space, owner, key) for space in parts for owner in parts for key in parts]
    build(store, A, 0, Changes(rows=dict.fromkeys(needs, b"1")))
    found = [item.row_key for chunk in run(pages(store, "t", limit=500)) for item in chunk.items]
    assert found == sorted((need.space, need.owner, need.key) for need in needs)


def test_a_large_read_in_several_calls_is_consistent(store: RedisStore) -> None:
    needs = [RowKey("t", "s", str(n)) for n in range(2 * READ_ROWS_MAX + 7)]
    logs = [LogName("l", "s", str(n)) for n in range(READ_ROWS_MAX + 3)]

    def moment(n: int) -> Changes:
        return Changes(dict.fromkeys(needs, b"%d" % n), {name: [b"%d" % n] for name in logs}, {"l": 1})

    async def write() -> None:
        for n in range(1, 4):
            assert await store.commit(A, at(n - 1), at(n), moment(n)) is Outcome.APPLIED

    async def read_meanwhile() -> None:
        writing = asyncio.create_task(write())
        while True:
            done = writing.done()
            snapshot = await store.read(0, needs, [(name, 1) for name in logs], A)
            n = snapshot.checkpoint.offset
            assert list(snapshot.rows) == [b"%d" % n] * len(needs)
            assert {(entry, found.total) for found in snapshot.logs for entry in found.entries} == {(b"%d" % n, n + 1)}
            if done:
                break
        await writing

    build(store, A, 0, moment(0))
    run(read_meanwhile())


def test_a_scan_of_large_rows_comes_in_chunks_that_fit_a_reply(store: RedisStore) -> None:
    rows = {RowKey("t", "s", f"{n:03}"): b"x" * 100_000 for n in range(200)}
    build(store, A, 0, Changes(rows, {LOG: [b"x" * 100_000] * 200}, {"l": 200}))
    for table in ("t", "l"):
        chunks = run(pages(store, table, limit=1_000))
        assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
        assert sum(len(chunk.items) for chunk in chunks) == len({i.row_key for c in chunks for i in c.items}) == 200
        assert max(sum(len(item.data) for item in chunk.items) for chunk in chunks) < 16 * 1024 * 1024


# Concurrent writers.


def test_one_of_several_concurrent_writers_wins(store: RedisStore) -> None:
    others = [new_store(store._server.url, store._namespace) for _ in range(8)]

    async def race() -> list[Outcome]:
        ways = (other.commit(A, at(3), at(4 + n), row(b"%d" % n)) for n, other in enumerate(others))
        return await asyncio.gather(*ways)

    build(store, A, 3)
    outcomes = run(race())
    assert sorted(outcome.value for outcome in outcomes) == ["ahead"] * 7 + ["applied"]
    winner = outcomes.index(Outcome.APPLIED)
    assert (run(store.checkpoint(A)), data_of(store, A)) == (at(4 + winner), b"%d" % winner)
    for other in others:
        run(other.close())


def test_a_commit_whose_answer_was_lost_counts_once(store: RedisStore) -> None:
    build(store, A, 0, log_entries(1))
    hasty = RedisStore(f"{store._server.url}?socket_timeout=0.1", namespace=store._namespace)

    async def lose_the_answer() -> None:
        await hasty.checkpoint(A)
        busy = "local began = os.clock() repeat until os.clock() - began > 0.4"
        keeping_busy = asyncio.create_task(ask(store, "EVAL", busy, 0))
        await asyncio.sleep(0)  # it is sent first
        with pytest.raises(StorageUnavailable, match="shows in the checkpoint"):
            await hasty.commit(A, at(0), at(1), log_entries(2, first=1))
        await keeping_busy

    run(lose_the_answer())
    assert commit(store, A, 0, 1, log_entries(2, first=1)) in (Outcome.APPLIED, Outcome.ALREADY_THERE)
    assert tail(store, A) == ([b"0", b"1", b"2"], 3)
    run(hasty.close())


@pytest.mark.parametrize("is_cancelled_first", [False, True])
def test_a_store_that_is_closed_while_it_connects_leaves_no_connection_open(
    redis_url: str, is_cancelled_first: bool
) -> None:
    async def close_after(turns: int) -> None:
        closing = new_store(redis_url)
        asking = [asyncio.create_task(closing.checkpoint(A)) for _ in range(2)]
        asking += [asyncio.create_task(closing._server.exchange([("PING",)])) for _ in range(2)]
        for _ in range(turns):
            await asyncio.sleep(0)
        if is_cancelled_first:
            await cancel_all(*asking)
        await closing.close()
        await asyncio.wait(asking)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for turns in range(60):
            asyncio.run(close_after(turns))
            gc.collect()
    assert [str(each.message) for each in found] == []


def test_a_commit_that_cannot_be_serialized_changes_nothing(store: RedisStore) -> None:
    build(store, A, 0)
    with pytest.raises(TypeError):
        commit(store, A, 0, 1, Changes({ROW: b"x", RowKey("t", "s"): object()}))  # type: ignore[dict-item]
    assert (run(store.checkpoint(A)), data_of(store, A)) == (at(0), None)


def test_a_backward_commit_violates_an_invariant_only_if_it_could_be_applied(store: RedisStore) -> None:
    assert commit(store, A, 3, 2) is Outcome.RETIRED
    build(store, A, 9)
    with pytest.raises(InvariantViolation):
        commit(store, A, 3, 2)


def test_each_namespace_is_a_separate_store(store: RedisStore, redis_url: str) -> None:
    other = new_store(redis_url)
    activate(store, A, 3, row(b"1"))
    assert run(other.remember_manifest(b"its own")) == b"its own"
    assert run(other.pointer(0)) == Pointer()
    assert run(keys(other)) == {f"{{{other._namespace}}}:manifest".encode()}
    run(clean(other))


# Garbage collection.


def full(rows: int = 3, logs: int = 3) -> Changes:
    """Rows of two tables, and logs of which each has dropped entries."""
    return Changes(
        {RowKey(table, "s", str(n)): b"1" for n in range(rows) for table in ("t", "u")},
        {LogName("l", "s", str(n)): [b"1", b"2", b"3"] for n in range(logs)},
        {"l": 2},
    )


def test_nothing_is_left_of_an_abandoned_generation(store: RedisStore) -> None:
    build(store, A, 3, full())
    run(store.retire(A))
    run(store.collect_garbage(0))
    assert run(keys(store)) == set()


def test_nothing_is_left_of_replaced_generations(store: RedisStore) -> None:
    activate(store, C, 3)
    of_one = {key.replace(C.id.encode(), A.id.encode()) for key in run(keys(store))}
    for generation in (B, A):
        activate(store, generation, 3, full() if generation is B else None)
    run(store.collect_garbage(0))
    assert run(keys(store)) == of_one


class _Died(Exception):
    pass


def _dying(call: Callable[..., Awaitable[Any]], calls: int) -> Callable[..., Awaitable[Any]]:
    left = count(calls, -1)

    async def call_or_die(*words: Any) -> Any:
        if next(left) <= 0:
            raise _Died
        return await call(*words)

    return call_or_die


def test_a_garbage_collection_that_died_anywhere_is_finished_by_the_next(store: RedisStore) -> None:
    for calls in count():
        gone = Generation(f"gone-{calls}", 0, "code", 0)
        build(store, gone, 3, full())
        run(store.retire(gone))
        dying = new_store(store._server.url, store._namespace)
        dying._server.command = _dying(dying._server.command, calls)  # type: ignore[method-assign]
        try:
            run(dying.collect_garbage(0))
        except _Died:
            assert run(store.checkpoint(gone)) is None
            assert commit(store, gone, 3, 4, full()) is Outcome.RETIRED
            run(store.collect_garbage(0))
            assert run(keys(store)) == set()
        else:
            assert calls > 5
            break
        finally:
            run(dying.close())


def test_two_concurrent_garbage_collections_are_safe(store: RedisStore) -> None:
    async def sweep_twice() -> None:
        await asyncio.gather(store.collect_garbage(0), store.collect_garbage(0))

    activate(store, A, 3, full(logs=1_000))
    activate(store, B, 3, row(b"b"))
    run(sweep_twice())
    assert data_of(store, B) == b"b"
    assert not [key for key in run(keys(store)) if A.id.encode() in key]


def test_garbage_collection_of_a_hundred_thousand_keys_does_not_block_others(own: RedisStore) -> None:
    build(own, A)
    for n in range(25):
        logs = {LogName("l", "s", f"{n}.{m}"): [b"x" * 100] for m in range(4_000)}
        rows = {RowKey("t", "s", f"{n}.{m}"): b"x" * 100 for m in range(4_000)}
        assert commit(own, A, n - 1, n, Changes(rows, logs, {"l": 5})) is Outcome.APPLIED
    assert run(ask(own, "DBSIZE")) > 100_000
    run(own.retire(A))
    run(ask(own, "CONFIG", "SET", "slowlog-log-slower-than", BLOCKED_MS_MAX * 1000))
    run(ask(own, "SLOWLOG", "RESET"))
    run(own.collect_garbage(0))
    assert run(ask(own, "SLOWLOG", "GET", "3")) == []
    assert run(keys(own)) == set()


# Lost data.


def test_a_flushed_redis_is_lost_and_never_empty(own: RedisStore) -> None:
    activate(own, A, 3, row(b"1"))
    run(ask(own, "FLUSHALL"))
    run(ask(own, "SCRIPT", "FLUSH"))
    for look in (own.read(0, [ROW]), own.read(0, [ROW], generation=A), own.scan(A, "t", limit=1)):
        with pytest.raises(Rebuilding):
            run(look)
    assert run(own.checkpoint(A)) is None
    assert commit(own, A, 3, 4, row(b"2")) is Outcome.RETIRED
    assert not run(own.activate(A))
    assert not run(own.retire(A))
    run(own.collect_garbage(0))
    build(own, B, 0, row(b"new"))
    assert (data_of(own, B), run(own.size_bytes()) > 0) == (b"new", True)


def test_in_an_older_snapshot_a_commit_finds_a_mismatch(own_redis: NewRedis) -> None:
    server = own_redis(snapshots=True)
    with one_loop():
        store = new_store(server.url)
        activate(store, A, 3, row(b"older"))
        run(ask(store, "SAVE"))
        assert commit(store, A, 3, 5, row(b"newer")) is Outcome.APPLIED
        server.kill()
        server.start()
        assert commit(store, A, 5, 6, row(b"newest")) is Outcome.MISMATCH
        assert (run(store.checkpoint(A)), data_of(store, A)) == (at(3), b"older")
        run(store.close())


def test_acknowledged_commits_survive_a_kill(own: RedisStore, server: LocalRedis) -> None:
    activate(own, A, 3, Changes({ROW: b"1"}, {LOG: [b"1", b"2"]}, {"l": 1}))
    server.kill()
    with pytest.raises(StorageUnavailable, match="cannot be reached"):
        commit(own, A, 3, 4)
    server.start()
    reached_again(own)
    assert commit(own, A, 3, 4) is Outcome.APPLIED
    assert (data_of(own, A), tail(own, A)) == (b"1", ([b"2"], 2))


# An unsuitable or failing Redis.


def wait_until_it_loads(server: LocalRedis) -> None:
    give_up = time.monotonic() + START_SECONDS
    with closing(redis.Redis.from_url(server.url)) as client:
        while time.monotonic() < give_up:
            with suppress(redis.ConnectionError):
                if client.info("persistence")["loading"]:
                    return
    raise AssertionError("the server has not begun to load its data")


async def patiently(work: Awaitable[Any]) -> Any:
    with patient():
        return await work


def test_questions_are_refused_while_the_server_loads_its_data_and_long_work_waits_for_it(own_redis: NewRedis) -> None:
    server = own_redis(
        snapshots=True,
        settings={
            "key-load-delay": "20000",  # µs
            "loading-process-events-interval-bytes": "1024",
            "rdbcompression": "no",
        },
    )
    values = {f"key-{number}": b"value" * 100 for number in range(100)}
    with one_loop():
        own = new_store(server.url)
        for key, value in values.items():
            run(ask(own, "SET", key, value))
        run(ask(own, "SAVE"))
        server.kill()
        starting = threading.Thread(target=server.start)
        starting.start()
        try:
            wait_until_it_loads(server)
            with pytest.raises(StorageUnavailable, match="loading"):
                run(ask(own, "GET", "key-0"))
            assert run(patiently(ask(own, "MGET", *values))) == list(values.values())
        finally:
            starting.join()
            run(own.close())


def test_a_redis_that_evicts_is_refused(own: RedisStore, server: LocalRedis) -> None:
    activate(own, A, 3)
    run(ask(own, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru"))
    with one_loop():
        late = new_store(server.url)
        for _ in range(2):
            with pytest.raises(StorageError, match="set maxmemory-policy to noeviction") as raised:
                run(late.read(0))
            assert not raised.value.retryable
        run(late.close())


def test_the_server_is_checked_again_after_a_reconnect(own: RedisStore, server: LocalRedis) -> None:
    activate(own, A, 3)
    run(ask(own, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl"))
    assert run(own.checkpoint(A)) == at(3)
    run(ask(own, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"))
    with pytest.raises(StorageError, match="volatile-ttl"):
        run(own.checkpoint(A))


def test_a_redis_without_persistence_is_warned_about_once(
    own_redis: NewRedis, caplog: pytest.LogCaptureFixture
) -> None:
    server = own_redis(snapshots=True)
    with one_loop(), caplog.at_level(logging.WARNING):
        store = new_store(server.url)
        run(store.pointer(0))
        run(ask(store, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"))
        run(store.pointer(0))
        run(store.close())
    assert [record.getMessage().partition("(")[2][:16] for record in caplog.records] == ["appendonly no, s"]


def test_a_redis_with_persistence_causes_no_warning(own: RedisStore, caplog: pytest.LogCaptureFixture) -> None:
    run(own.pointer(0))
    assert caplog.records == []


def test_a_full_redis_leaves_rows_and_checkpoint_unchanged(own: RedisStore) -> None:
    activate(own, A, 0, Changes({ROW: b"before"}, {LOG: [b"1"]}, {"l": 5}))
    run(ask(own, "CONFIG", "SET", "maxmemory", 1))
    with pytest.raises(StorageFull, match="raise its maxmemory"):
        commit(own, A, 0, 1, Changes({ROW: b"after"}, {LOG: [b"2"]}, {"l": 5}))
    assert (run(own.checkpoint(A)), data_of(own, A), tail(own, A)) == (at(0), b"before", ([b"1"], 1))
    run(ask(own, "CONFIG", "SET", "maxmemory", 0))
    assert commit(own, A, 0, 1, row(b"after")) is Outcome.APPLIED


def test_a_replica_is_a_transient_error(own: RedisStore) -> None:
    build(own, A, 0)
    run(ask(own, "REPLICAOF", "127.0.0.1", "1"))
    with pytest.raises(StorageUnavailable, match="replica"):
        commit(own, A, 0, 1)


@pytest.mark.parametrize("password", ["", ":wrong-secret@"])
def test_a_wrong_password_is_a_permanent_error_and_is_not_shown(
    own: RedisStore, server: LocalRedis, password: str
) -> None:
    run(ask(own, "CONFIG", "SET", "requirepass", "right-secret"))
    with one_loop():
        stranger = new_store(server.url.replace("redis://", f"redis://{password}"))
        with pytest.raises(StorageError, match="correct the URL") as raised:
            run(stranger.pointer(0))
        run(stranger.close())
        assert not raised.value.retryable
        assert "secret" not in str(raised.value)
        known = new_store(server.url.replace("redis://", "redis://:right-secret@"))
        assert run(known.pointer(0)) == Pointer()
        run(known.close())


def test_an_error_about_a_missing_right_names_the_right(own: RedisStore, server: LocalRedis) -> None:
    run(ask(own, "ACL", "SETUSER", "reader", "on", ">pass", "~*", "+@all", "-info"))
    with one_loop():
        store = new_store(server.url.replace("redis://", "redis://reader:pass@"))
        with pytest.raises(StorageError, match=r"\+info"):
            run(store.pointer(0))
        run(store.close())


@pytest.mark.parametrize("url", ["http://localhost", "redis://:pa/ss@localhost", "localhost:6379"])
def test_an_invalid_redis_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsError, match="rediss://") as raised:
        RedisStore(url)
    assert "pa" not in str(raised.value).replace("password", "")


@pytest.mark.parametrize("namespace", ["", "a{b}", "a b", "x" * 65])
def test_a_namespace_that_would_break_the_keys_is_refused(namespace: str) -> None:
    with pytest.raises(SettingsError, match="namespace"):
        RedisStore("redis://localhost", namespace=namespace)


# Sizes.


def test_sizes_are_reported_per_table(store: RedisStore) -> None:
    small = {RowKey("small", "s", str(n)): b"x" * 10 for n in range(1_000)}
    large = {RowKey("identity.bucket", "s", str(n)): b"x" * 1_000 for n in range(1_000)}
    logs = {LogName("l", "s", str(n)): [b"x" * 500] * 4 for n in range(100)}
    activate(store, A, 0, Changes({**small, **large}, logs, {"l": 3}))
    sizes = run(store.sizes(0))
    assert sizes.keys() == {"small", "identity.bucket", "l"}
    assert 1_000_000 < sizes["identity.bucket"] < 1_500_000
    assert 10_000 < sizes["small"] < 300_000
    assert 150_000 < sizes["l"] < 300_000
    assert sum(sizes.values()) < run(store.size_bytes()) < sum(sizes.values()) + 10_000


def test_sizes_of_many_tables_are_read_with_few_requests(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """`status` asked for each table and log alone: hundreds of requests, 45 s on a busy machine."""
    rows = {RowKey(f"table-{n}", "s", "k"): b"x" for n in range(20)}
    logs = {LogName(f"log-{n}", "s", "o"): [b"x"] for n in range(5)}
    activate(store, A, 0, Changes(rows, logs, {log.log: 3 for log in logs}))
    requests = []
    original = RedisServer._exchange

    async def counted(server: RedisServer, commands: Any, **options: Any) -> Any:
        requests.append(commands)
        return await original(server, commands, **options)

    monkeypatch.setattr(RedisServer, "_exchange", counted)
    assert len(run(store.sizes(0))) == 25
    assert len(requests) <= 6


# Calls of one turn of the event loop.


async def connections(store: RedisStore) -> int:
    """How many connections the server has ever had."""
    return int((await ask(store, "INFO", "stats"))["total_connections_received"])


def test_calls_of_one_turn_share_a_connection(store: RedisStore) -> None:
    async def used() -> int:
        before = await connections(store)
        await asyncio.gather(*(ask(store, "PING") for _ in range(20)))
        return await connections(store) - before

    assert run(used()) == 0


def test_commits_of_one_turn_each_have_their_own_outcome(store: RedisStore) -> None:
    partitions = [Generation(f"g{n}", n, A.code, 0) for n in range(8)]

    async def outcomes() -> list[Outcome]:
        for generation in partitions[1:]:
            await store.create(generation)
        return await asyncio.gather(*(store.commit(each, at(-1), at(0), Changes()) for each in partitions))

    assert run(outcomes()) == [Outcome.RETIRED] + [Outcome.APPLIED] * 7


def test_an_error_of_one_call_is_not_one_of_others_of_its_turn(store: RedisStore) -> None:
    async def both() -> list[Any]:
        wrong = ask(store, "INCR")  # without a key
        return await asyncio.gather(ask(store, "PING"), wrong, ask(store, "PING"), return_exceptions=True)

    first, failed, last = run(both())
    assert first == last
    assert isinstance(failed, StorageError)


def test_a_caller_that_leaves_does_not_end_the_calls_of_others(store: RedisStore) -> None:
    async def left() -> Any:
        leaving, other = (asyncio.create_task(ask(store, "ECHO", text)) for text in ("a", "b"))
        await asyncio.sleep(0)  # both have made their calls
        leaving.cancel()
        return await other

    assert run(left()) == b"b"


def test_a_store_is_used_again_after_its_program_has_ended_before_a_call_was_sent(store: RedisStore) -> None:
    async def give_up() -> None:
        call = asyncio.create_task(ask(store, "PING"))
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.gather(call, return_exceptions=True)

    async def twice() -> Any:
        await give_up()
        return await ask(store, "ECHO", "again")

    assert run(twice()) == b"again"


def test_an_empty_store_has_size_zero(store: RedisStore) -> None:
    assert (run(store.size_bytes()), run(store.sizes(0))) == (0, {})


# Damage that the contract does not name.


@pytest.mark.parametrize("field", ["active", "active-generation", "building", "building-generation"])
def test_a_damaged_pointer_is_forgotten(store: RedisStore, field: str) -> None:
    activate(store, A, 3)
    build(store, B, 2)
    key = store._partition(0) + "pointer"
    run(ask(store, "HSET", key, field, b"x" + run(ask(store, "HGET", key, field))[1:]))
    assert run(store.pointer(0)) == Pointer()
    assert run(ask(store, "EXISTS", key)) == 0
    assert [run(store.checkpoint(generation)) for generation in (A, B)] == [None, None]
    build(store, C)
    assert run(store.pointer(0)) == Pointer(building=C)


def test_a_checkpoint_that_is_no_number_is_lost_to_writers_and_cutovers(store: RedisStore) -> None:
    activate(store, A, 3)
    build(store, B, 3)
    for generation in (A, B):
        run(ask(store, "SET", store._prefix(generation) + "checkpoint", b"x"))
    assert not run(store.activate(B))
    assert commit(store, B, 3, 4) is Outcome.LOST
    assert run(store.checkpoint(B)) is None


def test_readers_are_told_what_is_damaged_until_the_views_are_built_again(
    store: RedisStore, caplog: pytest.LogCaptureFixture
) -> None:
    activate(store, A, 3, row(b"1"))
    run(ask(store, "HSET", f"{store._prefix(A)}rows:t", pack_key("village", "baker", "k"), b"12345"))
    for _ in range(3):
        with pytest.raises(Rebuilding, match=r"'baker'.* of 't' fails its checksum"):
            run(store.read(0, [ROW]))
    (message,) = [record.getMessage() for record in caplog.records]
    assert "Workers build them again" in message
    activate_after_loss(store)
    assert run(store.read(0, [ROW])).rows == [b"2"]


def activate_after_loss(store: RedisStore) -> None:
    build(store, B, 3, row(b"2"))
    assert run(store.activate(B))
