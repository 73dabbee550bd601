"""The ledger in memory: the contract, with unique and with repeated ids."""

from pathlib import Path

from recallog_schemas import Position, codec
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_testing.contracts.ledger import RepeatedIdsContract, UniqueIdsContract
from support.events import event, run


class TestMemoryLedgerWithUniqueIds(UniqueIdsContract):
    def make(self, folder: Path) -> MemoryLedger:
        return MemoryLedger(unique_ids=True)


class TestMemoryLedgerWithRepeatedIds(RepeatedIdsContract):
    def make(self, folder: Path) -> MemoryLedger:
        return MemoryLedger(unique_ids=False)


def test_an_event_appended_as_bytes_is_found_among_invalid_records() -> None:
    ledger = MemoryLedger(unique_ids=False)
    ledger.append_bytes(b"nonsense")
    ledger.append_bytes(codec.encode(event(id="e1")))
    run(ledger.append([event(id="e1")]))
    assert run(ledger.find("village", "e1")) == Position(0, 1)
    assert run(ledger.find("village", "nonsense")) is None
