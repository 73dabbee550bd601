"""Every field that a filter uses has a payload index on a server: one in strict mode refuses other filters."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient
from qdrant_client import models as qdrant
from qdrant_client.http.exceptions import UnexpectedResponse

from recallog_projections.index.engines.engine import FLOAT_FIELDS, INTEGER_FIELDS, KEYWORD_FIELDS, Filter, Search
from recallog_projections.index.engines.server import ServerEngine
from recallog_schemas.errors import IndexUnavailable
from recallog_testing.contracts.engine import DIMENSION, point, unit
from support.events import run

pytestmark = pytest.mark.filterwarnings("ignore:Local mode performs exact")

FIELDS = {*KEYWORD_FIELDS, *INTEGER_FIELDS, *FLOAT_FIELDS}
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


class StrictClient(AsyncQdrantClient):
    """The client's local mode, with payload indexes, which refuses filters as a server in strict mode does."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.indexes: dict[str, dict[str, qdrant.PayloadIndexInfo]] = {}
        """By collection and field."""
        self.filtered: set[str] = set()
        """The fields of all filters so far."""
        self.may_index = True

    async def get_collection(self, name: str, **more: Any) -> qdrant.CollectionInfo:
        found = await super().get_collection(name, **more)
        return found.model_copy(update={"payload_schema": self.indexes.get(name, {})})

    async def create_payload_index(  # type: ignore[override]
        self, name: str, field: str, schema: Any, *, wait: bool
    ) -> qdrant.UpdateResult:
        if not self.may_index:
            raise _refused(403, "Forbidden: Global write access is required")
        known = qdrant.PayloadIndexInfo(data_type=qdrant.PayloadSchemaType(schema.type.value), points=0)
        self.indexes.setdefault(name, {})[field] = known
        return qdrant.UpdateResult(status=qdrant.UpdateStatus.COMPLETED)

    async def query_batch_points(  # type: ignore[override]
        self, name: str, requests: list[qdrant.QueryRequest]
    ) -> list[qdrant.QueryResponse]:
        for request in requests:
            self._check(name, request.filter)
            if request.params is not None and request.params.idf is not None:
                self._check(name, request.params.idf.corpus)
        return await super().query_batch_points(name, requests)

    async def count(  # type: ignore[override]
        self, name: str, wanted: qdrant.Filter | None, *, exact: bool
    ) -> qdrant.CountResult:
        self._check(name, wanted)
        return await super().count(name, wanted, exact=exact)

    def _check(self, name: str, given: qdrant.Filter | None) -> None:
        for field in fields_of(given):
            self.filtered.add(field)
            if field not in self.indexes.get(name, {}):
                raise _refused(400, f"Bad request: Index required but not found for {field}")


def _refused(status: int, why: str) -> UnexpectedResponse:
    return UnexpectedResponse(status, why, why.encode(), None)  # type: ignore[arg-type]


def fields_of(given: Any) -> Iterator[str]:
    """The fields of a filter, at any depth."""
    if isinstance(given, qdrant.FieldCondition):
        yield given.key
    elif isinstance(given, qdrant.Filter):
        for part in (given.must, given.must_not, given.should, given.min_should):
            for each in part if isinstance(part, list) else [part]:
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


def test_every_option_of_a_filter_is_tried_here() -> None:
    assert {each.name for each in dataclasses.fields(Filter)} == {"space", "readers", *OPTIONS}


def test_all_fields_that_filters_use_are_indexed_when_a_collection_is_created_and_no_others() -> None:
    async def work() -> None:
        client = StrictClient()
        engine = ServerEngine("local mode", client=client)
        await engine.create("memories", DIMENSION)
        for wanted in filters():
            await ask(engine, "memories", wanted)
        assert client.filtered == FIELDS == {*client.indexes["recallog.memories"]}
        await engine.close()

    run(work())


@pytest.mark.parametrize("first", ["question", "write"])
def test_a_collection_of_an_older_version_gets_the_missing_indexes_when_it_is_used_first(first: str) -> None:
    async def work() -> None:
        client = StrictClient()
        older = ServerEngine("local mode", client=client)
        await older.create("memories", DIMENSION)
        indexes = client.indexes["recallog.memories"]
        before = dict(indexes)
        del indexes["type"], indexes["until_at"]
        engine = ServerEngine("local mode", client=client)
        if first == "write":
            await engine.upsert("memories", [point("village")])
            assert indexes == before
        for wanted in filters():
            await ask(engine, "memories", wanted)
        assert indexes == before
        await client.close()

    run(work())


def test_a_key_that_may_only_read_answers_what_needs_no_missing_index() -> None:
    async def work() -> None:
        client = StrictClient()
        engine = ServerEngine("local mode", client=client)
        await engine.create("memories", DIMENSION)
        await engine.upsert("memories", [point("village")])
        del client.indexes["recallog.memories"]["type"]
        client.may_index = False
        reader = ServerEngine("local mode", client=client)
        assert await reader.count("memories", Filter("village", ["*"])) == 1
        with pytest.raises(IndexUnavailable, match="Index required but not found for type"):
            await reader.count("memories", Filter("village", ["*"], types=["fact"]))
        await client.close()

    run(work())
