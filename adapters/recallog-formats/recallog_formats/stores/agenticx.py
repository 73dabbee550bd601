"""AgenticX: a workspace of Markdown files, the database of sessions, and the messages of sessions."""

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from recallog import InvalidArgument, InvalidEvent
from recallog_formats.stores import databases
from recallog_formats.stores.conversations import conversation_rows
from recallog_formats.stores.json_files import list_in, load_json
from recallog_formats.stores.store import (
    Destination,
    Fields,
    LeftOutRow,
    StoreFormat,
    StoreRow,
    json_object,
    make_entry,
    make_item,
    map_row,
)

_MARKS = ("MEMORY.md", "IDENTITY.md", "USER.md", "SOUL.md")
"""A folder with one of these files is a workspace."""
_FILE = "messages.json"
_RESERVED = ("subagent_result::", "delegation_result::", "__")


def _scratchpad(row: Fields, into: Destination) -> dict[str, Any]:
    if str(row["key"]).startswith(_RESERVED):
        raise LeftOutRow("a reserved key, which the system writes")
    return make_item(into, ["session", row["session_id"]], row["key"], row["value"], row.get("updated_at"))


def _summary(row: Fields, into: Destination) -> dict[str, Any]:
    metadata = json_object(row.get("metadata")) | {"session": row["session_id"]}
    return make_entry(row, into, row["summary"], type="summary", metadata=metadata)


_TABLES: databases.Tables = {"session_summaries": _summary, "scratchpad": _scratchpad}
_MESSAGES = "session_messages"
_LEFT_OUT = {"todos": "lists of tasks have no counterpart"}


def _documents(path: Path) -> list[tuple[str, Path]]:
    """The Markdown files of the workspace with their keys: of the path itself, or of its folder `workspace`."""
    for folder in (path, path / "workspace"):
        if any((folder / name).is_file() for name in _MARKS):
            return [(str(each.relative_to(folder)), each) for each in sorted(folder.rglob("*.md"))]
    return []


def _document(row: Fields, into: Destination) -> dict[str, Any]:
    file: Path = row["file"]
    try:
        if file.is_symlink():
            raise LeftOutRow("a symbolic link, which may lead out of the folder")
        if file.is_dir():
            raise LeftOutRow("a folder")
        text, at = file.read_text(encoding="utf-8"), file.stat().st_mtime
    except OSError as error:
        raise ValueError(f"cannot read it: {error.strerror}") from None
    return make_item(into, ["workspace"], row["key"], text, at)


def _read(path: Path, into: Destination) -> Iterator[StoreRow]:
    whole = path.resolve()  # the folder of a file names its session, also if the path does not
    files = sorted(whole.rglob(_FILE)) if path.is_dir() else [whole] * (path.name == _FILE)
    found, unreadable = databases.databases_in(path)
    stores = [each for each, names in found.items() if names & _TABLES.keys()]
    documents = _documents(path)
    if not stores and not files and not documents:
        expected = f"a folder with workspace/{_MARKS[0]}, sessions.sqlite or messages.json"
        raise InvalidArgument(f"{path} is not a store of AgenticX: expected {expected}", path="PATH")
    yield from unreadable
    for file in files:
        yield from _messages(file, into)
    done = {file.parent.name for file in files}
    for store in stores:
        with databases.snapshot_of(store) as connection:
            yield from _database(connection, done, into)
    for key, file in documents:
        yield map_row(f"document {key}", {"key": key, "file": file}, _document, into)


def _messages(file: Path, into: Destination) -> Iterator[StoreRow]:
    """The events of a session, whose name is that of the folder of the file."""
    try:
        messages = list_in(load_json(file, "a list of messages"), "messages")
    except InvalidArgument as error:
        yield StoreRow(f"session {file.parent.name}", error=InvalidEvent(str(error), rule="unparsable"))
        return
    yield from conversation_rows(file.parent.name, messages or [], into)


def _database(connection: sqlite3.Connection, done: set[str], into: Destination) -> Iterator[StoreRow]:
    """The rows of a database, with the messages of sessions that have no file: the table is an index of the files."""
    yield from databases.table_rows(connection, _TABLES, into)
    yield from databases.left_out_tables(connection, {*_TABLES, _MESSAGES}, _LEFT_OUT)
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [_MESSAGES]).fetchone():
        return
    yield from databases.until_damage(_MESSAGES, _messages_of_table(connection, done, into))


def _messages_of_table(connection: sqlite3.Connection, done: set[str], into: Destination) -> Iterator[StoreRow]:
    rows = connection.execute(f"SELECT session_id, role, content, timestamp FROM {_MESSAGES} ORDER BY session_id, id")
    for session, messages in groupby(rows, itemgetter("session_id")):
        if session not in done:
            fields = ("role", "content", "timestamp")
            yield from conversation_rows(session, [{name: row[name] for name in fields} for row in messages], into)


STORE = StoreFormat(
    "agenticx",
    "a folder with the workspace, sessions.sqlite and messages.json (~/.agenticx), or one of them",
    "messages and summaries of sessions; with --trust agent scratchpads and the documents of the workspace",
    "the index main.sqlite, todos, reserved keys of scratchpads",
    _read,
)
