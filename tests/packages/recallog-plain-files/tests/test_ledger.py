"""The ledger meets the contract."""

from pathlib import Path

from recallog_plain_files import open_ledger

from recallog.extending import AdapterSettings, Ledger
from recallog.testing.contracts import UniqueIdsContract


class TestFileLedger(UniqueIdsContract):
    def make(self, folder: Path) -> Ledger:
        return open_ledger(f"files://{folder}", AdapterSettings())
