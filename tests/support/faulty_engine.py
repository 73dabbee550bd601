"""A real engine whose calls can be made to fail."""

from collections.abc import Collection, Sequence

from recallog_projections.index.engines.engine import Engine, Filter, Hit, Point, Search, StoredPoint


class FaultyEngine(Engine):
    """Calls named in `before` raise instead of running; calls named in `after` run and then raise."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.before: dict[str, Exception] = {}
        self.after: dict[str, Exception] = {}

    def down(self, error: Exception) -> None:
        """Make every call raise."""
        self.before = dict.fromkeys(
            (
                "create",
                "collections",
                "drop",
                "upsert",
                "delete",
                "search",
                "retrieve",
                "scroll",
                "count",
                "size_bytes",
            ),
            error,
        )

    def up(self) -> None:
        """Make every call succeed again."""
        self.before, self.after = {}, {}

    def _fails(self, faults: dict[str, Exception], call: str) -> None:
        if call in faults:
            raise faults[call]

    async def create(self, collection: str, dimension: int, *, multilingual: bool = False) -> None:
        self._fails(self.before, "create")
        await self.engine.create(collection, dimension, multilingual=multilingual)
        self._fails(self.after, "create")

    async def collections(self) -> set[str]:
        self._fails(self.before, "collections")
        return await self.engine.collections()

    async def drop(self, collection: str) -> None:
        self._fails(self.before, "drop")
        await self.engine.drop(collection)
        self._fails(self.after, "drop")

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        self._fails(self.before, "upsert")
        await self.engine.upsert(collection, points)
        self._fails(self.after, "upsert")

    async def delete(self, collection: str, ids: Collection[str]) -> None:
        self._fails(self.before, "delete")
        await self.engine.delete(collection, ids)
        self._fails(self.after, "delete")

    async def search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        self._fails(self.before, "search")
        return await self.engine.search(collection, searches)

    async def retrieve(
        self, collection: str, ids: Sequence[str], *, payload: Collection[str] | None = None, vectors: bool = False
    ) -> dict[str, StoredPoint]:
        self._fails(self.before, "retrieve")
        return await self.engine.retrieve(collection, ids, payload=payload, vectors=vectors)

    async def scroll(
        self, collection: str, after: str | None, limit: int, *, vectors: bool = False
    ) -> list[StoredPoint]:
        self._fails(self.before, "scroll")
        return await self.engine.scroll(collection, after, limit, vectors=vectors)

    async def count(self, collection: str, filter: Filter | None = None) -> int:  # noqa: A002
        self._fails(self.before, "count")
        return await self.engine.count(collection, filter)

    async def size_bytes(self) -> int | None:
        self._fails(self.before, "size_bytes")
        return await self.engine.size_bytes()

    async def close(self) -> None:
        await self.engine.close()
