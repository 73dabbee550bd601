"""Ledgers with sealed records: what they store, what they read, and which events are repeats."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from recallog_schemas import Event, Position, codec, sealing
from recallog_schemas.errors import IdConflict, InvalidEvent, SourcesErased, StorageError
from recallog_schemas.sealing import Policy, Unit
from recallog_streams.keys.memory import MemoryKeys
from recallog_streams.keys.sealing_keys import SealingKey, SealingKeys
from recallog_streams.keys.sqlite import SqliteKeys
from recallog_streams.ledgers.ledger import Batch, Ledger, record_at
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.ledgers.sqlite import SqliteLedger
from recallog_streams.sealing import Sealing, made_from
from support.events import event, one_loop, run

OF_ANN = event(id="e-1", payload={"text": "Ann bakes bread."}, subject="ann")
ANN = Unit(OF_ANN.space, "subject", "ann")


def in_memory(folder: Path, policy: Policy = "subjects") -> Ledger:
    ledger = MemoryLedger()
    ledger.sealing = Sealing(MemoryKeys, policy)
    return ledger


def in_folder(folder: Path, policy: Policy = "subjects") -> Ledger:
    ledger, file = SqliteLedger(folder / "ledger.db"), folder / "sealing.db"
    ledger.sealing = Sealing(lambda: SqliteKeys(file), policy, file.exists)
    return ledger


@pytest.fixture(params=[in_memory, in_folder])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    make: Callable[[Path], Ledger] = request.param
    with one_loop():
        ledger = make(tmp_path)
        yield ledger
        run(ledger.close())


def keys_of(ledger: Ledger) -> SealingKeys:
    return ledger.sealing.keys


def destroy(ledger: Ledger, unit: Unit = ANN) -> None:
    run(keys_of(ledger).destroy(run(keys_of(ledger).retire([unit])), 0))


async def batches(ledger: Ledger) -> list[Batch]:
    return [batch async for batch in ledger.read(0, 0, (await ledger.ends())[0])]


def stored(ledger: Ledger) -> list[bytes]:
    return [data for batch in run(batches(ledger)) for _, data in batch.stored]


def clear(ledger: Ledger) -> list[bytes]:
    return [data for batch in run(batches(ledger)) for _, data in batch.records]


def offsets(positions: Sequence[Position]) -> list[int]:
    return [position.offset for position in positions]


def test_an_event_with_a_subject_is_sealed_and_read_clear(ledger: Ledger) -> None:
    run(ledger.append([OF_ANN]))
    (record,) = stored(ledger)
    assert b"Ann bakes" not in record
    assert clear(ledger) == [codec.encode(OF_ANN)]
    assert run(record_at(ledger, 0, 0)) == codec.encode(OF_ANN)


def test_an_event_of_nobody_is_not_sealed_and_needs_no_keys(ledger: Ledger) -> None:
    sent = event()
    run(ledger.append([sent]))
    assert stored(ledger) == [codec.encode(sent)]
    assert "keys" not in vars(ledger.sealing)


def test_a_batch_may_mix_sealed_records_and_others(ledger: Ledger) -> None:
    sent = [event(id="e-0"), OF_ANN, event(id="e-2"), event(id="e-3", subject="ben")]
    run(ledger.append(sent))
    assert clear(ledger) == [codec.encode(each) for each in sent]
    assert [sealing.is_sealed(record) for record in stored(ledger)] == [False, True, False, True]


def test_parts_of_a_batch_keep_what_is_stored(ledger: Ledger) -> None:
    run(ledger.append([event(id="e-0"), OF_ANN, event(id="e-2")]))
    (batch,) = run(batches(ledger))
    assert batch.cut(1, 2).stored == batch.stored[1:2]


def test_all_events_are_sealed_if_the_policy_says_so(tmp_path: Path) -> None:
    ledger = in_memory(tmp_path, "all")
    run(ledger.append([event(id="e-0"), OF_ANN]))
    assert all(map(sealing.is_sealed, stored(ledger)))


def test_nothing_is_sealed_if_the_policy_says_so(tmp_path: Path) -> None:
    ledger = in_memory(tmp_path, "off")
    run(ledger.append([OF_ANN]))
    assert stored(ledger) == [codec.encode(OF_ANN)]


def test_what_is_sealed_is_read_whatever_the_policy_says(tmp_path: Path) -> None:
    with one_loop():
        before = in_folder(tmp_path)
        run(before.append([OF_ANN]))
        now = in_folder(tmp_path, "off")
        assert clear(now) == [codec.encode(OF_ANN)]
        run(before.close())
        run(now.close())


# Erased events.


def test_an_event_whose_key_is_destroyed_is_read_without_its_payload(ledger: Ledger) -> None:
    run(ledger.append([OF_ANN]))
    before = stored(ledger)
    destroy(ledger)
    assert stored(ledger) == before
    assert [codec.decode(data) for data in clear(ledger)] == [OF_ANN.model_copy(update={"envelope": 2, "payload": {}})]


def test_a_person_who_was_erased_gets_another_key(ledger: Ledger) -> None:
    run(ledger.append([OF_ANN]))
    destroy(ledger)
    later = event(id="e-2", payload={"text": "Ann is back."}, subject="ann")
    run(ledger.append([later]))
    assert [codec.decode(data).is_erased for data in clear(ledger)] == [True, False]


def test_an_event_between_retiring_and_destroying_has_another_key(ledger: Ledger) -> None:
    run(ledger.append([OF_ANN]))
    retired = run(keys_of(ledger).retire([ANN]))
    run(ledger.append([event(id="e-2", subject="ann")]))
    run(keys_of(ledger).destroy(retired, 0))
    assert [codec.decode(data).is_erased for data in clear(ledger)] == [True, False]


def test_an_erased_event_can_be_appended_to_another_ledger(ledger: Ledger) -> None:
    left = OF_ANN.model_copy(update={"envelope": 2, "payload": {}})
    run(ledger.append([left]))
    assert [codec.decode(data) for data in clear(ledger)] == [left]
    assert "keys" not in vars(ledger.sealing)


# Events that are made from others.


async def append_made_from(ledger: Ledger, records: Sequence[bytes], made: Event) -> None:
    with made_from({(made.space, made.id): [id_ for record in records for id_ in sealing.key_ids(record)]}):
        await ledger.append([made])


def test_what_is_made_from_an_event_is_erased_with_it(ledger: Ledger) -> None:
    run(ledger.append([OF_ANN]))
    belief = event(id="e-2", kind="agent.reflected", payload={"belief": "Ann is a baker."})
    run(append_made_from(ledger, stored(ledger), belief))
    assert not any(codec.decode(data).is_erased for data in clear(ledger))
    destroy(ledger)
    assert all(codec.decode(data).is_erased for data in clear(ledger))


def test_one_erased_source_is_enough(ledger: Ledger) -> None:
    run(ledger.append([OF_ANN, event(id="e-2", subject="ben")]))
    run(append_made_from(ledger, stored(ledger), event(id="e-3", subject="cem")))
    destroy(ledger, ANN._replace(name="ben"))
    assert [codec.decode(data).is_erased for data in clear(ledger)] == [False, True, True]


def test_nothing_is_made_from_what_is_erased(ledger: Ledger) -> None:
    run(ledger.append([OF_ANN]))
    destroy(ledger)
    with pytest.raises(SourcesErased):
        run(append_made_from(ledger, stored(ledger), event(id="e-2")))
    assert len(stored(ledger)) == 1


def test_nothing_is_made_from_what_lacks_its_key() -> None:
    ledger, keys = MemoryLedger(), MemoryKeys()
    ledger.sealing = Sealing(lambda: keys)
    run(ledger.append([OF_ANN]))
    keys._secrets.clear()
    ledger.sealing._secrets.clear()
    with pytest.raises(SourcesErased, match="are missing"):
        run(append_made_from(ledger, stored(ledger), event(id="e-2")))


# Repeats.


def with_text(text: str) -> Event:
    return OF_ANN.model_copy(update={"payload": {"text": text}})


def test_a_sealed_event_can_be_repeated(ledger: Ledger) -> None:
    assert offsets(run(ledger.append([OF_ANN, OF_ANN]))) == [0, 0]
    assert offsets(run(ledger.append([OF_ANN]))) == [0]
    assert len(stored(ledger)) == 1


def test_a_repeat_under_another_key_is_a_repeat(ledger: Ledger) -> None:
    run(ledger.append([OF_ANN]))
    run(keys_of(ledger).retire([ANN]))
    assert offsets(run(ledger.append([OF_ANN]))) == [0]


def test_another_event_with_the_id_of_a_sealed_one_is_a_conflict(ledger: Ledger) -> None:
    run(ledger.append([OF_ANN]))
    with pytest.raises(IdConflict) as refused:
        run(ledger.append([with_text("Ann bakes cakes.")]))
    assert refused.value.path == "payload.text"


def test_every_event_with_the_id_of_an_erased_one_repeats_it(ledger: Ledger) -> None:
    run(ledger.append([OF_ANN]))
    destroy(ledger)
    assert offsets(run(ledger.append([OF_ANN, with_text("Ann bakes cakes.")]))) == [0, 0]
    assert len(stored(ledger)) == 1


@pytest.mark.parametrize(("first", "second"), [("off", "subjects"), ("subjects", "off"), ("all", "subjects")])
def test_an_event_can_be_repeated_under_another_policy(first: Policy, second: Policy, tmp_path: Path) -> None:
    with one_loop():
        ledgers = in_folder(tmp_path, first), in_folder(tmp_path, second)
        sent = [OF_ANN, event(id="e-2")]
        assert [offsets(run(ledger.append(sent))) for ledger in ledgers] == [[0, 1], [0, 1]]
        with pytest.raises(IdConflict):
            run(ledgers[1].append([with_text("Ann bakes cakes.")]))
        for ledger in ledgers:
            run(ledger.close())


# Keys that are lost or damaged.


def lose_keys(folder: Path) -> None:
    for file in folder.glob("sealing.db*"):
        file.unlink()


def damage_keys(folder: Path) -> None:
    (folder / "sealing.db").write_bytes(b"no keys" * 1000)
    for file in folder.glob("sealing.db-*"):
        file.unlink()


@pytest.mark.parametrize("harm", [lose_keys, damage_keys])
def test_without_the_keys_only_sealed_events_cannot_be_read(harm: Callable[[Path], None], tmp_path: Path) -> None:
    with one_loop():
        ledger = in_folder(tmp_path)
        run(ledger.append([event(id="e-0"), OF_ANN]))
        run(ledger.close())
        harm(tmp_path)
        ledger = in_folder(tmp_path)
        first, second = clear(ledger)
        assert codec.decode(first).id == "e-0"
        with pytest.raises(InvalidEvent) as refused:
            codec.decode(second)
        assert refused.value.rule == "key_missing"
        run(ledger.append([event(id="e-2")]))
        run(ledger.close())


def test_nothing_is_sealed_with_damaged_keys(tmp_path: Path) -> None:
    with one_loop():
        ledger = in_folder(tmp_path)
        run(ledger.append([OF_ANN]))
        run(ledger.close())
        damage_keys(tmp_path)
        ledger = in_folder(tmp_path)
        with pytest.raises(StorageError, match=r"sealing\.db"):
            run(ledger.append([event(id="e-2", subject="ann")]))
        assert "sealing.db" in ledger.sealing.problem
        run(ledger.close())


# Keys that change while they are read.


class Interrupted(MemoryKeys):
    """Does something once, after keys were read and before the reader has them."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def _interrupt(self) -> None:
        work, self.meanwhile = self.meanwhile, None
        if work is not None:
            await work()

    async def read(self, ids: Iterable[str]) -> Mapping[str, bytes]:
        found = await super().read(ids)
        await self._interrupt()
        return found

    async def present(self, units: Sequence[str]) -> Mapping[str, SealingKey]:
        found = await super().present(units)
        await self._interrupt()
        return found


