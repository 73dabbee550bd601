"""The Redis store keeps the contract, and does whatever the store in memory does."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.store_contract import StoreContract
from recallog_projections.stores.redis import RedisStore
from recallog_projections.stores.store import Generation, Store
from support.events import one_loop, run


class TestRedisStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _url(self, redis_url: str) -> None:
        self.url = redis_url

    def make(self, folder: Path) -> RedisStore:
        return RedisStore(self.url, namespace=f"test-{os.urandom(6).hex()}")

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with one_loop():
            store = self.make(tmp_path)
            yield store
            run(store.close())

    def lose_checkpoint(self, store: Store, generation: Generation) -> None:
        assert isinstance(store, RedisStore)
        run(store._server.command("DEL", store._prefix(generation) + "checkpoint"))
