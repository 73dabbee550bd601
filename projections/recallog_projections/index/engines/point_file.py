"""The payloads and terms of the points of a collection, in a SQLite file beside its shard.

The library maps its files into memory, where all payloads that queries have read remain resident, and it parses a whole
payload to return one field. This file is read in pages that only the system caches. Queries compare many of the same
points, so some are kept.
"""

import sqlite3
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from recallog_projections import private_files
from recallog_projections.index.engines.engine import TEXT_FIELDS, Sparse
from recallog_projections.index.engines.kept_points import KeptBytes, KeptPoints, StoredFields
from recallog_projections.sqlite.connecting import connect
from recallog_projections.sqlite.errors import is_unsound
from recallog_projections.syncing import sync
from recallog_schemas.errors import IndexDamaged

PAGE_BYTES = 16_384
"""Points have about 2 KB. In pages of 4 KB, which often hold one, the file is a quarter larger."""
_CACHE_KIB = 1_024
_READ_AT_ONCE = 100
"""Ids of one statement, which always has as many: SQLite keeps few statements, and takes little time for missing ids.
"""
_POINT_BYTES = 1_500
"""What a kept point takes besides the bytes that it has in the file."""
_WAIT_SECONDS = 5.0
"""For a scan of the files of the folder; the shard keeps out other writers."""

_SCHEMA = "CREATE TABLE points (id BLOB PRIMARY KEY, payload BLOB NOT NULL, terms BLOB NOT NULL, texts BLOB NOT NULL)"
_WRITE = "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?)"
_READ = f"SELECT id, terms, payload, {{}} FROM points WHERE id IN ({', '.join('?' * _READ_AT_ONCE)})"
_READ_TEXTS, READ_FIELDS = _READ.format("texts"), _READ.format("NULL")


_decode = msgspec.json.Decoder(dict[str, Any]).decode


class PointFile:
    """The file at `path`. Calls raise `IndexDamaged` if it is damaged, and else `sqlite3.Error`."""

    def __init__(self, path: Path, bound: KeptBytes) -> None:
        self._path = path
        self._kept = KeptPoints(bound)
        with self._finding_damage(), ExitStack() as failing:
            self._connection = failing.enter_context(closing(connect(path, "rw", _WAIT_SECONDS)))
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            self._connection.execute("SELECT 1 FROM points LIMIT 1").fetchone()
            failing.pop_all()

    @classmethod
    def create(cls, path: Path, points: Iterable[StoredFields] = ()) -> None:
        """Create the file with some points. After a crash it is created again."""
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        private_files.open_file(new, "xb").close()
        with closing(connect(new, "rw", _WAIT_SECONDS)) as connection:
            connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
            connection.execute(_SCHEMA)
            connection.execute("BEGIN")
            connection.executemany(_WRITE, map(_row_of, points))
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode=WAL")
        new.rename(path)
        sync(path.parent)

    def write(self, points: Sequence[StoredFields]) -> None:
        """Write points, each in place of one with the same id. They are durable on return."""
        self._change(_WRITE, map(_row_of, points), [id_ for id_, _, _ in points])

    def delete(self, ids: Sequence[str]) -> None:
        """Delete the points with these ids. Durable on return."""
        self._change("DELETE FROM points WHERE id = ?", ((_key(id_),) for id_ in ids), ids)

    def read(self, ids: Collection[str]) -> list[StoredFields]:
        """The existing points with these ids, whose payloads lack `TEXT_FIELDS`."""
        found = self._kept.find(ids)
        if missing := [id_ for id_ in ids if id_ not in found]:
            with self._finding_damage():
                read = [
                    ((id_, _decode(payload), _sparse(terms)), _POINT_BYTES + len(payload) + len(terms))
                    for id_, terms, payload, _ in self._rows(READ_FIELDS, missing)
                ]
            self._kept.keep(read)
            found |= {point[0]: point for point, _ in read}
        return list(found.values())

    def read_whole(self, ids: Collection[str]) -> list[StoredFields]:
        """The existing points with these ids, with their whole payloads."""
        with self._finding_damage():
            return [
                (id_, _decode(payload) | _decode(texts), _sparse(terms))
                for id_, terms, payload, texts in self._rows(_READ_TEXTS, ids)
            ]

    def close(self) -> None:
        self._connection.close()

    def _rows(self, statement: str, ids: Iterable[str]) -> list[tuple[str, bytes, bytes, bytes]]:
        by_key = {_key(id_): id_ for id_ in ids}
        keys: list[bytes | None] = [*by_key]
        keys += [None] * (-len(keys) % _READ_AT_ONCE)
        found = []
        for start in range(0, len(keys), _READ_AT_ONCE):
            found += self._connection.execute(statement, keys[start : start + _READ_AT_ONCE]).fetchall()
        return [(by_key[key], terms, payload, texts) for key, terms, payload, texts in found]

    def _change(self, statement: str, rows: Iterable[Sequence[Any]], ids: Iterable[str]) -> None:
        written = list(rows)
        self._kept.forget(ids)  # whether or not the change succeeds
        with self._finding_damage():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(statement, written)
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # on a full disk, SQLite has rolled back itself
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _finding_damage(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if not is_unsound(error):
                raise
            raise IndexDamaged(f"the file of the index {self._path} is damaged: {error}") from error
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            raise IndexDamaged(f"a point in {self._path} is damaged: {error}") from error


def _row_of(point: StoredFields) -> tuple[bytes, bytes, bytes, bytes]:
    id_, payload, sparse = point
    fields = {name: value for name, value in payload.items() if name not in TEXT_FIELDS}
    texts = {name: value for name, value in payload.items() if name in TEXT_FIELDS}
    encode = msgspec.json.encode
    return _key(id_), encode(fields), _terms(sparse), encode(texts)


def _key(id_: str) -> bytes:
    return bytes.fromhex(id_.replace("-", ""))


def _terms(sparse: Sparse) -> bytes:
    return array("I", sparse.indices).tobytes() + array("f", sparse.values).tobytes()


def _sparse(data: bytes) -> Sparse:
    half = len(data) // 2
    return Sparse(array("I", data[:half]), array("f", data[half:]))