def interrupted() -> tuple[Ledger, Interrupted, Callable[[], Awaitable[object]]]:
    """A ledger with an event of Ann, its keys, and what destroys hers while another task of the process looks."""
    ledger, keys = MemoryLedger(), Interrupted()
    ledger.sealing = Sealing(lambda: keys)
    run(ledger.append([OF_ANN]))
    ledger.sealing._ciphers.clear()
    ledger.sealing._secrets.clear()

    async def destroyed() -> None:
        await keys.destroy(await keys.retire([ANN]), 0)
        await ledger.sealing.refresh()

    return ledger, keys, destroyed


def test_a_key_that_is_retired_while_it_is_read_seals_no_later_event() -> None:
    ledger, keys, destroyed = interrupted()
    keys.meanwhile = destroyed
    run(ledger.append([event(id="e-2", subject="ann")]))  # belongs to what is erased
    later = event(id="e-3", subject="ann")
    run(ledger.append([later]))
    assert clear(ledger)[-1] == codec.encode(later)


def test_a_key_that_is_destroyed_while_it_is_read_opens_no_later_batch() -> None:
    ledger, keys, destroyed = interrupted()
    keys.meanwhile = destroyed
    assert clear(ledger) == [codec.encode(OF_ANN)]
    assert codec.decode(clear(ledger)[0]).is_erased
