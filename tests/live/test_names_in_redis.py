"""The names under which a memory keeps data in Redis, written out: a deployment finds its data after an upgrade."""

from collections.abc import Sequence
from typing import ClassVar

from contract.key_store_contract import key
from live.conftest import NewRedis
from live.support import DEADLINE_SECONDS
from recallog import Settings
from recallog.composition import compose, database_of
from recallog.extending import KeptTexts, Record, Rows, Table
from recallog_projections.stores.redis import RedisStore
from recallog_projections.stores.redis_server import RedisServer, breaker_of
from recallog_schemas.sealing import Unit
from recallog_service.access import key_document
from recallog_service.access.stores import store_of
from recallog_streams.keys.sealing_keys import name_of
from support.events import run

SECRETS, UNITS, PRESENT, STATE = (f"{{recallog:keys}}:{name}" for name in ("secrets", "units", "present", "state"))
DOORS = "{recallog}:keys"


def test_keys_of_an_earlier_version_are_found_under_their_names(own_redis: NewRedis) -> None:
    url = own_redis().url
    settings = Settings.valid(ledger="kafka://127.0.0.1:9/none", views=url)
    unit, door = Unit("village", "subject", "ann"), key()

    async def work() -> None:
        server = RedisServer(url, breaker_of(url, DEADLINE_SECONDS))
        await server.command("HSET", SECRETS, "k-1", b"s" * 32)
        await server.command("HSET", UNITS, "k-1", name_of(unit))
        await server.command("HSET", PRESENT, name_of(unit), "k-1")
        await server.command("HSET", STATE, "retired", 3, "0", 7)
        await server.command("HSET", DOORS, door.id, key_document.seal_keys([door]))
        database = database_of(settings)
        keys, doors = database.sealing_keys(), store_of(settings)
        assert [tuple(each) for each in await keys.keys_of([unit])] == [("k-1", b"s" * 32)]
        assert (await keys.state()).retired == 3
        assert await doors.all() == [door]
        assert sorted(each.decode() for each in await server.command("KEYS", "*")) == sorted(
            [SECRETS, UNITS, PRESENT, STATE, DOORS]
        )
        for each in (keys, doors, server):
            await each.close()

    run(work())


class Own:
    """A projection of a user."""

    name: ClassVar[str] = "own"
    version: ClassVar[int] = 1
    tables: ClassVar[tuple[Table[KeptTexts], ...]] = (Table("own.rows", KeptTexts),)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        """It keeps nothing."""


def test_views_are_in_the_namespaces_of_earlier_versions(own_redis: NewRedis) -> None:
    settings = Settings.valid(ledger="kafka://127.0.0.1:9/none", views=own_redis().url, index="http://127.0.0.1:9")
    components = compose(settings, own=[Own()])
    stores = {group.name: group.store for group in components.groups()}
    found = {name: store._namespace for name, store in stores.items() if isinstance(store, RedisStore)}
    assert found.keys() == stores.keys()
    assert found.pop("own") == "recallog:own"
    assert found.pop(components.views.name) == "recallog"
    assert all(namespace == f"recallog:{name}" for name, namespace in found.items())
