"""The contract of stores of keys. An adapter's test class inherits the suite and implements `make`."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pytest

from recallog_schemas.sealing import DESTROYED, KEY_BYTES, Unit
from recallog_streams.keys.sealing_keys import KeysState, SealingKey, SealingKeys
from recallog_testing.running import one_loop, run

ANN, BEN = (Unit("village", "subject", name) for name in ("ann", "ben"))


def key_of(keys: SealingKeys, unit: Unit) -> SealingKey:
    (key,) = run(keys.keys_of([unit]))
    return key


class SealingKeysContract(ABC):
    @abstractmethod
    def make(self, folder: Path) -> SealingKeys:
        """A store of keys in `folder`. If it is made there again, it has the same keys."""

    @pytest.fixture
    def keys(self, tmp_path: Path) -> Iterator[SealingKeys]:
        with one_loop():
            keys = self.make(tmp_path)
            yield keys
            run(keys.close())

    def test_a_new_store_has_no_keys(self, keys: SealingKeys) -> None:
        assert run(keys.state()) == KeysState(0, {})
        assert run(keys.read(["unknown"])) == {}

    def test_units_have_different_keys(self, keys: SealingKeys) -> None:
        ann, ben = run(keys.keys_of([ANN, BEN]))
        assert len({ann.id, ben.id}) == len({ann.secret, ben.secret}) == 2
        assert len(ann.secret) == KEY_BYTES

    def test_the_key_of_a_unit_remains(self, keys: SealingKeys) -> None:
        ann = key_of(keys, ANN)
        assert run(keys.keys_of([BEN, ANN, ANN]))[1:] == [ann, ann]
        assert run(keys.read([ann.id])) == {ann.id: ann.secret}

    def test_another_process_has_the_same_keys(self, keys: SealingKeys, tmp_path: Path) -> None:
        ann = key_of(keys, ANN)
        another = self.make(tmp_path)
        assert key_of(another, ANN) == ann
        run(another.close())

    def test_a_key_that_a_process_left_unused_is_given_to_no_unit(self, keys: SealingKeys, tmp_path: Path) -> None:
        run(keys.keys_of([Unit("village", "entry", str(number)) for number in range(4)]))
        left = {key.id for key in keys._block}
        another = self.make(tmp_path)
        assert left
        given = run(another.keys_of([Unit("village", "entry", str(number)) for number in range(4, 40)]))
        assert left.isdisjoint(key.id for key in given)
        run(another.close())

    def test_of_two_that_give_a_unit_a_key_at_once_one_counts(self, keys: SealingKeys, tmp_path: Path) -> None:
        another = self.make(tmp_path)

        async def both() -> list[SealingKey]:
            found = await asyncio.gather(keys.keys_of([ANN]), another.keys_of([ANN]))
            return [key for of_one in found for key in of_one]

        one, other = run(both())
        assert one == other
        run(another.close())

    def test_a_unit_gets_another_key_after_its_key_is_retired(self, keys: SealingKeys) -> None:
        ann = key_of(keys, ANN)
        assert run(keys.retire([ANN])) == [ann.id]
        assert run(keys.read([ann.id])) == {ann.id: ann.secret}
        assert key_of(keys, ANN).id != ann.id

    def test_retiring_a_unit_without_a_key_changes_nothing(self, keys: SealingKeys) -> None:
        assert run(keys.retire([ANN])) == []

    def test_the_state_tells_that_a_key_was_retired(self, keys: SealingKeys) -> None:
        key_of(keys, ANN)
        before = run(keys.state())
        run(keys.retire([ANN]))
        assert run(keys.state()) != before

    def test_a_destroyed_key_is_gone(self, keys: SealingKeys) -> None:
        ann, ben = run(keys.keys_of([ANN, BEN]))
        assert run(keys.destroy([ann.id], 3)) == 1
        assert run(keys.read([ann.id, ben.id])) == {ann.id: DESTROYED, ben.id: ben.secret}
        assert key_of(keys, ANN).id != ann.id
        assert run(keys.state()).destroyed.keys() == {3}

    def test_a_key_is_destroyed_once(self, keys: SealingKeys) -> None:
        ann = key_of(keys, ANN)
        run(keys.destroy([ann.id, ann.id], 0))
        before = run(keys.state())
        assert run(keys.destroy([ann.id], 0)) == 0
        assert run(keys.state()) == before

    def test_a_missing_key_can_be_destroyed(self, keys: SealingKeys) -> None:
        assert run(keys.destroy(["unknown"], 0)) == 1
        assert run(keys.read(["unknown"])) == {"unknown": DESTROYED}

    def test_the_same_keys_destroyed_in_another_order_give_the_same_state(self, keys: SealingKeys) -> None:
        run(keys.destroy(["one", "two"], 0))
        run(keys.destroy(["two"], 1))
        run(keys.destroy(["three", "one"], 1))
        destroyed = run(keys.state()).destroyed
        run(keys.destroy(["four"], 0))
        assert run(keys.state()).destroyed[0] != destroyed[0]
        assert run(keys.state()).destroyed[1] == destroyed[1]
