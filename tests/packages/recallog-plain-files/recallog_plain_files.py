"""A ledger in plain files: `files:///var/lib/village`. A line of `records` is a record, and its number is the offset.

A line has the time at which the record was appended, the space and the id as JSON, and the bytes of the event. Tabs
separate them, which canonical events do not contain.
"""

import asyncio
import fcntl
import json
import os
import secrets
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from recallog import Batch, Event, Position, SettingsError
from recallog.extending import AdapterSettings, Ledger, Manifest, Opener, Times, check_repeat, parts_of
from recallog_schemas import limits


class Line(NamedTuple):
    """A record."""

    appended: int
    space: str
    id: str
    data: bytes

    @classmethod
    def parsed(cls, line: bytes) -> "Line":
        appended, names, data = line.rstrip(b"\n").split(b"\t", 2)
        return cls(int(appended), *json.loads(names), data)

    def written(self) -> bytes:
        return b"%d\t%s\t%s\n" % (self.appended, json.dumps([self.space, self.id]).encode(), self.data)


class FileLedger(Ledger):
    """One partition. Writers take turns by a lock of the file, and cut off what a killed one has left of a line."""

    unique_ids = True

    def __init__(self, folder: Path) -> None:
        self._file, self._identity = folder / "records", folder / "id"
        self._lines: list[Line] = []
        self._read_bytes = 0
        self._refreshing = threading.Lock()
        self._offsets: dict[tuple[str, str], int] = {}

    @property
    def location(self) -> str:
        return str(self._file)

    async def open(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if not self._identity.exists():
            with self._locked():
                if not self._identity.exists():
                    new = self._identity.with_suffix(".new")
                    new.write_text(secrets.token_hex(16))
                    new.rename(self._identity)

    async def manifest(self) -> Manifest:
        await self.open()
        return Manifest(ledger=f"files:{self._identity.read_text()}", partitions=1, partitioner="one")

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The descriptor of the file, while no other process writes."""
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    def _refresh(self) -> None:
        """Read the lines that are new since the last call. One without an end is not a record."""
        if not self._file.exists() or self._file.stat().st_size == self._read_bytes:
            return
        with self._refreshing, self._file.open("rb") as file:  # an append does so in a thread
            file.seek(self._read_bytes)
            for line in file:
                if line.endswith(b"\n"):
                    record = Line.parsed(line)
                    self._offsets.setdefault((record.space, record.id), len(self._lines))
                    self._lines.append(record)
                    self._read_bytes += len(line)

    async def append(self, events: Sequence[Event], appended: Times = None) -> list[Position]:
        values = await self.encode(events, appended)
        await self.open()
        self._refresh()
        firsts = [self._offsets[name] for name in map(_name_of, events) if name in self._offsets]
        opened = await self.sealing.opener([*(data for data, _ in values), *(self._lines[at].data for at in firsts)])
        return await asyncio.to_thread(self._write, events, values, opened)

    def _write(self, events: Sequence[Event], values: Sequence[tuple[bytes, int]], opened: Opener) -> list[Position]:
        with self._locked() as descriptor:
            self._refresh()
            os.ftruncate(descriptor, self._read_bytes)
            offsets, new, end = [], dict[tuple[str, str], Line](), len(self._lines)
            for event, (data, time) in zip(events, values, strict=True):
                name = _name_of(event)
                if (offset := self._offsets.get(name)) is not None:
                    check_repeat(event, data, self._lines[offset].data, Position(0, offset), opened)
                elif name in new:
                    check_repeat(event, data, new[name].data, None, opened)
                    offset = end + [*new].index(name)
                else:
                    offset = end + len(new)
                    new[name] = Line(time, *name, data)
                offsets.append(offset)
            rest = b"".join(line.written() for line in new.values())
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
            self._refresh()
        return [Position(0, offset) for offset in offsets]

    async def ends(self) -> list[int]:
        self._refresh()
        return [len(self._lines)]

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        self._refresh()
        while start < until:
            following = min(start + limits.READ_BATCH_RECORDS, until)
            chosen = [at for at in range(start, following) if space is None or self._lines[at].space == space]
            records, appended = (
                [(at, self._lines[at].data) for at in chosen],
                [self._lines[at].appended for at in chosen],
            )
            batch = Batch(partition, start, following, records, appended=appended)
            for part in parts_of(batch, None, limits.READ_BATCH_BYTES):
                yield await self.unseal(part)
            start = following

    async def find(self, space: str, id: str) -> Position | None:  # noqa: A002
        self._refresh()
        offset = self._offsets.get((space, id))
        return None if offset is None else Position(0, offset)

    def partition_of(self, space: str) -> int:
        return 0

    async def size_bytes(self) -> int:
        return self._file.stat().st_size if self._file.exists() else 0

    async def close(self) -> None:
        await self.sealing.close()


def _name_of(event: Event) -> tuple[str, str]:
    return event.space, event.id


def open_ledger(url: str, settings: AdapterSettings) -> FileLedger:
    """The ledger in the folder that a URL names. Raises `SettingsError`."""
    folder = urlsplit(url).path
    if not folder:
        raise SettingsError(f"RECALLOG_LEDGER: {url}: name a folder, for example files:///var/lib/village")
    return FileLedger(Path(folder))
