"""Stores of keys in memory and in a folder: the contract, and what the file has after a key is destroyed."""

import sqlite3
import stat
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from recallog_schemas.errors import StorageUnavailable
from recallog_schemas.sealing import DESTROYED
from recallog_streams.keys.memory import MemoryKeys
from recallog_streams.keys.sealing_keys import SealingKey, SealingKeys
from recallog_streams.keys.sqlite import SqliteKeys
from recallog_testing.contracts.sealing_keys import ANN, BEN, SealingKeysContract, key_of
from support.events import run


class TestMemoryKeys(SealingKeysContract):
    @pytest.fixture(autouse=True)
    def _folders(self) -> None:
        self.folders = defaultdict[Path, list[MemoryKeys]](list)

    def make(self, folder: Path) -> MemoryKeys:
        keys = MemoryKeys()
        for first in self.folders[folder][:1]:
            keys._secrets, keys._present, keys._destroyed = first._secrets, first._present, first._destroyed
        self.folders[folder].append(keys)
        return keys


class TestSqliteKeys(SealingKeysContract):
    def make(self, folder: Path) -> SqliteKeys:
        return SqliteKeys(folder / "sealing.db")

    def test_the_file_is_created_with_the_first_key(self, keys: SealingKeys, tmp_path: Path) -> None:
        run(keys.state())
        run(keys.read(["unknown"]))
        run(keys.retire([ANN]))
        assert not (tmp_path / "sealing.db").exists()
        key_of(keys, ANN)
        assert (tmp_path / "sealing.db").exists()

    def test_only_its_owner_can_read_the_file(self, keys: SealingKeys, tmp_path: Path) -> None:
        key_of(keys, ANN)
        assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in tmp_path.glob("sealing.db*"))

    def test_no_file_has_the_bytes_of_a_destroyed_key(self, keys: SealingKeys, tmp_path: Path) -> None:
        ann, ben = run(keys.keys_of([ANN, BEN]))
        assert any(ann.secret in file.read_bytes() for file in tmp_path.iterdir())
        run(keys.destroy([ann.id], 0))
        assert not any(ann.secret in file.read_bytes() for file in tmp_path.iterdir())
        assert any(ben.secret in file.read_bytes() for file in tmp_path.iterdir())

    def test_no_file_has_the_name_of_a_unit(self, keys: SealingKeys, tmp_path: Path) -> None:
        key_of(keys, ANN._replace(name="Annabella"))
        assert not any(b"Annabella" in file.read_bytes() for file in tmp_path.iterdir())

    def test_a_destruction_that_a_reader_delays_says_so_and_is_completed_by_the_next(self, tmp_path: Path) -> None:
        keys = SqliteKeys(tmp_path / "sealing.db", lock_wait_seconds=0.05)
        ann = key_of(keys, ANN)
        with closing(sqlite3.connect(tmp_path / "sealing.db")) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM keys").fetchall()
            with pytest.raises(StorageUnavailable, match="Erase the same again"):
                run(keys.destroy([ann.id], 0))
            assert run(keys.read([ann.id])) == {ann.id: DESTROYED}
        run(keys.destroy([], 0))
        assert not any(ann.secret in file.read_bytes() for file in tmp_path.iterdir())
        run(keys.close())


class RetiredAtOnce(MemoryKeys):
    """An eraser retires the first key before the writer has it."""

    is_first = True

    async def assign(self, keys: Mapping[str, SealingKey]) -> Mapping[str, SealingKey]:
        found = await super().assign(keys)
        if not self.is_first:
            return found
        self.is_first = False
        await self.retire([ANN])
        return await self.present([*keys])


def test_a_unit_whose_key_is_retired_at_once_gets_another_one() -> None:
    keys = RetiredAtOnce()
    assert key_of(keys, ANN) == key_of(keys, ANN)
