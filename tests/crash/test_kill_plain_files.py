"""Kill -9 of writers to the ledger in plain files, in the middle of an append and at random moments.

No acknowledged event is lost, none is stored twice, and the folder opens again.
"""

import importlib
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from recallog import Memory
from recallog.extending import AdapterSettings, Ledger, MemoryStore, assemble
from recallog_testing.contracts.ledger import end, events_in
from support.events import run
from support.processes import Process, ended, start

PACKAGE = Path(__file__).parents[1] / "packages" / "recallog-plain-files"
BATCHES, EVENTS = 30, 20
KILLS = 12

# Prints the ids of each batch once it is acknowledged. The write of batch `torn` stops after a number of bytes, or
# before the end if that is negative, and kills the process.
WRITER = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv.pop(1))
from recallog import Event
from recallog.extending import AdapterSettings
from recallog_plain_files import open_ledger

TEXT = "Bread! " * 40

async def main(folder, agent, batches, events, torn=-1, length=0):
    ledger = open_ledger(f"files://{folder}", AdapterSettings())
    write = os.write

    def write_a_part(descriptor, data):
        write(descriptor, data[: int(length) if int(length) >= 0 else len(data) + int(length)])
        os.kill(os.getpid(), signal.SIGKILL)

    for batch in range(int(batches)):
        ids = [f"{agent}-{batch}-{number}" for number in range(int(events))]
        if batch == int(torn):
            os.write = write_a_part
        await ledger.append([
            Event(space="village", agent=agent, kind="agent.spoke", turn=batch, id=each, payload={"text": TEXT})
            for each in ids
        ])
        print(*ids, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def start_writer(folder: Path, agent: str, *torn: int) -> Process:
    return start("-c", WRITER, PACKAGE, folder, agent, BATCHES, EVENTS, *torn)


def read_acknowledged(process: Process, batches: int | None = None) -> list[str]:
    """The ids of the next batches that a writer acknowledges; of all, if it is None."""
    assert process.stdout is not None
    lines: Iterable[str] = process.stdout
    if batches is not None:
        lines = (process.stdout.readline() for _ in range(batches))
    return [id_ for line in lines if line.endswith("\n") for id_ in line.split()]


def ids_of(agent: str, batches: int = BATCHES) -> list[str]:
    return [f"{agent}-{batch}-{number}" for batch in range(batches) for number in range(EVENTS)]


def ids_in(ledger: Ledger) -> list[str]:
    return [each.id for each in events_in(ledger)]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Ledger]:
    """Opens the ledger of the folder."""
    monkeypatch.syspath_prepend(PACKAGE)
    open_ledger = importlib.import_module("recallog_plain_files").open_ledger
    return lambda: open_ledger(f"files://{tmp_path}", AdapterSettings())  # type: ignore[no-any-return]


def assert_views_are_the_fold(ledger: Ledger, records: int) -> None:
    async def work() -> None:
        async with Memory(assemble(ledger, lambda _: MemoryStore())) as memory:
            await memory.catch_up()
            verified = await memory.admin.verify()
            assert (verified.clean, verified.records) == (True, records)

    run(work())


@pytest.mark.parametrize(
    ("length", "whole"),
    [(0, 0), (1, 0), (700, None), (-1, EVENTS - 1), (10**9, EVENTS)],
    ids=["nothing", "a byte", "some lines", "all but the last byte", "all"],
)
def test_of_a_torn_append_whole_records_stay(
    tmp_path: Path, opened: Callable[[], Ledger], length: int, whole: int | None
) -> None:
    reader, torn = opened(), 3
    writer = start_writer(tmp_path, "baker", torn, length)
    acknowledged = read_acknowledged(writer)
    assert ended(writer) == -9
    assert acknowledged == ids_of("baker", torn)
    left = ids_in(opened())
    assert left == ids_in(reader) == ids_of("baker")[: len(left)]
    assert len(left) - len(acknowledged) == (len(left) - len(acknowledged) if whole is None else whole)

    for agent in ("miller", "baker"):  # the torn line is cut off by another writer, and the batch is sent again
        writer = start_writer(tmp_path, agent)
        assert read_acknowledged(writer) == ids_of(agent)
        assert ended(writer) == 0
    stored = ids_in(opened())
    assert stored == ids_in(reader)
    assert stored[: len(left)] == left
    assert sorted(stored) == sorted([*ids_of("baker"), *ids_of("miller")])
    assert_views_are_the_fold(opened(), len(stored))


def test_writers_killed_at_random_moments_lose_and_repeat_nothing(
    tmp_path: Path, opened: Callable[[], Ledger], chance: random.Random
) -> None:
    acknowledged = set[str]()
    for _ in range(KILLS):
        writers = [start_writer(tmp_path, agent) for agent in ("baker", "miller")]
        for writer in writers:
            acknowledged.update(read_acknowledged(writer, chance.randrange(BATCHES)))
            writer.kill()
            acknowledged.update(read_acknowledged(writer))
            assert ended(writer) in (-9, 0)
        stored = ids_in(opened())
        assert len(stored) == len({*stored}) == end(opened())
        assert acknowledged <= {*stored}
    assert_views_are_the_fold(opened(), len(stored))
