"""An engine that several processes use: the local mode of Qdrant's client, which each call opens and closes again."""

import asyncio
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from filelock import FileLock
from qdrant_client import AsyncQdrantClient

from recallog_projections.index.engines.engine import Engine
from recallog_projections.index.engines.server import ServerEngine
from recallog_projections.plugins import AdapterSettings

SCHEME = "shared"
METADATA = "Metadata-Version: 2.1\nName: recallog-shared-engine\nVersion: 0\n"
ENTRY_POINTS = f"[recallog.engines]\n{SCHEME} = support.shared_engine:SharedEngine\n"


def _called(name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def call(self: "SharedEngine", *args: Any, **options: Any) -> Any:
        return await self.call(name, *args, **options)

    return call


class SharedEngine(Engine):
    """The engine of the URL `shared://<folder>`."""

    def __init__(self, url: str, settings: AdapterSettings) -> None:
        self._folder = Path(url.partition("://")[2])
        self._folder.mkdir(parents=True, exist_ok=True)
        self._here = asyncio.Lock()
        self._everywhere = FileLock(self._folder / "lock")

    async def call(self, name: str, *args: Any, **options: Any) -> Any:
        async with self._here:
            with self._everywhere, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what local mode does not do
                client = AsyncQdrantClient(path=str(self._folder / "qdrant"))
                try:
                    return await getattr(ServerEngine("shared", client=client), name)(*args, **options)
                finally:
                    await client.close()

    async def close(self) -> None:
        """Nothing is open between calls."""

    create = _called("create")
    collections = _called("collections")
    drop = _called("drop")
    upsert = _called("upsert")
    delete = _called("delete")
    search = _called("search")
    retrieve = _called("retrieve")
    scroll = _called("scroll")
    count = _called("count")
    size_bytes = _called("size_bytes")
