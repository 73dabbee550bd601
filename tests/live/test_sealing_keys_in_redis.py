"""Keys of sealed events in Redis meet the contract of stores of keys."""

import secrets
from pathlib import Path

import pytest

from live.support import DEADLINE_SECONDS
from recallog_projections.stores.redis_server import breaker_of
from recallog_streams.keys.redis import RedisKeys
from recallog_testing.contracts.sealing_keys import SealingKeysContract


class TestRedisKeys(SealingKeysContract):
    @pytest.fixture(autouse=True)
    def _namespace(self, redis_url: str) -> None:
        self.url, self.namespace = redis_url, f"sealing-{secrets.token_hex(4)}"

    def make(self, folder: Path) -> RedisKeys:
        return RedisKeys(self.url, namespace=self.namespace, breaker=breaker_of(self.url, DEADLINE_SECONDS))
