"""The contract of databases. An adapter's test class inherits the suite and implements `make`."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pytest

from recallog_projections.rows import Changes
from recallog_projections.stores.store import Checkpoint, Generation, Outcome
from recallog_projections.tables import RowKey
from recallog_schemas.errors import LockTimeout, SettingsError
from recallog_streams.databases.database import NAMESPACE, Database
from recallog_testing.running import one_loop, run

_ROW = RowKey("t", "village", "baker", "k")
_GENERATION = Generation("aaaa", 0, "code 1", 0)
_FIRST = Checkpoint(0, 0, bytes(16), bytes(16))


class DatabaseContract(ABC):
    """Namespaces, locks between processes, and documents."""

    @abstractmethod
    def make(self, folder: Path) -> Database:
        """The database at `folder`. Two calls, as in two processes, make objects with the same contents."""

    @pytest.fixture
    def database(self, tmp_path: Path) -> Iterator[Database]:
        with one_loop():
            yield self.make(tmp_path)

    def test_two_namespaces_have_no_row_in_common(self, database: Database) -> None:
        async def work() -> None:
            one, other = (database.store(name) for name in (NAMESPACE, f"{NAMESPACE}:other"))
            for store, data in ((one, b"1"), (other, b"2")):
                await store.create(_GENERATION)
                changes = Changes(rows={_ROW: data})
                assert await store.commit(_GENERATION, Checkpoint(), _FIRST, changes) is Outcome.APPLIED
                assert await store.activate(_GENERATION)
            assert [(await store.read(0, [_ROW])).rows for store in (one, other)] == [[b"1"], [b"2"]]
            await one.clear()
            assert (await other.read(0, [_ROW])).rows == [b"2"]
            for store in (one, other):
                await store.close()

        run(work())

    def test_a_process_sees_what_another_one_has_committed(self, database: Database, tmp_path: Path) -> None:
        async def work() -> None:
            one, other = database.store(NAMESPACE), self.make(tmp_path).store(NAMESPACE)
            await one.create(_GENERATION)
            assert (await other.pointer(0)).building == _GENERATION
            await one.commit(_GENERATION, Checkpoint(), _FIRST, Changes(rows={_ROW: b"1"}))
            assert (await other.read(0, [_ROW], generation=_GENERATION)).rows == [b"1"]
            for store in (one, other):
                await store.close()

        run(work())

    def test_one_holder_has_a_lock_and_the_next_gets_it_when_it_is_free(
        self, database: Database, tmp_path: Path
    ) -> None:
        another = self.make(tmp_path)

        async def work() -> None:
            async with database.lock("reactors", 0)():
                with pytest.raises(LockTimeout):
                    async with another.lock("reactors", 0)():
                        pass
                async with another.lock("views", 0)():  # another name, another lock
                    pass
            async with another.lock("reactors", 0)():
                pass

        run(work())

    def test_who_may_wait_gets_a_lock_once_it_is_free(self, database: Database, tmp_path: Path) -> None:
        another, order = self.make(tmp_path), []

        async def wait(begun: asyncio.Event) -> None:
            begun.set()
            async with another.lock("recallog.views.0123", 30)():
                order.append("second")

        async def work() -> None:
            begun = asyncio.Event()
            async with database.lock("recallog.views.0123", 0)():
                waiting = asyncio.create_task(wait(begun))
                await begun.wait()
                order.append("first")
            await waiting

        run(work())
        assert order == ["first", "second"]

    def test_it_keeps_keys_of_sealed_events_or_says_where_to_keep_them(self, database: Database) -> None:
        try:
            keys = database.sealing_keys()
        except SettingsError as error:
            assert "RECALLOG_KEYS" in str(error)  # noqa: PT017 - either is right
        else:
            run(keys.close())

    def test_documents_are_replaced_by_name_and_seen_by_other_processes(
        self, database: Database, tmp_path: Path
    ) -> None:
        documents, others = (each.documents("keys") for each in (database, self.make(tmp_path)))
        if documents is None or others is None:
            pytest.skip("it keeps no documents: those of the memory are in its folder")

        async def work() -> None:
            assert (await documents.get("a"), await documents.all()) == (None, {})
            await documents.put("a", b"1")
            await documents.put("b", b"\0\xff")
            await documents.put("a", b"2")
            assert (await others.get("a"), await others.all()) == (b"2", {"a": b"2", "b": b"\0\xff"})
            for each in (documents, others):
                await each.close()

        run(work())
