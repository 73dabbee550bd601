"""The file of keys in a memory's folder meets the contract of stores of keys, and proves itself."""

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from contract.key_store_contract import KeyStoreContract, key
from recallog_schemas.errors import StorageCorrupt
from recallog_service.access.key_file import KeyFile
from recallog_service.access.keys import Key, KeyStore
from support.events import run

OF_EARLIER_VERSIONS = TypeAdapter(list[Key])


class TestKeyFile(KeyStoreContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.home = tmp_path / "not yet there"

    def opened(self) -> KeyStore:
        return KeyFile(self.home)


def test_no_bit_of_the_file_can_change_unnoticed(tmp_path: Path) -> None:
    run(KeyFile(tmp_path).put(key("für Anna ✓")))
    path = tmp_path / "keys.json"
    written = path.read_bytes()
    for number in range(8 * len(written)):
        damaged = bytearray(written)
        damaged[number // 8] ^= 1 << number % 8
        path.write_bytes(damaged)
        with pytest.raises(StorageCorrupt):
            run(KeyFile(tmp_path).all())


def test_no_part_of_the_file_passes_for_all_of_it(tmp_path: Path) -> None:
    run(KeyFile(tmp_path).put(key()))
    path = tmp_path / "keys.json"
    written = path.read_bytes()
    for length in range(len(written)):
        for damaged in (written[:length], written[length + 1 :], written[:length].ljust(len(written), b"\0")):
            path.write_bytes(damaged)
            with pytest.raises(StorageCorrupt):
                run(KeyFile(tmp_path).all())


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"checksum": "", "keys": []}'])
def test_a_file_without_any_key_does_not_let_everybody_in(tmp_path: Path, content: str) -> None:
    (tmp_path / "keys.json").write_text(content)
    with pytest.raises(StorageCorrupt):
        run(KeyFile(tmp_path).all())


def test_a_damaged_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    run(KeyFile(tmp_path).put(key()))
    damaged = path.read_text().replace('"read"', '"tail"')
    path.write_text(damaged)
    with pytest.raises(StorageCorrupt):
        run(KeyFile(tmp_path).put(key()))
    assert path.read_text() == damaged


def test_a_file_of_earlier_versions_is_read_and_gets_its_checksum_with_the_next_key(tmp_path: Path) -> None:
    path, old = tmp_path / "keys.json", key("old")
    path.write_bytes(OF_EARLIER_VERSIONS.dump_json([old], indent=2))
    assert run(KeyFile(tmp_path).all()) == [old]
    new = key("new")
    run(KeyFile(tmp_path).put(new))
    assert run(KeyFile(tmp_path).all()) == [old, new]
    assert list(json.loads(path.read_text())) == ["checksum", "keys"]


def test_a_person_can_read_the_file(tmp_path: Path) -> None:
    run(KeyFile(tmp_path).put(key("für Anna ✓")))
    assert '"name": "für Anna ✓",\n' in (tmp_path / "keys.json").read_text()
