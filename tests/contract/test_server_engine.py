"""The engine on a Qdrant server: where points are, strict mode, limits, failures, and errors with remedies.

The server is a stand-in. The contract of engines is in `test_engines.py`, on a real server where there is one.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import AsyncQdrantClient, models

from recallog_projections.index.engines.engine import Filter, Search, Sparse
from recallog_projections.index.engines.server import ServerEngine
from recallog_projections.index.engines.server_collections import CollectionForm, Tenancy, id_after
from recallog_projections.index.engines.server_requests import split_upserts
from recallog_projections.plugins import AdapterSettings, EngineSettings
from recallog_schemas.errors import IndexLost, IndexUnavailable, SettingsError
from recallog_testing.contracts.engine import DIMENSION, everything, ids, pages, point, unit
from support import qdrant_stand_in
from support.events import one_loop, run
from support.qdrant_stand_in import Refused, Request, StandIn

STRICT = models.StrictModeConfig(
    enabled=True,
    max_query_limit=1_000,
    max_timeout=30,
    unindexed_filtering_retrieve=False,
    unindexed_filtering_update=False,
    search_allow_exact=False,
    max_payload_index_count=100,
    filter_max_conditions=30,
    condition_max_size=1_000,
)
"""What a cloud sets by default for new collections, with limits besides."""


@pytest.fixture
def server() -> Iterator[StandIn]:
    with one_loop(), qdrant_stand_in.serve() as stand_in:
        yield stand_in


@pytest.fixture
def engine(server: StandIn) -> Iterator[ServerEngine]:
    engine = ServerEngine(server.url, deadline_seconds=60)
    yield engine
    run(engine.close())


def answer_from(url: str, ask: Callable[[ServerEngine], Awaitable[object]], **options: Any) -> object:
    async def work() -> object:
        engine = ServerEngine(url, **{"deadline_seconds": 60, **options})
        try:
            return await ask(engine)
        finally:
            await engine.close()

    return run(work())


def count_memories(engine: ServerEngine) -> Awaitable[int]:
    return engine.count("memories")


def write(engine: ServerEngine, collection: str, *numbers: int, space: str = "village") -> list[str]:
    """Create a generation and write points, whose ids do not depend on the generation."""
    run(engine.create(collection, DIMENSION))
    written = [point(space, n, id=str(UUID(int=n))) for n in numbers]
    run(engine.upsert(collection, written))
    return ids(written)


# Where points are.


def test_the_generations_of_all_partitions_share_one_collection(engine: ServerEngine, server: StandIn) -> None:
    names = [f"{partition}-{n:016x}" for partition in range(20) for n in range(2)]
    for name in names:
        write(engine, name, 1, 2)
    assert list(server.local.collections) == ["recallog.points.32.turbo8"]
    assert run(engine.collections()) == {*names}
    assert [run(engine.count(name)) for name in names] == [2] * len(names)


def test_points_with_the_same_id_in_two_generations_are_two_points(engine: ServerEngine) -> None:
    (id_,) = write(engine, "0-a", 1)
    write(engine, "0-b", 1)
    run(engine.upsert("0-b", [point("village", 2, id=id_, agent="miller")]))
    assert run(engine.retrieve("0-a", [id_]))[id_].payload["agent"] == "baker"
    assert run(engine.retrieve("0-b", [id_]))[id_].payload["agent"] == "miller"
    run(engine.delete("0-b", [id_]))
    assert ids(pages(engine, "0-a", 10)) == [id_]
    assert run(engine.scroll("0-b", None, 10)) == []


def test_no_request_about_points_can_read_those_of_another_generation(engine: ServerEngine, server: StandIn) -> None:
    mine, other = write(engine, "0-a", 1, 2, 3), write(engine, "0-b", 4, 5, 6)
    wanted = everything("village")
    searches = [
        Search(wanted, 9, dense=unit(4)),
        Search(wanted, 9, sparse=Sparse([4], [1.0]), corpus=wanted),
        Search(wanted, 9, sparse=Sparse([4], [1.0])),
        Search(None, 9, sparse=Sparse([2**32 - 1], [1.0])),
        Search(replace(wanted, ids=other), 9),
        Search(wanted, 9),
    ]
    server.requests.clear()
    found = [sorted(ids(hits)) for hits in run(engine.search("0-a", searches))]
    assert found == [mine, [], [], mine, [], mine]
    assert run(engine.retrieve("0-a", other)) == {}
    assert run(engine.count("0-a")) == run(engine.count("0-a", wanted)) == 3
    for request in server.requests:
        body = str(request.body)
        if request.call.endswith(("/query/batch", "/count", "/scroll")):
            assert "recallog.generation.0-" in request.path
            assert body.count("'key': 'generation'") == _needed_filters(request.body)


def _needed_filters(body: Any) -> int:
    """How many filters a request needs: one for each search, and one for each corpus."""
    searches = body.get("searches")
    if searches is None:
        return 1
    return len(searches) + sum(each["using"] == "terms" for each in searches if each.get("using"))


@given(
    name=st.sampled_from(["0-a", "1-b", "memories", ""]),
    numbers=st.sets(st.integers(0, 2**128 - 1), min_size=1),
    after=st.integers(0, 2**128 - 1),
)
def test_ids_keep_their_order_except_that_they_wrap_around_once(name: str, numbers: set[int], after: int) -> None:
    tenancy = Tenancy("alias", "collection", name)
    written = [str(UUID(int=n)) for n in sorted(numbers)]
    stored = [tenancy.stored_id(each) for each in written]
    assert [tenancy.id_of(each) for each in stored] == written
    before = [each for each in stored if not tenancy.has_wrapped(each)]
    later = [each for each in stored if tenancy.has_wrapped(each)]
    assert [*before, *later] == stored
    assert [sorted(before), sorted(later)] == [before, later]
    follower = id_after(str(UUID(int=after)))
    assert (follower is None) == (after == 2**128 - 1)


@pytest.mark.parametrize("name", ["0-a", "1-b", "2-c"])
def test_a_scroll_passes_the_turn_of_the_ids(engine: ServerEngine, name: str) -> None:
    """Ids around the turn, which is at 2**128 less the shift."""
    run(engine.create(name, DIMENSION))
    turn = 2**128 - Tenancy("", "", name).shift
    written = [point("village", id=str(UUID(int=n))) for n in (0, 1, turn - 1, turn, turn + 1, 2**128 - 1)]
    run(engine.upsert(name, written))
    for limit in (1, 2, 4, 9):
        assert ids(pages(engine, name, limit)) == ids(written)


# Dropping, and other collections.


def test_a_dropped_generation_is_deleted_by_a_filter_and_the_last_one_with_its_collection(
    engine: ServerEngine, server: StandIn
) -> None:
    write(engine, "0-a", 1, 2)
    kept = write(engine, "0-b", 1, 2)
    run(engine.drop("0-a"))
    assert server.called().count("POST /collections/*/points/delete") == 1
    assert run(engine.collections()) == {"0-b"}
    assert server.local.count("recallog.points.32.turbo8").count == 2
    assert ids(pages(engine, "0-b", 10)) == kept
    run(engine.drop("0-b"))
    assert (server.local.collections, server.local.aliases) == ({}, {})


@pytest.mark.parametrize("call", ["/points/delete", "GET /aliases", "/collections/aliases"])
@pytest.mark.parametrize("then", ["drop again", "create another", "drop another"])
def test_an_interrupted_drop_is_completed(engine: ServerEngine, server: StandIn, call: str, then: str) -> None:
    for name in ("0-a", "0-b", "0-c"):
        write(engine, name, 1, 2)
    server.fails(call, 500, "Service internal error: out of luck")
    with pytest.raises(IndexUnavailable, match=r"answers 500: .*out of luck"):
        run(engine.drop("0-a"))
    assert "0-a" in run(engine.collections())  # garbage still, for which an erasure waits
    if then == "drop again" or call != "/points/delete":
        run(engine.drop("0-a"))
    elif then == "create another":
        run(engine.create("0-d", DIMENSION))
    else:
        run(engine.drop("0-b"))
    assert "0-a" not in run(engine.collections())
    assert not [name for name in server.local.aliases if name.endswith(".dropped")]
    points = server.local.scroll("recallog.points.32.turbo8", limit=100)[0]
    assert {str(each.payload and each.payload["generation"]) for each in points} <= {"0-b", "0-c"}


def test_a_generation_is_lost_for_its_readers_as_soon_as_its_points_are_deleted(
    engine: ServerEngine, server: StandIn
) -> None:
    reader = ServerEngine(server.url, deadline_seconds=60)
    write(engine, "0-b", 1)
    write(engine, "0-a", 1)
    assert run(reader.count("0-a")) == 1
    server.fails("/points/delete", 500, "interrupted")
    with pytest.raises(IndexUnavailable):
        run(engine.drop("0-a"))
    for call in (
        lambda: reader.count("0-a"),
        lambda: reader.search("0-a", [Search(everything("village"), 1)]),
        lambda: reader.retrieve("0-a", [str(UUID(int=1))]),
        lambda: reader.scroll("0-a", None, 1),
        lambda: reader.upsert("0-a", [point("village")]),
    ):
        with pytest.raises(IndexLost):
            run(call())
    run(reader.close())


def test_a_generation_whose_collection_is_deleted_before_it_has_its_alias_can_be_created_again(
    engine: ServerEngine, server: StandIn
) -> None:
    server.fails("POST /collections/aliases", 404, "Not found: Collection `recallog.points.32.turbo8` doesn't exist!")
    with pytest.raises(IndexLost):
        run(engine.create("0-a", DIMENSION))
    assert write(engine, "0-a", 1) == ids(pages(engine, "0-a", 9))


def test_two_interrupted_drops_of_the_last_generations_leave_no_collection(
    engine: ServerEngine, server: StandIn
) -> None:
    for name in ("0-a", "0-b", "0-c"):
        write(engine, name, 1)
    for name in ("0-a", "0-b"):
        aliases = server.local.aliases
        aliases[f"recallog.generation.{name}.dropped"] = aliases.pop(f"recallog.generation.{name}")
    run(engine.drop("0-c"))
    assert (server.local.collections, server.local.aliases) == ({}, {})


def test_a_drop_whose_answer_is_lost_is_completed(engine: ServerEngine, server: StandIn) -> None:
    """The call is repeated, and the alias has its new name: as if another process had dropped the generation."""
    write(engine, "0-a", 1)
    kept = write(engine, "0-b", 1)
    server.unanswered.append("/collections/aliases")
    run(engine.drop("0-a"))
    assert server.unanswered == []
    assert ids(pages(engine, "0-b", 9)) == kept
    assert list(server.local.aliases) == ["recallog.generation.0-b"]
    assert server.local.count("recallog.points.32.turbo8").count == 1


def test_collections_of_other_prefixes_are_not_listed(server: StandIn, engine: ServerEngine) -> None:
    async def others() -> None:
        client = AsyncQdrantClient(url=server.url, check_compatibility=False)
        for name in ("recallog", "recallog.other.theirs", "recallog-2.theirs", "theirs"):
            await client.create_collection(name, vectors_config={})
        await client.close()

    run(others())
    write(engine, "mine", 1)
    assert run(engine.collections()) == {"mine"}
    assert answer_from(server.url, lambda other: other.collections(), prefix="recallog-2") == {"theirs"}
    assert answer_from(f"{server.url}?prefix=recallog-2", lambda other: other.collections()) == {"theirs"}


def write_late(server: StandIn, generation: str, *numbers: int) -> None:
    """What the server does with an upsert for which it had found the alias before the generation was dropped."""
    name = "recallog.points.32.turbo8"
    late = [point("village", n, id=str(UUID(int=n))) for n in numbers]
    for part in split_upserts(late, Tenancy("", name, generation)):
        server.write(name, part)


def count_by_generation(server: StandIn) -> Counter[str]:
    """How many points each generation has on the server, also without an alias."""
    points, _ = server.local.scroll("recallog.points.32.turbo8", limit=10_000)
    return Counter(str(each.payload and each.payload["generation"]) for each in points)


@pytest.mark.parametrize(
    "then", ["another process writes", "another process asks and writes", "another generation is created"]
)
def test_points_that_are_written_after_their_generation_was_dropped_do_not_stay(
    strict: StandIn, engine: ServerEngine, then: str
) -> None:
    for name in ("0-a", "0-b", "0-c"):
        write(engine, name, 1, 2)
    run(engine.drop("0-a"))
    run(engine.drop("0-b"))
    write_late(strict, "0-a", *range(150))
    write_late(strict, "0-b", 1)
    kept = ids(pages(engine, "0-c", 10))
    if then == "another generation is created":
        write(engine, "0-d", 1, 2, 3)
        assert count_by_generation(strict) == {"0-c": 2, "0-d": 3}
    else:

        async def write_elsewhere(other: ServerEngine) -> None:
            if then == "another process asks and writes":
                await other.search("0-c", [Search(everything("village"), 9)])
            await other.upsert("0-c", [point("village", 2, id=kept[1])])

        answer_from(strict.url, write_elsewhere)
        assert count_by_generation(strict) == {"0-c": 2}
    assert ids(pages(engine, "0-c", 10)) == kept


def test_a_generation_that_is_created_while_such_points_are_searched_keeps_its_points(
    engine: ServerEngine, server: StandIn
) -> None:
    write(engine, "0-a", 1, 2)
    scroll = next(route for (_, path), route in server.routes.items() if path.endswith("/points/scroll"))
    created = []

    def create_before(request: Request, name: str) -> Any:
        """Another process has created a generation since the aliases were read, and written to it."""
        if not created:
            created.append("0-b")
            server.local.aliases["recallog.generation.0-b"] = "recallog.points.32.turbo8"
            write_late(server, "0-b", 1, 2, 3)
            write_late(server, "0-gone", 4)
        return scroll(request, name)

    server.routes = {key: create_before if route == scroll else route for key, route in server.routes.items()}
    write(engine, "0-c", 1)
    assert created
    assert count_by_generation(server) == {"0-a": 2, "0-b": 3, "0-c": 1}


# A collection for each generation, as earlier versions had them.


def test_a_generation_with_a_collection_of_its_own_is_served_there_until_it_is_dropped(
    server: StandIn, engine: ServerEngine
) -> None:
    older = write(engine, "0-old", 1, 2, 3)
    run(engine.close())
    server.separate("0-old")
    server.strict = STRICT
    engine = ServerEngine(server.url, deadline_seconds=60)
    assert run(engine.collections()) == {"0-old"}
    wanted = everything("village")
    searches = [Search(wanted, 9, dense=unit(1)), Search(wanted, 9, sparse=Sparse([2], [1.0]), corpus=wanted)]
    by_vector, by_term = run(engine.search("0-old", searches))
    assert (sorted(ids(by_vector)), ids(by_term)) == (older, older[1:2])
    assert ids(pages(engine, "0-old", 2)) == older
    run(engine.upsert("0-old", [point("village", 4, id=str(UUID(int=4)))]))
    run(engine.delete("0-old", older[:1]))
    assert ids(pages(engine, "0-old", 9)) == [*older[1:], str(UUID(int=4))]
    write(engine, "0-next", 1, 2)
    run(engine.drop("0-old"))
    assert list(server.local.collections) == ["recallog.points.32.turbo8"]
    assert run(engine.collections()) == {"0-next"}
    run(engine.close())


# Settings.


def test_settings_become_parameters_of_the_collection_and_part_of_its_name(server: StandIn) -> None:
    settings = EngineSettings(replication_factor=2, shard_number=6, on_disk=True, quantization="scalar")
    answer_from(server.url, lambda engine: engine.create("0-a", DIMENSION, multilingual=True), settings=settings)
    [(name, made)] = server.created.items()
    assert name == "recallog.points.32.multilingual.float16.scalar.disk.r2.s6"
    assert (made.replication_factor, made.shard_number) == (2, 6)
    assert isinstance(made.vectors, dict)
    assert made.vectors.keys() == {"dense", "multilingual"}
    for vectors in made.vectors.values():
        assert vectors.on_disk
        assert vectors.hnsw_config is not None
        assert vectors.hnsw_config.on_disk
        assert isinstance(vectors.quantization_config, models.ScalarQuantization)
        assert vectors.quantization_config.scalar.always_ram
    assert made.sparse_vectors is not None
    assert made.sparse_vectors["terms"].index is not None
    assert made.sparse_vectors["terms"].index.on_disk


def test_without_settings_the_server_decides(server: StandIn, engine: ServerEngine) -> None:
    run(engine.create("0-a", DIMENSION))
    [made] = server.created.values()
    assert made.model_dump(exclude_none=True).keys() == {"vectors", "sparse_vectors"}
    tenants = {field for field, index in server.indexes["recallog.points.32.turbo8"].items() if _is_tenant(index)}
    assert tenants == {"space", "generation"}


def _is_tenant(index: Any) -> bool:
    return bool(getattr(index, "is_tenant", False))


def test_other_settings_give_another_collection_beside_the_first(server: StandIn, engine: ServerEngine) -> None:
    kept = write(engine, "0-a", 1, 2)
    other = ServerEngine(server.url, deadline_seconds=60, settings=EngineSettings(on_disk=True))
    write(other, "0-b", 1)
    assert len(server.local.collections) == 2
    assert ids(pages(other, "0-a", 9)) == kept
    run(other.drop("0-a"))
    assert list(server.local.collections) == ["recallog.points.32.turbo8.disk"]
    run(other.close())


@pytest.mark.parametrize(
    ("version", "quantization", "datatype"),
    [((1, 19), "none", "float16"), ((1, 20), "none", "turbo8"), ((1, 20), "scalar", "float16")],
)
def test_vectors_take_the_fewest_bits_that_the_server_can_store(
    version: tuple[int, int], quantization: Any, datatype: str
) -> None:
    form = CollectionForm(DIMENSION, False, version, EngineSettings(quantization=quantization))
    assert form.parameters()["vectors_config"]["dense"].datatype == datatype


def test_the_settings_of_a_memory_reach_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    from recallog.composition import adapter_settings
    from recallog.settings import Settings

    assert adapter_settings(Settings()) == AdapterSettings()
    monkeypatch.setenv("RECALLOG_INDEX_REPLICATION_FACTOR", "3")
    monkeypatch.setenv("RECALLOG_INDEX_SHARD_NUMBER", "12")
    monkeypatch.setenv("RECALLOG_INDEX_ON_DISK", "true")
    monkeypatch.setenv("RECALLOG_INDEX_QUANTIZATION", "scalar")
    monkeypatch.setenv("RECALLOG_INDEX_GRPC_PORT", "6334")
    assert adapter_settings(Settings()).engine == EngineSettings(3, 12, True, "scalar", 6334)
    monkeypatch.setenv("RECALLOG_INDEX_QUANTIZATION", "binary")
    with pytest.raises(SettingsError, match="RECALLOG_INDEX_QUANTIZATION"):
        Settings.valid()


# gRPC.


def test_points_are_written_by_grpc_and_read_by_http(server: StandIn) -> None:
    with_grpc = ServerEngine(server.url, deadline_seconds=60, settings=EngineSettings(grpc_port=server.grpc_port))
    written = point("village", 3, passages=2, text="Die Mühle 🔥", importance=0.25, turn=2**53)
    run(with_grpc.create("0-a", DIMENSION))
    run(with_grpc.upsert("0-a", [written]))
    assert [request.collection_name for request in server.by_grpc] == ["recallog.generation.0-a"]
    assert "PUT /collections/*/points" not in server.called()
    found = run(with_grpc.retrieve("0-a", [written.id], vectors=True))[written.id]
    assert found.payload == written.payload
    assert found.dense == pytest.approx(written.dense, abs=1e-2)
    wanted = everything("village")
    (hits,) = run(with_grpc.search("0-a", [Search(wanted, 1, sparse=Sparse([3], [1.0]), corpus=wanted)]))
    assert ids(hits) == [written.id]
    run(with_grpc.close())


@pytest.mark.parametrize(
    ("status", "text", "message", "lost"),
    [
        (404, "Not found: Collection `x` doesn't exist!", "no longer", True),
        (401, "Must provide an API key", "refuses the API key", False),
        (403, "Forbidden", "refuses the API key", False),
        (500, "out of luck", "answers INTERNAL: out of luck", False),
    ],
)
def test_errors_of_grpc_are_those_of_http(server: StandIn, status: int, text: str, message: str, lost: bool) -> None:
    with_grpc = ServerEngine(server.url, deadline_seconds=60, settings=EngineSettings(grpc_port=server.grpc_port))
    run(with_grpc.create("0-a", DIMENSION))
    server.fails("gRPC Upsert", status, text)
    with pytest.raises(IndexUnavailable, match=message) as raised:
        run(with_grpc.upsert("0-a", [point("village")]))
    assert isinstance(raised.value, IndexLost) == lost
    run(with_grpc.close())


def test_a_broken_call_of_grpc_is_repeated_once(server: StandIn) -> None:
    with_grpc = ServerEngine(server.url, deadline_seconds=60, settings=EngineSettings(grpc_port=server.grpc_port))
    run(with_grpc.create("0-a", DIMENSION))
    server.fails("gRPC Upsert", 503, "broken")
    run(with_grpc.upsert("0-a", [point("village")]))
    assert run(with_grpc.count("0-a")) == 1
    for _ in range(2):
        server.fails("gRPC Upsert", 503, "broken")
    with pytest.raises(IndexUnavailable, match=r"cannot be reached \(broken\)"):
        run(with_grpc.upsert("0-a", [point("village")]))
    run(with_grpc.close())


# Strict mode and limits.


@pytest.fixture
def strict(server: StandIn) -> StandIn:
    server.strict = STRICT
    return server


def test_a_server_in_strict_mode_serves_all_calls_of_questions(strict: StandIn, engine: ServerEngine) -> None:
    mine = write(engine, "0-a", *range(1, 6))
    write(engine, "0-b", 1)
    wanted = replace(everything("village", "baker"), agents=["baker"], kinds=["agent.spoke"], offset_until=9, since=0)
    searches = [Search(wanted, 1_000, dense=unit(1)), Search(wanted, 9, sparse=Sparse([1], [1.0]), corpus=wanted)]
    assert [len(hits) for hits in run(engine.search("0-a", searches))] == [5, 1]
    assert run(engine.has_any("0-a", wanted))
    assert not run(engine.has_any("0-a", everything("castle")))
    assert run(engine.estimate_count("0-a", wanted)) == 4
    assert run(engine.retrieve("0-a", mine)).keys() == {*mine}
    assert ids(pages(engine, "0-a", 2)) == mine
    run(engine.delete("0-a", mine[:1]))
    run(engine.drop("0-a"))


def test_questions_ask_for_no_exact_count(server: StandIn, engine: ServerEngine) -> None:
    write(engine, "0-a", 1, 2, 3, 4)
    wanted = everything("village")
    run(engine.estimate_count("0-a", wanted))
    run(engine.has_any("0-a", wanted))
    counts = [request.body["exact"] for request in server.requests if request.call.endswith("/count")]
    assert counts == [False]


@pytest.mark.parametrize(
    ("limits", "ask", "message"),
    [
        ({"max_query_limit": 5}, lambda e: e.search("0-a", [Search(everything("village"), 9)]), "for .{1,2}limit"),
        ({"search_allow_exact": False}, lambda e: e.count("0-a"), "Exact search disabled"),
        ({"upsert_max_batchsize": 1}, lambda e: e.upsert("0-a", [point("a"), point("b")]), "upsert_max_batchsize"),
        (
            {"condition_max_size": 3},
            lambda e: e.search(
                "0-a", [Search(replace(everything("village"), ids=[str(UUID(int=n)) for n in range(9)]), 1)]
            ),
            "condition_max_size",
        ),
    ],
    ids=["limit", "exact", "batch", "condition"],
)
def test_a_refusal_of_strict_mode_says_what_the_server_says(
    server: StandIn,
    engine: ServerEngine,
    limits: dict[str, Any],
    ask: Callable[[ServerEngine], Awaitable[object]],
    message: str,
) -> None:
    write(engine, "0-a", 1)
    server.strict = models.StrictModeConfig(enabled=True, **limits)
    with pytest.raises(IndexUnavailable, match=f"answers 400: .*{message}"):
        run(ask(engine))  # type: ignore[arg-type]


def test_a_rate_limit_is_unavailability_that_a_retry_can_help(server: StandIn, engine: ServerEngine) -> None:
    write(engine, "0-a", 1)
    server.strict = models.StrictModeConfig(enabled=True, read_rate_limit=1)
    search = [Search(everything("village"), 1)]
    assert run(engine.search("0-a", search)) != [[]]
    with pytest.raises(IndexUnavailable, match=r"Read rate limit exceeded.*try again later") as raised:
        run(engine.search("0-a", search))
    assert raised.value.retryable


def test_a_collection_that_another_process_has_created_meanwhile_is_used(server: StandIn) -> None:
    """Both have seen that it does not exist: one gets the answer 409."""

    async def both() -> None:
        engines = [ServerEngine(server.url, deadline_seconds=60) for _ in range(4)]
        await asyncio.gather(*(engine.create(f"0-{n}", DIMENSION) for n, engine in enumerate(engines)))
        assert await engines[0].collections() == {f"0-{n}" for n in range(4)}
        for engine in engines:
            await engine.close()

    run(both())


# Failures of server and network.


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6333",
        "grpc://localhost",
        "http://",
        "http://localhost:port",
        "http://user:secret@localhost",
        "http://localhost?key=secret",
        "http://localhost?secret",
    ],
)
def test_an_invalid_address_is_refused_without_showing_a_key(url: str) -> None:
    with pytest.raises(SettingsError, match="https://host:6333") as raised:
        ServerEngine(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("prefix", ["", "a/b", "x" * 65])
def test_an_invalid_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(SettingsError, match="prefix"):
        ServerEngine("http://localhost", prefix)


@pytest.mark.parametrize("version", ["1.18.4", "0.9", "dev"])
def test_a_server_that_weighs_words_by_other_tenants_is_refused(server: StandIn, version: str) -> None:
    server.version = version
    for ask in (
        lambda engine: engine.create("memories", DIMENSION),
        lambda engine: engine.upsert("memories", [point("village")]),
        lambda engine: engine.search("memories", [Search(everything("village"), 1, dense=unit(0))]),
    ):
        with pytest.raises(SettingsError, match=rf"{server.url} is {version}; the semantic index needs 1\.19 or later"):
            answer_from(server.url, ask)


def test_a_collection_that_the_server_does_not_have_is_lost(server: StandIn) -> None:
    with pytest.raises(IndexLost):
        answer_from(server.url, count_memories)


def test_a_path_without_qdrant_is_not_taken_for_a_lost_collection(server: StandIn) -> None:
    with pytest.raises(IndexUnavailable, match="answers 404") as raised:
        answer_from(f"{server.url}/elsewhere/", count_memories)
    assert not isinstance(raised.value, IndexLost)


@pytest.mark.parametrize("call", ["GET /aliases", "/points/count"])
def test_a_broken_connection_is_reestablished(server: StandIn, engine: ServerEngine, call: str) -> None:
    write(engine, "memories", *range(7))
    server.breaks(call)
    assert answer_from(server.url, count_memories) == 7
    assert not server.failures


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
@pytest.mark.parametrize("status", [200, 400, 403, 413, 429, 500])
def test_the_api_key_is_sent_and_never_shown(server: StandIn, status: int) -> None:
    server.key = "s3cret/+key"
    server.fails("GET /aliases", status, "nonsense about s3cret/+key")
    with pytest.raises(IndexUnavailable) as raised:
        answer_from(f"{server.url}?api_key=s3cret%2F%2Bkey", count_memories)
    assert {request.key for request in server.requests} == {"s3cret/+key"}
    assert not server.failures
    assert "s3cret" not in str(raised.value)
    assert server.url in str(raised.value)


def test_a_key_is_asked_for(server: StandIn) -> None:
    server.key = "secret"
    with pytest.raises(IndexUnavailable, match=r"refuses the API key, or needs one: give it as \?api_key="):
        answer_from(server.url, count_memories)


def test_the_index_is_unavailable_without_a_server() -> None:
    with pytest.raises(IndexUnavailable, match=r"http://127\.0\.0\.1:1/path cannot be reached .*: check that it runs"):
        answer_from("http://127.0.0.1:1/path", count_memories)


def test_a_question_waits_for_its_deadline_and_not_longer(server: StandIn, engine: ServerEngine) -> None:
    write(engine, "memories", 1)
    server.answering.clear()
    with pytest.raises(IndexUnavailable, match=r"has said nothing for 0\.2 s"):
        answer_from(
            server.url,
            lambda other: other.search("memories", [Search(everything("village"), 1)]),
            deadline_seconds=0.2,
        )


# The stand-in itself: what it does not know, it refuses.


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/collections/c", {"vectors": {}, "vector": {}}, 400),
        ("POST", "/collections/memories/points/count", {"exact": True, "filters": {}}, 400),
        ("POST", "/collections/memories/points/count", {"filter": {"must": [{"key": "x", "geo": {}}]}}, 400),
        ("POST", "/collections/memories/points/count", {"filter": {"must": [{"is_empty": {"key": "x"}}]}}, 400),
        ("POST", "/collections/memories/points/count?consistent=1", {"exact": True}, 400),
        ("POST", "/collections/memories/points/search", {}, 404),
        ("POST", "/collections/unknown/points/count", {"exact": True}, 404),
        ("PUT", "/collections/memories", {"vectors": {}}, 409),
    ],
)
def test_the_stand_in_refuses_what_it_does_not_know(
    server: StandIn, method: str, path: str, body: Any, status: int
) -> None:
    server.local.create_collection("memories", {})
    server.indexes["memories"] = {}
    answer = httpx.request(method, server.url + path, json=body)
    assert answer.status_code == status
    assert answer.json()["status"]["error"]


@pytest.mark.parametrize("wanted", [Filter("village", ["*"]), Filter("village", ["*"], since=1)])
def test_the_stand_in_refuses_a_filter_on_a_field_without_an_index_of_its_type(
    strict: StandIn, engine: ServerEngine, wanted: Filter
) -> None:
    write(engine, "0-a", 1)
    indexes = strict.indexes["recallog.points.32.turbo8"]
    indexes["at"] = indexes["readers"] = models.FloatIndexParams(type=models.FloatIndexType.FLOAT)
    del indexes["space"]
    with pytest.raises(IndexUnavailable, match="Index required but not found"):
        run(engine.search("0-a", [Search(wanted, 1)]))
    with pytest.raises(Refused):
        strict._check_filter("recallog.points.32.turbo8", models.Filter(must=[_on_space()]), False)


def _on_space() -> models.FieldCondition:
    return models.FieldCondition(key="space", match=models.MatchValue(value="village"))
