"""The engine on a Qdrant server, for the cluster form: version 1.19 or later, which computes idf per space."""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

from qdrant_client import AsyncQdrantClient
from qdrant_client import models as qdrant

from recallog_projections.index.engines.conditions import check_name, finds_nothing, hit, make_point
from recallog_projections.index.engines.engine import Engine, Filter, Hit, Point, Search, StoredPoint
from recallog_projections.index.engines.folder import NAME
from recallog_projections.index.engines.server_collections import (
    GENERATION,
    CollectionForm,
    FieldIndex,
    Tenancy,
    id_after,
    payload_indexes,
)
from recallog_projections.index.engines.server_connection import WRITE_SECONDS, QdrantConnection
from recallog_projections.index.engines.server_requests import make_filter, make_request, split_upserts
from recallog_projections.plugins import AdapterSettings, EngineSettings
from recallog_schemas import limits
from recallog_schemas.errors import IndexLost, IndexUnavailable, SettingsError

DELETED_POINTS = 10_000
"""Points of one request that deletes."""

_FIRST_ID = str(UUID(int=0))
_DEFAULTS = EngineSettings()

_ORPHANED_POINTS = 1_000
"""Points that are read to find generations without an alias. An upsert that arrives late has fewer."""

_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,64}")
_DROPPED = ".dropped"
"""The end of the alias of a generation whose points are being deleted."""


