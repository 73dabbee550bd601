"""The keys in the Redis of a cluster meet the contract of stores of keys."""

import pytest
from deploy.local import LocalRedis

from contract.key_store_contract import KeyStoreContract, key
from live.conftest import NewRedis
from recallog import Settings
from recallog_projections.plugins import AdapterSettings
from recallog_schemas.errors import StorageCorrupt, StorageUnavailable
from recallog_service.access import Access
from recallog_service.access.keys import KeyStore
from recallog_service.access.keys_in_database import KeysInDatabase
from recallog_service.access.stores import store_of
from recallog_streams.databases.redis import RedisDatabase, RedisDocuments
from support.events import run

_HASH = "{recallog}:keys"


class TestKeysInRedis(KeyStoreContract):
    @pytest.fixture(autouse=True)
    def server(self, own_redis: NewRedis) -> None:
        self.redis: LocalRedis = own_redis()

    def opened(self) -> KeyStore:
        return KeysInDatabase(self.documents())

    def documents(self) -> RedisDocuments:
        return RedisDatabase(self.redis.url, AdapterSettings()).documents("keys")

    def test_the_settings_of_a_cluster_lead_to_its_keys(self) -> None:
        settings = Settings.valid(ledger="kafka://127.0.0.1:9/none", views=self.redis.url)

        async def work() -> None:
            stored = key()
            first, second = store_of(settings), self.opened()
            await first.put(stored)
            assert await second.get(stored.id) == stored
            access = Access.of(settings)
            assert not await access.is_open()
            for each in (first, second, access):
                await each.close()

        run(work())

    def test_a_changed_key_is_refused_and_one_of_earlier_versions_is_not(self) -> None:
        async def work() -> None:
            store, stored, old = self.opened(), key(), key("old")
            documents = self.documents()
            server = documents._server
            await store.put(stored)
            written = await server.command("HGET", _HASH, stored.id)
            for number in range(8 * len(written)):
                damaged = bytearray(written)
                damaged[number // 8] ^= 1 << number % 8
                await server.command("HSET", _HASH, stored.id, bytes(damaged))
                with pytest.raises(StorageCorrupt):
                    await store.get(stored.id)
            await server.command("HSET", _HASH, "another", written)
            with pytest.raises(StorageCorrupt):
                await store.get("another")
            await server.command("DEL", _HASH)
            await server.command("HSET", _HASH, old.id, old.model_dump_json())
            assert await store.get(old.id) == old
            assert list(await store.all()) == [old]
            revoked = await store.revoke(old.id)
            assert b"checksum" in await server.command("HGET", _HASH, old.id)
            assert await store.get(old.id) == revoked
            await documents.close()
            await store.close()

        run(work())

    def test_while_redis_is_down_nobody_is_let_in(self) -> None:
        async def work() -> None:
            access = Access(self.opened())
            self.redis.kill()
            with pytest.raises(StorageUnavailable):
                await access.caller(None)
            with pytest.raises(StorageUnavailable):
                await access.caller("rl_a_b")
            await access.close()

        run(work())
