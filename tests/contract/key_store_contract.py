"""What every store of keys does. A test module inherits from `KeyStoreContract` and gives it stores."""

import asyncio
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta

import pytest

from recallog import OutOfRange
from recallog_service.access import Grant, Verb, keys
from recallog_service.access.keys import Key, KeyStore
from support.events import run

GRANT = Grant(spaces=("acme/*", "village"), agent="anna", verbs=frozenset({Verb.READ, Verb.TAIL}))


def key(name: str = "test", expires: datetime | None = None) -> Key:
    return keys.make(name, GRANT, expires=expires, calls_per_minute=60)[1]


class KeyStoreContract(ABC):
    @abstractmethod
    def opened(self) -> KeyStore:
        """A further client of the one store of a test, which is empty at first."""

    def test_a_key_is_found_by_its_id_as_it_was_stored(self) -> None:
        async def work() -> None:
            first, second = self.opened(), self.opened()
            stored = key("für Anna ✓", datetime.now(UTC) + timedelta(days=1))
            assert (await first.get(stored.id), await second.all()) == (None, [])
            await first.put(stored)
            assert await second.get(stored.id) == stored
            assert await second.get("another") is None
            assert await second.get("") is None
            await first.close()
            await second.close()

        run(work())

    def test_all_keys_are_listed_the_oldest_first(self) -> None:
        async def work() -> None:
            store = self.opened()
            stored = [key(f"key {n}") for n in range(5)]
            for each in stored:
                await store.put(each)
            assert list(await store.all()) == stored
            await store.close()

        run(work())

    def test_a_revoked_key_stays_listed_and_other_clients_see_it_at_once(self) -> None:
        async def work() -> None:
            first, second = self.opened(), self.opened()
            stored = key()
            await first.put(stored)
            assert await second.get(stored.id) == stored
            revoked = await first.revoke(stored.id)
            assert revoked.revoked is not None
            assert await second.get(stored.id) == revoked
            assert await second.revoke(stored.id) == revoked
            assert list(await second.all()) == [revoked]
            with pytest.raises(OutOfRange):
                await first.revoke("another")
            await first.close()
            await second.close()

        run(work())

    def test_no_key_is_lost_where_several_clients_write(self) -> None:
        async def work() -> None:
            stores = [self.opened() for _ in range(4)]
            stored = [[key(f"{n} {m}") for m in range(5)] for n in range(4)]

            async def write(store: KeyStore, made: list[Key]) -> None:
                for each in made:
                    await store.put(each)

            await asyncio.gather(*map(write, stores, stored))
            assert {each.id for each in await stores[0].all()} == {each.id for made in stored for each in made}
            for store in stores:
                await store.close()

        run(work())
