"""A disk that fails on demand: connections to real SQLite files whose statements raise the errors of a bad disk.

The files and all answers are SQLite's own. Only the errors are injected, with the codes that SQLite uses for them:
before a statement (nothing was written), or after a commit (everything was written, and the caller did not learn it).
"""

import contextvars
import random
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import unquote

PROGRAM: contextvars.ContextVar[str] = contextvars.ContextVar("program", default="")
"""The program of the current task: its connections end when it is killed."""

_WRITES = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER")

connect = sqlite3.connect
"""The real one, for what is outside of the simulation."""


class Fault(Enum):
    """What the disk does with the statements of one file."""

    FULL = "full"
    READ_ONLY = "read-only"
    IO = "I/O errors"
    UNKNOWN = "commits of unknown outcome"


class Killed(BaseException):
    """Raised by statements of a program that was killed."""


class FaultyConnection(sqlite3.Connection):
    """A connection whose statements fail as the disk says. It never waits for a lock: the clock is a virtual one."""

    disk: "Disk"

    def __init__(self, database: str, **options: Any) -> None:
        if PROGRAM.get() in self.disk.dead:
            raise Killed
        super().__init__(database, **{**options, "timeout": 0})
        name = Path(unquote(database.removeprefix("file:").partition("?")[0]))
        self.path = name
        self.program = PROGRAM.get()
        self.writes = False
        self.dead = False
        self.disk.connections.append(self)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self._may_fail(sql)
        try:
            return super().execute(sql, parameters)
        finally:
            self._has_run(sql)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        self._may_fail(sql)
        return super().executemany(sql, parameters)

    def executescript(self, sql: str, /) -> sqlite3.Cursor:
        self._may_fail("CREATE")
        return super().executescript(sql)

    def close(self) -> None:
        if not self.dead and self in self.disk.connections:
            self.disk.connections.remove(self)
            super().close()

    def abandon(self) -> None:
        """End it as the death of its program does; `Disk.kill` puts back what closing it writes."""
        self.disk.connections.remove(self)
        super().close()
        self.dead = True

    def _may_fail(self, sql: str) -> None:
        if self.dead:
            raise Killed
        if sql.startswith(_WRITES):
            self.writes = True
        if sql != "ROLLBACK":
            self.disk.may_fail(self, sql)

    def _has_run(self, sql: str) -> None:
        if sql in ("COMMIT", "ROLLBACK"):
            wrote, self.writes = self.writes, False
            if sql == "COMMIT" and wrote:
                self.disk.may_fail_after_commit(self)


class Disk:
    """The faults of the files of one folder, each active with a probability for every statement."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.connections: list[FaultyConnection] = []
        self.faults: dict[str, dict[Fault, float]] = defaultdict(dict)
        """By the beginning of the file's name."""
        self.dead: set[str] = set()
        """The programs that were killed: they do nothing any more."""

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Every connection that is opened within it is one of this disk."""
        here = type("Connection", (FaultyConnection,), {"disk": self})
        with mock.patch.object(
            sqlite3, "connect", lambda database, **options: connect(database, factory=here, **options)
        ):
            yield

    def may_fail(self, connection: FaultyConnection, sql: str) -> None:
        for fault, chance in self._faults_of(connection):
            commits = sql == "COMMIT" and connection.writes
            writes = commits or sql.startswith(_WRITES)
            if fault is Fault.READ_ONLY and writes:
                raise _error(sqlite3.SQLITE_READONLY, "attempt to write a readonly database")
            if self.rng.random() >= chance:
                continue
            if fault is Fault.FULL and writes:
                self._maybe_roll_back(connection)
                raise _error(sqlite3.SQLITE_FULL, "database or disk is full")
            if fault is Fault.IO:
                self._maybe_roll_back(connection)
                raise _error(sqlite3.SQLITE_IOERR_WRITE if writes else sqlite3.SQLITE_IOERR_READ, "disk I/O error")
            if fault is Fault.UNKNOWN and commits:  # before the sync that failed, some frames were written or none
                self._maybe_roll_back(connection)
                raise _error(sqlite3.SQLITE_IOERR_FSYNC, "disk I/O error")

    def may_fail_after_commit(self, connection: FaultyConnection) -> None:
        for fault, chance in self._faults_of(connection):
            if fault is Fault.UNKNOWN and self.rng.random() < chance:
                raise _error(sqlite3.SQLITE_IOERR_FSYNC, "disk I/O error")

    def kill(self, programs: Iterable[str]) -> None:
        """Kill -9: the files stay as they are now, without what a clean close would write."""
        names = set(programs)
        self.dead |= names
        killed = [each for each in self.connections if each.program in names]
        for path in {each.path for each in killed}:
            last = all(each.program in names for each in self.connections if each.path == path)
            files = [path, Path(f"{path}-wal"), Path(f"{path}-shm")] if last else []
            before = [(file, file.read_bytes()) for file in files if file.exists()]
            for each in [each for each in killed if each.path == path]:
                each.abandon()
            for file, data in before:
                file.write_bytes(data)

    def _faults_of(self, connection: FaultyConnection) -> list[tuple[Fault, float]]:
        name = connection.path.name
        return [item for file, faults in self.faults.items() if name.startswith(file) for item in faults.items()]

    def _maybe_roll_back(self, connection: FaultyConnection) -> None:
        """SQLite rolls some transactions back by itself."""
        if connection.in_transaction and self.rng.random() < 0.5:
            sqlite3.Connection.execute(connection, "ROLLBACK")


def _error(code: int, message: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error
