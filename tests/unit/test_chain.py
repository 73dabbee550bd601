"""The hash chain of a ledger: its value follows from offsets and values alone, in every fold."""

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.sqlite import SqliteStore
from recallog_projections.stores.store import Checkpoint, Generation
from recallog_projections.views import builtin
from recallog_schemas import codec
from recallog_streams import chain, generations
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from recallog_streams.rebuild import rebuild
from support.events import event, run
from support.folding import finish, folded, ledger_at


def expected_chain(records: Mapping[int, bytes], until: int) -> tuple[bytes, dict[int, bytes]]:
    """The chain after all records below `until`, and its values after offsets 1,023, 2,047, …, from the definition."""
    value, kept = b"\0" * 16, {}
    for offset in range(until):
        if offset in records:
            value = blake2b(value + offset.to_bytes(8, "big") + records[offset], digest_size=16).digest()
        if offset % 1024 == 1023:
            kept[offset] = value
    return value, kept


class WithHoles(MemoryLedger):
    """Records at given offsets, in batches that end at given offsets."""

    def __init__(self, records: Mapping[int, bytes], bounds: Sequence[int]) -> None:
        super().__init__(unique_ids=False)
        self._records, self._bounds = records, bounds

    async def ends(self) -> list[int]:
        return [self._bounds[-1]]

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        for begin, end in pairwise([start, *(bound for bound in self._bounds if start < bound <= until)]):
            held = [(offset, self._records[offset]) for offset in range(begin, end) if offset in self._records]
            yield Batch(partition, begin, end, held)


def kept_in(projector: Projector, generation: Generation) -> dict[int, bytes]:
    chunk = finish(projector.store.scan(generation, chain.BLOCKS.name, limit=100_000))
    assert chunk.last
    return {int(item.key): chain.BLOCKS.decode(item.data).chain for item in chunk.items}


def checkpoint_of(projector: Projector, generation: Generation) -> Checkpoint:
    checkpoint = finish(projector.store.checkpoint(generation))
    assert checkpoint is not None
    return checkpoint


def test_worked_example() -> None:
    first = blake2b(bytes(16) + bytes([0, 0, 0, 0, 0, 0, 0, 0]) + b"bread", digest_size=16).digest()
    second = blake2b(first + bytes([0, 0, 0, 0, 0, 0, 0, 1]) + b"salt", digest_size=16).digest()
    projector, generation = folded(ledger_at([b"bread", b"salt"]))
    assert checkpoint_of(projector, generation).chain == second
    assert second.hex() == "c9f75bf18486d7985ea5b9e25fef7abd"  # from b2sum -l 128, of coreutils


RECORDS = st.integers(0, 2**32)


@settings(max_examples=25)
@given(seed=RECORDS, size=st.integers(1, 4_000), holes=st.sampled_from([0.0, 0.1, 0.9]))
def test_the_chain_depends_on_offsets_and_values_alone(seed: int, size: int, holes: float) -> None:
    dice = random.Random(seed)
    records = {offset: b"%d" % dice.randrange(10) for offset in range(size) if dice.random() >= holes}
    value, kept = expected_chain(records, size)
    for batches in (1, 7, size):
        bounds = sorted({*dice.sample(range(1, size + 1), min(size, batches)), size})
        projector, generation = folded(WithHoles(records, bounds))
        assert checkpoint_of(projector, generation).chain == value
        assert kept_in(projector, generation) == kept


def values(count: int) -> list[bytes]:
    return [codec.encode(event(id=f"e{n}", payload={"text": f"Loaf {n}."})) for n in range(count)]


def test_a_rebuild_and_a_restart_continue_the_same_chain(tmp_path: Path) -> None:
    written = values(2_500)
    ledger = ledger_at(written[:1_500])

    def opened() -> Projector:
        return Projector(ledger, SqliteStore(tmp_path / "views.sqlite"), builtin.projections())

    async def work() -> None:
        for end in (1_500, 2_500):
            for data in written[end - 1_000 : end] if end > 1_500 else ():
                ledger.append_bytes(data)
            projector = opened()
            generation = await generations.current(projector, 0)
            await check(projector, generation, end)
            await projector.store.close()
        projector = opened()
        await rebuild("built-in", projector, None, accept=False)
        rebuilt = (await projector.store.pointer(0)).active
        assert rebuilt is not None
        assert rebuilt != generation
        await check(projector, rebuilt, 2_500)
        await projector.store.close()

    async def check(projector: Projector, generation: Generation, end: int) -> None:
        value, kept = expected_chain(dict(enumerate(written)), end)
        checkpoint = await projector.store.checkpoint(generation)
        assert checkpoint is not None
        assert (checkpoint.offset, checkpoint.chain) == (end - 1, value)
        chunk = await projector.store.scan(generation, chain.BLOCKS.name, limit=100)
        assert {int(item.key): chain.BLOCKS.decode(item.data).chain for item in chunk.items} == kept

    run(work())


def test_a_fold_of_one_space_has_no_chain() -> None:
    ledger = ledger_at(values(5))
    projector = Projector(ledger, MemoryStore(), builtin.projections(), space="village")
    generation = finish(projector.first_generation(0, 5))
    assert finish(projector.catch_up(generation, 5)).chain == bytes(16)


def test_the_version_of_the_chain_is_part_of_a_generations_code() -> None:
    assert f'"chain": {chain.VERSION}' in Projector(ledger_at([]), MemoryStore(), builtin.projections()).fold.code