class ServerEngine(Engine):
    """The collections `prefix`.* of the server at `url`, as in `QdrantConnection`.

    A collection of the port is a generation; see `server_collections` for where its points are. The option of the URL
    gives the `prefix` unless the argument does; it is "recallog" by default. With `client`, it uses and finally closes
    that client, and `url` only appears in messages. Methods raise `IndexUnavailable` if the server cannot be reached,
    does not answer in time, or refuses, and `SettingsError` if it is older than 1.19. All of them can be repeated after
    a failure. The constructor raises `SettingsError` if `url` or `prefix` is invalid.

    Calls of a question wait `deadline_seconds` for a server that does not answer, and fail at once for some seconds
    after that; those of a builder wait `WRITE_SECONDS`.
    """

    def __init__(
        self,
        url: str,
        prefix: str | None = None,
        *,
        client: AsyncQdrantClient | None = None,
        deadline_seconds: float = limits.DEADLINE_SECONDS,
        settings: EngineSettings = _DEFAULTS,
    ) -> None:
        self._qdrant = QdrantConnection(url, client, deadline_seconds=deadline_seconds, grpc_port=settings.grpc_port)
        prefix = self._qdrant.prefix if prefix is None else prefix
        if not _PREFIX.fullmatch(prefix):
            raise SettingsError(f"the prefix {prefix!r} is not 1 to 64 letters, digits and . _ -")
        self._prefix = f"{prefix}."
        self._aliases_prefix = f"{prefix}.{GENERATION}."
        self._settings = settings
        self._client = self._qdrant.client
        self._tenancies: dict[str, Tenancy] = {}
        self._complete: set[str] = set()
        """The collections whose missing payload indexes this process has created or requested."""
        self._without_orphans: set[str] = set()
        """The collections in which this process has looked for points of dropped generations."""

    async def create(self, collection: str, dimension: int, *, multilingual: bool = False) -> None:
        """As in `Engine`. A second call completes an interrupted one."""
        check_name(collection)
        version = await self._qdrant.check_version()
        aliases = await self._find_aliases()
        await self._finish_drops(aliases)
        alias, own = self._alias_of(collection), self._prefix + collection
        if alias in aliases or await self._qdrant.write(lambda: self._client.collection_exists(own)):
            return
        form = CollectionForm(dimension, multilingual, version, self._settings)
        name = self._prefix + form.name
        make = qdrant.CreateAlias(collection_name=name, alias_name=alias)
        await self._create_collection(name, form)
        # Raises `IndexLost` if another process has just deleted the collection because it had no generation.
        await self._change_aliases(qdrant.CreateAliasOperation(create_alias=make))
        self._tenancies[collection] = Tenancy(alias, name, collection)
        await self._delete_orphans(name)

    async def _create_collection(self, name: str, form: CollectionForm) -> None:
        if not await self._qdrant.write(lambda: self._client.collection_exists(name)):
            try:
                await self._qdrant.write(lambda: self._client.create_collection(name, **form.parameters()))
            except IndexUnavailable:
                # Another process may have created it meanwhile.
                if not await self._qdrant.write(lambda: self._client.collection_exists(name)):
                    raise
        await self._create_missing_indexes(name)

    async def _create_missing_indexes(self, name: str) -> None:
        """Index the fields of filters. A server in strict mode refuses a filter on a field without an index."""
        for field, schema in await self._missing_indexes(name, WRITE_SECONDS):
            await self._qdrant.write(partial(self._client.create_payload_index, name, field, schema, wait=True))
        self._complete.add(name)

    async def _missing_indexes(self, name: str, seconds: float | None = None) -> list[tuple[str, FieldIndex]]:
        indexed = (await self._qdrant.run(lambda: self._client.get_collection(name), seconds)).payload_schema
        return [(field, schema) for field, schema in payload_indexes().items() if field not in indexed]

    async def _request_missing_indexes(self, name: str) -> None:
        """The same for the first question to a collection, which an older version may have made.

        It does not wait for the server to build them. A key that may only read cannot request them; the process that
        writes the collection does.
        """
        if name in self._complete:
            return
        missing = await self._missing_indexes(name)
        self._complete.add(name)
        with suppress(IndexUnavailable):
            for field, schema in missing:
                await self._qdrant.run(partial(self._client.create_payload_index, name, field, schema, wait=False))

    async def collections(self) -> set[str]:
        aliases = await self._find_aliases()
        existing = [each.name for each in (await self._qdrant.run(self._client.get_collections)).collections]
        # An interrupted drop is listed until it is complete: its points are still there.
        names = {self._generation_of(each) for each in aliases}
        names |= {name.removeprefix(self._prefix) for name in existing if name.startswith(self._prefix)}
        return {name for name in names if NAME.fullmatch(name)}

    async def drop(self, collection: str) -> None:
        check_name(collection)
        aliases = await self._find_aliases()
        await self._finish_drops(aliases)
        alias, own = self._alias_of(collection), self._prefix + collection
        if (name := aliases.get(alias)) is not None:
            rename = qdrant.RenameAlias(old_alias_name=alias, new_alias_name=alias + _DROPPED)
            with suppress(IndexLost):  # another process, or the first attempt of a repeated call, has renamed it
                await self._change_aliases(qdrant.RenameAliasOperation(rename_alias=rename))
            await self._finish_drops({**await self._find_aliases(), alias + _DROPPED: name})
        elif await self._qdrant.write(lambda: self._client.collection_exists(own)):
            await self._qdrant.write(lambda: self._client.delete_collection(own))
        self._tenancies.pop(collection, None)

    async def _finish_drops(self, aliases: Mapping[str, str]) -> None:
        """Delete the points of dropped generations, also if that was interrupted before, and collections that have no
        other generation."""
        for alias, name in aliases.items():
            if not alias.endswith(_DROPPED):
                continue
            if any(target == name and not other.endswith(_DROPPED) for other, target in aliases.items()):
                with suppress(IndexLost):  # another process has deleted the alias
                    # The server deletes them after it has answered, and before it applies any later write.
                    await self._delete_all(Tenancy(alias, name, self._generation_of(alias)), wait=False)
                delete = qdrant.DeleteAlias(alias_name=alias)
                await self._change_aliases(qdrant.DeleteAliasOperation(delete_alias=delete))
            else:
                self._complete.discard(name)
                await self._qdrant.write(partial(self._client.delete_collection, name))

    async def _delete_orphans(self, name: str) -> None:
        """Delete the points of a shared collection whose generations have no alias, which nobody can read.

        The server may have found the alias for an upsert before the alias was renamed, and write the points after it
        has deleted those of the generation.
        """
        known = {self._generation_of(each) for each in await self._find_aliases()}
        orphaned = qdrant.FieldCondition(key=GENERATION, match=qdrant.MatchExcept(**{"except": sorted(known)}))
        scroll = partial(self._client.scroll, name, qdrant.Filter(must=[orphaned]), limit=_ORPHANED_POINTS)
        records, _ = await self._qdrant.write(partial(scroll, with_payload=[GENERATION]))
        # A generation gets its alias before its points, and its name is never used again.
        known |= {self._generation_of(each) for each in await self._find_aliases()}
        for generation in {record.payload[GENERATION] for record in records if record.payload} - known:
            await self._delete_all(Tenancy(name, name, generation), wait=True)
        self._without_orphans.add(name)

    async def _delete_all(self, tenancy: Tenancy, *, wait: bool) -> None:
        selected = qdrant.FilterSelector(filter=make_filter(None, tenancy))
        await self._qdrant.write(partial(self._client.delete, tenancy.target, selected, wait=wait))

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        tenancy = await self._find_tenancy(collection)
        if tenancy.collection not in self._complete:
            await self._create_missing_indexes(tenancy.collection)
        if tenancy.name and tenancy.collection not in self._without_orphans:
            await self._delete_orphans(tenancy.collection)
        if not points:
            await self._require(tenancy)
        for part in split_upserts(points, tenancy):
            await self._qdrant.write(partial(self._qdrant.writer.upsert, tenancy.target, part, wait=True))

    async def delete(self, collection: str, ids: Collection[str]) -> None:
        tenancy = await self._find_tenancy(collection)
        wanted = [tenancy.stored_id(each) for each in dict.fromkeys(ids)]
        if not wanted:
            await self._require(tenancy)
        for start in range(0, len(wanted), DELETED_POINTS):
            selected = qdrant.PointIdsList(points=list(wanted[start : start + DELETED_POINTS]))
            await self._qdrant.write(partial(self._client.delete, tenancy.target, selected, wait=True))

    async def search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        tenancy = await self._find_tenancy(collection)
        await self._request_missing_indexes(tenancy.collection)
        numbers = [number for number, search in enumerate(searches) if not finds_nothing(search)]
        requests = [make_request(searches[number], tenancy) for number in numbers]
        found: list[list[Hit]] = [[] for _ in searches]
        if not requests:
            await self._require(tenancy)
            return found
        answers = await self._qdrant.run(lambda: self._client.query_batch_points(tenancy.target, requests))
        for number, answer in zip(numbers, answers, strict=True):
            found[number] = [hit(_as_written(point, tenancy)) for point in answer.points]
        return found

    async def retrieve(
        self, collection: str, ids: Sequence[str], *, payload: Collection[str] | None = None, vectors: bool = False
    ) -> dict[str, StoredPoint]:
        tenancy = await self._find_tenancy(collection)
        with_payload: bool | list[str] = True if payload is None else list(payload) or False
        wanted = [tenancy.stored_id(each) for each in dict.fromkeys(ids)]
        run = self._qdrant.write if vectors else self._qdrant.run  # only builders need the vectors
        records = await run(lambda: self._client.retrieve(tenancy.target, wanted, with_payload, vectors))
        found = (make_point(_as_written(record, tenancy)) for record in records)
        return {point.id: point for point in found}

    async def scroll(
        self, collection: str, after: str | None, limit: int, *, vectors: bool = False
    ) -> list[StoredPoint]:
        tenancy = await self._find_tenancy(collection)
        first = _FIRST_ID if after is None else id_after(after)
        if first is None:
            return []
        start = tenancy.stored_id(first)
        records = []
        if not tenancy.has_wrapped(start):
            records = await self._scroll(tenancy, start, limit, vectors=vectors)
            start = _FIRST_ID
        if len(records) < limit and tenancy.has_wrapped(start):
            more = await self._scroll(tenancy, start, limit - len(records), vectors=vectors)
            records += [record for record in more if tenancy.has_wrapped(str(record.id))]
        return [make_point(_as_written(record, tenancy)) for record in records]

    async def _scroll(self, tenancy: Tenancy, start: str, limit: int, *, vectors: bool) -> list[qdrant.Record]:
        """The points of the generation from the id `start` on, in the order of the server."""
        every = make_filter(None, tenancy)
        scroll = partial(self._client.scroll, tenancy.target, every, with_payload=True, with_vectors=vectors)
        records, _ = await self._qdrant.write(lambda: scroll(limit=limit, offset=start))
        return list(records)

    async def count(self, collection: str, filter: Filter | None = None) -> int:  # noqa: A002
        """As in `Engine`. It waits as calls of builders do: the server reads each point that matches."""
        return await self._count(collection, filter, exact=True)

    async def estimate_count(self, collection: str, filter: Filter | None = None) -> int:  # noqa: A002
        return await self._count(collection, filter, exact=False)

    async def _count(self, collection: str, filter: Filter | None, *, exact: bool) -> int:  # noqa: A002
        tenancy = await self._find_tenancy(collection)
        await self._request_missing_indexes(tenancy.collection)
        wanted = make_filter(filter, tenancy)
        run = self._qdrant.write if exact else self._qdrant.run
        return (await run(lambda: self._client.count(tenancy.target, wanted, exact=exact))).count

    async def has_any(self, collection: str, filter: Filter) -> bool:  # noqa: A002
        [hits] = await self.search(collection, [Search(filter, 1)])
        return bool(hits)

    async def size_bytes(self) -> None:
        """None: a server does not report it."""

    async def close(self) -> None:
        await self._qdrant.close()

    def _alias_of(self, collection: str) -> str:
        return self._aliases_prefix + collection

    def _generation_of(self, alias: str) -> str:
        return alias.removeprefix(self._aliases_prefix).removesuffix(_DROPPED)

    async def _find_aliases(self) -> dict[str, str]:
        """The aliases of generations, with the names of their collections."""
        found = (await self._qdrant.run(self._client.get_aliases)).aliases
        ours = (each for each in found if each.alias_name.startswith(self._aliases_prefix))
        return {each.alias_name: each.collection_name for each in ours}

    async def _change_aliases(self, operation: qdrant.AliasOperations) -> None:
        await self._qdrant.write(lambda: self._client.update_collection_aliases([operation]))

    async def _find_tenancy(self, collection: str) -> Tenancy:
        """Where the points of a generation are. Raises `IndexLost` if it does not exist."""
        check_name(collection)
        await self._qdrant.check_version()
        known = self._tenancies.get(collection)
        if known is None:
            alias, own = self._alias_of(collection), self._prefix + collection
            if (name := (await self._find_aliases()).get(alias)) is not None:
                known = Tenancy(alias, name, collection)
            elif await self._qdrant.run(lambda: self._client.collection_exists(own)):
                known = Tenancy(own, own)
            else:
                raise self._qdrant.make_lost_error()
            self._tenancies[collection] = known
        return known

    async def _require(self, tenancy: Tenancy) -> None:
        """Raises `IndexLost` if the generation does not exist, for calls that send no other request."""
        await self._qdrant.run(lambda: self._client.count(tenancy.target, exact=False))


def open_engine(url: str, settings: AdapterSettings) -> ServerEngine:
    """The engine at the URL of a Qdrant server. Raises `SettingsError`."""
    return ServerEngine(url, deadline_seconds=settings.deadline_seconds, settings=settings.engine)


def _as_written(record: Any, tenancy: Tenancy) -> Any:
    """A record or scored point of the server with the id and the payload that the point was written with."""
    payload = {name: value for name, value in (record.payload or {}).items() if name != GENERATION}
    return record.model_copy(update={"id": tenancy.id_of(str(record.id)), "payload": payload})
