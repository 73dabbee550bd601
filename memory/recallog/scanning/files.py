"""The scan of files, in a separate process: when a process closes a file, it loses the locks that SQLite has on it.

`python -m recallog.scanning.files PLACE…` reads the markers as JSON, and writes the places that it has scanned.
"""

import json
import os
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path

from pydantic import TypeAdapter

from recallog.scanning.forms import Forms, forms_of, search
from recallog_projections.sqlite.connecting import connect
from recallog_schemas.views import ScannedPlace

PLACES = TypeAdapter(list[ScannedPlace])
_CHUNK_BYTES = 256 * 1024
"""The size of a read. Most bytes of an engine are zeros in long runs, which are not searched."""
_SQLITE = b"SQLite format 3\0"
_COMPRESSED = b"x"
"""The first byte of a value that zlib has compressed, such as the entries in a snapshot."""
_WAIT_SECONDS = 5.0


def scan_files(places: Iterable[str], forms: Forms) -> Iterator[ScannedPlace]:
    """Scan the names, the bytes and the rows of some files, and of all files in some folders."""
    for path in _files_in(map(Path, places)):
        try:
            yield search(str(path), chain([os.fsencode(path)], chunks_of(path, forms), _rows_of(path)), forms)
        except FileNotFoundError:
            continue  # deleted meanwhile
        except OSError as error:
            yield ScannedPlace(place=str(path), bytes=0, problem=str(error))


def _files_in(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_file():
            yield place
        for parent, _, names in os.walk(place):
            yield from filter(Path.is_file, (Path(parent, name) for name in sorted(names)))


def chunks_of(path: Path, forms: Forms) -> Iterator[bytes]:
    """The bytes of a file, without zeros at both ends, in chunks that overlap, so that forms are not cut."""
    kept, overlap = b"", max((len(form) for _, form in forms), default=1) - 1
    with path.open("rb") as file:
        while data := file.read(_CHUNK_BYTES):
            chunk = kept + data
            kept = chunk[len(chunk) - overlap :]
            if content := chunk.strip(b"\0"):
                yield b"\0%b\0" % content  # in UTF-16, a letter may begin or end with a zero


def _rows_of(path: Path) -> Iterator[bytes]:
    """The rows of a SQLite file; empty for another file. A long row is stored in several pages, so no page has all of a
    text."""
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            return
    with suppress(sqlite3.Error), closing(connect(path, "ro", _WAIT_SECONDS)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                yield b"\n".join(value if isinstance(value, bytes) else str(value).encode() for value in row)
                for value in row:
                    if isinstance(value, bytes) and value.startswith(_COMPRESSED):
                        with suppress(zlib.error):
                            yield zlib.decompress(value)


if __name__ == "__main__":
    forms = forms_of(json.load(sys.stdin))
    sys.stdout.buffer.write(PLACES.dump_json([*scan_files(sys.argv[1:], forms)]))
