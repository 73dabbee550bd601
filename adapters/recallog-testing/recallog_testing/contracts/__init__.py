"""Contract suites: what each port promises, as test classes for pytest.

A test class inherits a suite and creates the adapter to test:

```python
class TestPostgresLedger(UniqueIdsContract):
    def make(self, folder: Path) -> Ledger:
        return open_ledger(f"pg://localhost/{folder.name}", AdapterSettings())
```

| port | suites |
| --- | --- |
| `Ledger` | `LedgerContract`, and one of its kinds: `UniqueIdsContract`, `RepeatedIdsContract` |
| `Store` | `StoreContract` |
| `Database` | `DatabaseContract` |
| `SealingKeys` | `SealingKeysContract` |
| `Engine` | `EngineContract` |
| `Embedder` | `EmbedderContract` |
| `Model` | `ModelContract` |
| `Format` | `ReaderContract` |
"""

import pytest

_SUITES = ("database", "embedder", "engine", "ledger", "model", "reader", "sealing_keys", "store")
pytest.register_assert_rewrite(*(f"{__name__}.{each}" for each in _SUITES))

from recallog_testing.contracts.database import DatabaseContract  # noqa: E402 - imported as rewritten
from recallog_testing.contracts.embedder import EmbedderContract  # noqa: E402
from recallog_testing.contracts.engine import EngineContract  # noqa: E402
from recallog_testing.contracts.ledger import LedgerContract, RepeatedIdsContract, UniqueIdsContract  # noqa: E402
from recallog_testing.contracts.model import ModelContract  # noqa: E402
from recallog_testing.contracts.reader import ReaderContract  # noqa: E402
from recallog_testing.contracts.sealing_keys import SealingKeysContract  # noqa: E402
from recallog_testing.contracts.store import StoreContract  # noqa: E402

__all__ = [
    "DatabaseContract",
    "EmbedderContract",
    "EngineContract",
    "LedgerContract",
    "ModelContract",
    "ReaderContract",
    "RepeatedIdsContract",
    "SealingKeysContract",
    "StoreContract",
    "UniqueIdsContract",
]
