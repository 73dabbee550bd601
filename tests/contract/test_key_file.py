"""The file of keys in a memory's folder meets the contract of stores of keys."""

from pathlib import Path

import pytest

from contract.key_store_contract import KeyStoreContract
from recallog_service.access.key_file import KeyFile
from recallog_service.access.keys import KeyStore


class TestKeyFile(KeyStoreContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.home = tmp_path / "not yet there"

    def opened(self) -> KeyStore:
        return KeyFile(self.home)
