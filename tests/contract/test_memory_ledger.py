"""The ledger in memory keeps the contract, in both of its kinds."""

from pathlib import Path

from contract.ledger_contract import RepeatedIdsContract, UniqueIdsContract
from recallog_streams.memory_ledger import MemoryLedger


class TestMemoryLedgerWithUniqueIds(UniqueIdsContract):
    def make(self, folder: Path) -> MemoryLedger:
        return MemoryLedger(unique_ids=True)


class TestMemoryLedgerWithRepeatedIds(RepeatedIdsContract):
    def make(self, folder: Path) -> MemoryLedger:
        return MemoryLedger(unique_ids=False)
