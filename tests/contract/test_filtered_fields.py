"""Every field that a filter uses has a payload index on a server: one in strict mode refuses other filters."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from qdrant_client import models

from recallog_projections.index.engines.engine import FLOAT_FIELDS, INTEGER_FIELDS, KEYWORD_FIELDS, Filter, Search
from recallog_projections.index.engines.server import ServerEngine
from recallog_projections.index.engines.server_collections import GENERATION
from recallog_schemas.errors import IndexUnavailable
from recallog_testing.contracts.engine import DIMENSION, point, unit
from support import qdrant_stand_in
from support.events import one_loop, run
from support.qdrant_stand_in import StandIn

FIELDS = {*KEYWORD_FIELDS, *INTEGER_FIELDS, *FLOAT_FIELDS, GENERATION}
OPTIONS: Mapping[str, Any] = {
    "agents": ["baker"],
    "kinds": ["agent.spoke"],
    "kinds_except": ["agent.spoke", "agent.thought"],
    "types": ["fact"],
    "tiers": ["working", "long_term"],
    "session": "s-1",
    "since": 1,
    "until": 2,
    "offset_from": 3,
    "offset_until": 3,
    "at_until": 4,
    "importance_min": 0.5,
    "ids": [],
    "only_multilingual": True,
}
"""A value of each option of a filter."""


COLLECTION = "recallog.points.32.turbo8"


@pytest.fixture
def server() -> Iterator[StandIn]:
    strict = models.StrictModeConfig(enabled=True, unindexed_filtering_retrieve=False, unindexed_filtering_update=False)
    with one_loop(), qdrant_stand_in.serve(StandIn(strict=strict)) as stand_in:
        yield stand_in


def fields_of(given: Any) -> Iterator[str]:
    """The fields of all filters in a request, at any depth."""
    if isinstance(given, dict):
        if "key" in given:
            yield given["key"]
        for each in given.values():
            yield from fields_of(each)
    elif isinstance(given, list):
        for each in given:
            yield from fields_of(each)


def filters() -> list[Filter]:
    """One with each option alone, and one with all of them."""
    options = [{name: value} for name, value in OPTIONS.items()]
    return [Filter("village", ["*", "baker"], **each) for each in ({}, *options, OPTIONS)]


async def ask(engine: ServerEngine, collection: str, wanted: Filter) -> None:
    """Every call with a filter."""
    terms = point("village").sparse
    await engine.search(
        collection,
        [
            Search(wanted, 1, dense=unit(0)),
            Search(wanted, 1, sparse=terms, corpus=wanted),
            Search(wanted, 1),
        ],
    )
    await engine.count(collection, wanted)
    await engine.estimate_count(collection, wanted)
    await engine.has_any(collection, wanted)


def test_every_option_of_a_filter_is_tried_here() -> None:
    assert {each.name for each in dataclasses.fields(Filter)} == {"space", "readers", *OPTIONS}


def test_all_fields_that_filters_use_are_indexed_when_a_collection_is_created_and_no_others(server: StandIn) -> None:
    async def work() -> None:
        engine = ServerEngine(server.url, deadline_seconds=60)
        await engine.create("memories", DIMENSION)
        for wanted in filters():
            await ask(engine, "memories", wanted)
        filtered = {field for request in server.requests for field in fields_of(request.body)}
        assert filtered == FIELDS == {*server.indexes[COLLECTION]}
        await engine.close()

    run(work())


@pytest.mark.parametrize("first", ["question", "write"])
def test_a_collection_of_an_older_version_gets_the_missing_indexes_when_it_is_used_first(
    server: StandIn, first: str
) -> None:
    async def work() -> None:
        older = ServerEngine(server.url, deadline_seconds=60)
        await older.create("memories", DIMENSION)
        await older.close()
        indexes = server.indexes[COLLECTION]
        before = dict(indexes)
        del indexes["type"], indexes["until_at"]
        engine = ServerEngine(server.url, deadline_seconds=60)
        if first == "write":
            await engine.upsert("memories", [point("village")])
            assert indexes == before
        for wanted in filters():
            await ask(engine, "memories", wanted)
        assert indexes == before
        await engine.close()

    run(work())


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_a_key_that_may_only_read_answers_what_needs_no_missing_index(server: StandIn) -> None:
    server.key, server.reading_key = "writes", "reads"

    async def work() -> None:
        engine = ServerEngine(f"{server.url}?api_key=writes")
        await engine.create("memories", DIMENSION)
        await engine.upsert("memories", [point("village")])
        await engine.close()
        del server.indexes[COLLECTION]["type"]
        reader = ServerEngine(f"{server.url}?api_key=reads")
        assert await reader.count("memories", Filter("village", ["*"])) == 1
        with pytest.raises(IndexUnavailable, match=r"Index required but not found for .*type"):
            await reader.count("memories", Filter("village", ["*"], types=["fact"]))
        with pytest.raises(IndexUnavailable, match="refuses the API key"):
            await reader.upsert("memories", [point("village")])
        await reader.close()

    run(work())
