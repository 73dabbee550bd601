"""The file of payloads: what is read is what was written last; rows are kept up to a bound; damage is reported."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_projections.index.engines.engine import TEXT_FIELDS, Sparse
from recallog_projections.index.engines.kept_points import KeptBytes, KeptPoints, StoredFields
from recallog_projections.index.engines.point_file import PointFile
from recallog_schemas.errors import IndexDamaged

ENOUGH = 1_000_000


def name_of(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012x}"


def written(number: int, value: int = 0) -> StoredFields:
    payload = {"agent": "baker", "turn": value, "tokens": "t" * value, "text": f"text {value}", "event": "{}"}
    return name_of(number), payload, Sparse([value, 2**32 - 1], [0.5, 1.0])


def without_texts(point: StoredFields) -> StoredFields:
    id_, payload, terms = point
    return id_, {name: each for name, each in payload.items() if name not in TEXT_FIELDS}, terms


def compared(points: Sequence[StoredFields]) -> dict[str, Any]:
    return {id_: (payload, [*terms.indices], [*terms.values]) for id_, payload, terms in points}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    PointFile.create(tmp_path / "points.db")
    return tmp_path / "points.db"


steps = st.one_of(
    st.tuples(st.just("write"), st.lists(st.integers(0, 4), min_size=1, max_size=3), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.lists(st.integers(0, 4), max_size=3), st.just(0)),
    st.tuples(st.just("read"), st.lists(st.integers(0, 4), max_size=6), st.just(0)),
    st.tuples(st.just("reopen"), st.just([]), st.just(0)),
)


@given(st.lists(steps, max_size=20), st.sampled_from([0, 4_000, ENOUGH]))
def test_what_is_read_is_what_was_written_last(
    tmp_path_factory: pytest.TempPathFactory, done: Sequence[tuple[str, list[int], int]], kept_bytes_max: int
) -> None:
    path = tmp_path_factory.mktemp("points") / "points.db"
    PointFile.create(path)
    bound = KeptBytes(kept_bytes_max)
    file, stored = PointFile(path, bound), dict[int, StoredFields]()
    for step, numbers, value in done:
        ids = [name_of(number) for number in numbers]
        if step == "write":
            file.write([written(number, value) for number in numbers])
            stored |= {number: written(number, value) for number in numbers}
        elif step == "delete":
            file.delete(ids)
            for number in numbers:
                stored.pop(number, None)
        elif step == "reopen":
            file.close()
            file = PointFile(path, bound)
        else:
            there = [stored[number] for number in dict.fromkeys(numbers) if number in stored]
            assert compared([*file.read(ids)]) == compared([without_texts(point) for point in there])
            assert compared([*file.read_whole(ids)]) == compared(there)
        assert 0 <= file._kept.size_bytes <= kept_bytes_max
    file.close()


def test_rows_are_read_once_and_the_least_recently_used_are_given_up(path: Path) -> None:
    file = PointFile(path, KeptBytes(ENOUGH))
    file.write([written(number) for number in range(3)])
    list(file.read([name_of(0)]))
    bounded = PointFile(path, KeptBytes(2 * file._kept.size_bytes))
    list(bounded.read([name_of(0), name_of(1)]))
    list(bounded.read([name_of(0)]))
    list(bounded.read([name_of(2)]))
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("DELETE FROM points")
    assert compared([*bounded.read([name_of(0), name_of(1), name_of(2)])]).keys() == {name_of(0), name_of(2)}
    bounded.close()
    file.close()


def test_more_points_than_one_statement_reads(path: Path) -> None:
    file = PointFile(path, KeptBytes(ENOUGH))
    file.write([written(number, number % 7) for number in range(250)])
    ids = [name_of(number) for number in range(260)]
    assert compared([*file.read(ids)]).keys() == set(ids[:250])
    assert compared([*file.read_whole(ids)]).keys() == set(ids[:250])
    file.close()


def test_a_write_that_fails_changes_nothing(path: Path) -> None:
    file = PointFile(path, KeptBytes(ENOUGH))
    file.write([written(0, 1)])
    broken = (name_of(1), {"agent": object()}, Sparse([], []))
    with pytest.raises(TypeError):
        file.write([written(0, 2), broken])
    assert compared([*file.read([name_of(0)])]) == compared([without_texts(written(0, 1))])
    file.close()


def test_a_full_disk_is_not_damage_and_what_was_written_remains(path: Path) -> None:
    file = PointFile(path, KeptBytes(ENOUGH))
    file.write([written(0, 1)])
    (pages,) = file._connection.execute("PRAGMA page_count").fetchone()
    file._connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        file.write([written(number, 9) for number in range(200)])
    file._connection.execute("PRAGMA max_page_count=1000000")
    assert compared([*file.read_whole([name_of(0)])]) == compared([written(0, 1)])
    file.write([written(1)])
    assert compared([*file.read_whole([name_of(1)])]) == compared([written(1)])
    file.close()


@pytest.mark.parametrize("column", ["payload", "terms", "texts"])
def test_a_row_that_cannot_be_read_is_damage(path: Path, column: str) -> None:
    file = PointFile(path, KeptBytes(ENOUGH))
    file.write([written(0)])
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(f"UPDATE points SET {column} = ?", (b"{7",))
    with pytest.raises(IndexDamaged, match=str(path)):
        list(file.read_whole([name_of(0)]))
    file.close()


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"x" * 8_000, b"text" * 4_000])
def test_a_file_that_is_not_whole_is_damage(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for log in (path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm")):
        log.unlink(missing_ok=True)
    with pytest.raises(IndexDamaged, match=str(path)):
        PointFile(path, KeptBytes(ENOUGH))


def test_collections_share_one_bound_and_the_one_that_read_last_keeps_its_points() -> None:
    points = {number: (written(number), 1) for number in range(5)}
    bound = KeptBytes(3)
    one, other = KeptPoints(bound), KeptPoints(bound)
    one.keep(points[number] for number in (0, 1, 2))
    other.keep(points[number] for number in (0, 1))
    ids = [name_of(number) for number in range(5)]
    assert (one.find(ids).keys(), other.find(ids).keys()) == ({ids[2]}, {ids[0], ids[1]})
    one.keep([points[3]])
    assert (one.find(ids).keys(), other.find(ids).keys()) == ({ids[2], ids[3]}, {ids[1]})
    del other
    one.keep([points[4]])
    assert one.find(ids).keys() == {ids[2], ids[3], ids[4]}
