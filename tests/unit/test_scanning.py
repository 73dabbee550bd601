"""The scan for words: which forms it finds, in which files, and what its report and its command say."""

import base64
import json
import os
import sqlite3
import unicodedata
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Memory, Settings
from recallog.errors import InvalidArgument, OutOfRange
from recallog.scanning import files
from recallog.scanning.forms import forms_of, search
from recallog_schemas.views import ScannedPlace
from support.cli import recallog
from support.events import event, publish_in, run

WORD = "Zq-Éclair Müller"


def found_in(data: bytes, *words: str) -> set[tuple[int, str]]:
    """The numbers of the words that are found, and their forms."""
    return {(each.marker, each.form) for each in search("here", [data], forms_of(words)).found}


def scanned(folder: Path, *words: str) -> list[ScannedPlace]:
    return [*files.scan_files([str(folder)], forms_of(words))]


def places_of(scan: Sequence[ScannedPlace]) -> set[str]:
    return {Path(each.place).name for each in scan if each.found}


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (WORD.encode(), "UTF-8"),
        (WORD.encode("utf-16-le"), "UTF-16-LE"),
        (WORD.encode("utf-16-be"), "UTF-16-BE"),
        (json.dumps(WORD).encode(), "JSON"),
        (WORD.casefold().encode(), "UTF-8, case-folded"),
        (WORD.upper().encode(), "UTF-8, upper case"),
        (unicodedata.normalize("NFD", WORD).encode(), "UTF-8, NFD"),
        (unicodedata.normalize("NFD", WORD).encode("utf-16-le"), "UTF-16-LE, NFD"),
        (json.dumps(WORD.casefold()).encode(), "JSON, case-folded"),
    ],
)
def test_a_word_is_found_in_each_of_its_forms(data: bytes, form: str) -> None:
    assert (2, form) in found_in(b"\x00before " + data + b" after\xff", "another", WORD)


@given(before=st.binary(max_size=8), after=st.binary(max_size=8), word=st.text('aäß紫"\\ \n', min_size=5, max_size=9))
def test_a_word_is_found_in_base64_at_each_alignment(before: bytes, after: bytes, word: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert found_in(encode(before + word.encode() + after), word)
        assert found_in(encode(before + json.dumps(word).encode() + after), word)


def test_a_word_that_is_not_there_is_not_found() -> None:
    assert not found_in(b"Zq-Eclair Muller, and " + base64.b64encode(b"Zq-Eclair"), WORD)


def test_a_word_at_the_border_of_two_chunks_is_found_once(tmp_path: Path) -> None:
    before = b"x" * (files._CHUNK_BYTES - 4)
    (tmp_path / "large").write_bytes(before + WORD.encode() + before)
    (place,) = scanned(tmp_path, WORD)
    assert [(each.form, each.count) for each in place.found] == [("UTF-8", 1)]


def test_a_word_between_zeros_is_found(tmp_path: Path) -> None:
    zeros = bytes(2 * files._CHUNK_BYTES)
    (tmp_path / "sparse").write_bytes(zeros + WORD.encode("utf-16-le") + zeros)
    (place,) = scanned(tmp_path, WORD)
    assert "UTF-16-LE" in {each.form for each in place.found}
    assert place.bytes < files._CHUNK_BYTES


def test_a_long_row_of_sqlite_is_read_as_a_whole(tmp_path: Path) -> None:
    word = "zq" * 4_000
    with closing(sqlite3.connect(tmp_path / "file.db")) as connection, connection:
        connection.execute("CREATE TABLE texts (text BLOB)")
        connection.execute("INSERT INTO texts VALUES (?)", (word.encode(),))
    data = (tmp_path / "file.db").read_bytes()
    assert word.encode() not in data
    assert places_of(scanned(tmp_path, word)) == {"file.db"}


def test_names_of_files_are_searched_too(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / f"{WORD}.md").write_text("nothing")
    assert places_of(scanned(tmp_path, WORD)) == {f"{WORD}.md"}


def test_a_place_that_cannot_be_read_is_named() -> None:
    (place,) = scanned(Path("/proc/self/mem"), WORD)
    assert "Input/output error" in place.problem


def test_what_is_not_a_file_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert scanned(tmp_path, WORD) == []


def test_a_memory_is_scanned_with_all_its_files_and_names_words_by_number(tmp_path: Path) -> None:
    publish_in(tmp_path, event(payload={"text": f"I met {WORD}."}), event(payload={"text": "All is well."}))

    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.episodic("village", "baker")
            digest = (await memory.admin.digest()).items[0].format()
            report = await memory.admin.scan(["nobody said this", WORD], digests=[digest])
            assert {each.marker for place in report.found for each in place.found} == {2}
            assert {Path(each.place).name.partition("-")[0] for each in report.found} == {"ledger.db", "views.db"}
            assert not report.ok
            assert [each.format() for each in report.ledger] == [digest]
            assert [each.matches for each in report.digests] == [True]
            assert WORD not in report.model_dump_json() + report.format()
            assert (await memory.admin.scan(["nobody said this"])).ok

    run(work())


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            for markers in ([], ["abc"], ["word"] * 101):
                with pytest.raises(InvalidArgument):
                    await memory.admin.scan(markers)
            with pytest.raises(OutOfRange):
                await memory.admin.scan(["a word"], digests=["0:7:" + "0" * 32])

    run(work())


def test_a_memory_that_is_in_no_folder_is_scanned_by_its_records() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(event(payload={"text": f"I met {WORD}."}))
            report = await memory.admin.scan([WORD])
            assert [each.place for each in report.found] == ["the record 0:0"]

    run(work())


def test_the_command_ends_with_1_if_a_word_was_found(tmp_path: Path) -> None:
    publish_in(tmp_path, event(payload={"text": f"I met {WORD}."}))
    clean = recallog("erase", "--proof", "nobody", "--proof", "said this", "--home", tmp_path)
    assert (clean.code, clean.err) == (0, "")
    assert "nothing was found" in clean.out
    dirty = recallog("erase", "--proof", "nobody", "--proof", WORD, "--home", tmp_path, "--json")
    assert dirty.code == 1
    assert {each["marker"] for place in json.loads(dirty.out)["places"] for each in place["found"]} == {2}


def test_an_erasure_without_a_space_is_refused(tmp_path: Path) -> None:
    result = recallog("erase", "--subject", "alice", "--home", tmp_path)
    assert result.code == 2
    assert "space" in result.err


def test_a_proof_takes_no_option_of_an_erasure(tmp_path: Path) -> None:
    publish_in(tmp_path, event())
    result = recallog("erase", "--proof", "word", "--subject", "alice", "--home", tmp_path)
    assert result.code == 2
    assert "--proof" in result.err
