"""The folders that are damaged, all with the events of `story`.

older    half of the events, closed
closed   all events, closed: no write-ahead logs
killed   all events, the second half in write-ahead logs: the process was killed
behind   as killed; neither the views nor the index have processed the last batch
served   as closed, with an index that a process of its own serves, with a real model of few words
"""

import asyncio
import os
import re
import shutil
import signal
import sqlite3
import traceback
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flip.memories import in_process, served
from flip.story import BATCHES, batches
from recallog import layout
from recallog.composition import REACTORS
from recallog.index.semantic_index import IndexInProcess
from support import tiny_onnx

HALF = BATCHES // 2
_BLOCK_BYTES = 1 << 16
STATES = ("closed", "killed", "behind")
SERVED = "served"
VIEWS = (layout.views_file(), layout.views_file("topics"))
"""The files of views whose rows are compared with those that the folder ever had."""


@dataclass
class Folders:
    """The folders in `root`, and what their views ever contained."""

    root: Path
    history: dict[str, set[tuple[object, ...]]] = field(default_factory=dict)
    """By file: each row of each table that a commit left there, with the table's name."""

    def of(self, state: str) -> Path:
        return self.root / state

    @property
    def model(self) -> Path:
        """The model of the served index."""
        return self.root / "model"


def build(root: Path) -> Folders:
    """Write the folders. Each step is a process of its own, which is killed for folders of killed processes."""
    folders = Folders(root)
    in_child(lambda: _publish(folders.of("older"), range(HALF), BATCHES, die=False))
    for state in STATES:
        copy(folders.of("older"), folders.of(state))
    later = range(HALF, BATCHES)
    in_child(lambda: _publish(folders.of("closed"), later, BATCHES, die=False))
    in_child(lambda: _publish(folders.of("killed"), later, BATCHES, die=True))
    in_child(lambda: _publish(folders.of("behind"), later, BATCHES - 1, die=True))
    in_child(lambda: _serve(folders))
    for state in ("older", *STATES, SERVED):
        folders.of(state).rename(root / "dense")
        copy(root / "dense", folders.of(state))
        shutil.rmtree(root / "dense")
    for home in (folders.of(state) for state in (*STATES, SERVED)):
        (home / layout.INDEX_ADDRESS).write_text('{"socket":"/nowhere","token":"0123456789abcdef","pid":99999999}')
        (home / layout.INDEX_LOG).write_text("2026-03-01 06:00:00 INFO recallog.index started\n")
        (home / layout.INDEX_LOCK).touch()
        (home / layout.lock_file(REACTORS)).touch()
    return opened(root)


def opened(root: Path) -> Folders:
    """The folders that an earlier run wrote."""
    folders = Folders(root)
    for name in VIEWS:
        folders.history[name] = {
            row for state in ("older", *STATES) for row in _recorded(_history_of(folders.of(state)), name)
        }
    return folders


def copy(source: Path, target: Path) -> None:
    """Copy a folder as it is, without the parts of its files that are zeros: those of the engine are mostly zeros."""
    shutil.copytree(source, target, copy_function=_copy_file)


def _copy_file(source: str, target: str) -> None:
    with Path(source).open("rb", buffering=0) as whole, Path(target).open("wb", buffering=0) as copied:
        size = os.fstat(whole.fileno()).st_size
        copied.truncate(size)
        at = 0
        while at < size:
            try:
                at = os.lseek(whole.fileno(), at, os.SEEK_DATA) // _BLOCK_BYTES * _BLOCK_BYTES
            except OSError:  # only zeros follow
                break
            block = os.pread(whole.fileno(), _BLOCK_BYTES, at)
            if block.count(0) < len(block):
                os.pwrite(copied.fileno(), block, at)
            at += len(block)


def files_of(home: Path) -> list[str]:
    """All files of a folder, relative to it."""
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def rows_of(path: Path) -> Iterator[tuple[object, ...]]:
    """Each row of each table of an SQLite file that has no other user, with the table's name."""
    connection = sqlite3.connect(path)
    try:
        connection.text_factory = bytes
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for row in connection.execute(f'SELECT * FROM "{table.decode()}"'):
                yield (table, *row)
    finally:
        connection.close()


def in_child(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `work` in a child of this process. Raises `RuntimeError` if it fails."""
    child = os.fork()
    if not child:
        code = 1
        try:
            asyncio.run(work())
            code = 0
        except BaseException:  # noqa: BLE001 - its parent raises
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status not in (0, signal.SIGKILL):
        raise RuntimeError(f"a folder cannot be built: status {status}")


async def _publish(home: Path, numbers: range, folded: int, *, die: bool) -> None:
    """Publish batches; fold and index those before `folded`, and record the rows of the views after each."""
    history = _history_of(home)
    history.mkdir()
    async with in_process(home, follow=False) as memory:
        index = memory._components.index
        assert isinstance(index, IndexInProcess)
        for number in numbers:
            await memory.publish_many(batches()[number])
            if number < folded:
                await memory.catch_up()
                await (await index.indexer.views(0)).access.active(0, None)
                _record(home, history, number)
        if die:
            os.kill(os.getpid(), signal.SIGKILL)


async def _serve(folders: Folders) -> None:
    """Write the folder whose index another process serves."""
    words = {word for batch in batches() for event in batch for word in re.findall("[a-z]+", event.text.lower())}
    tiny_onnx.save(folders.model, sorted(words))
    copy(folders.of("closed"), folders.of(SERVED))
    shutil.rmtree(folders.of(SERVED) / layout.INDEX)
    async with served(folders.of(SERVED), folders.model) as memory:
        await memory.catch_up_index()


def _history_of(home: Path) -> Path:
    return home.with_name(f"history-{home.name}")


def _record(home: Path, history: Path, number: int) -> None:
    for name in VIEWS:
        for suffix in ("", "-wal"):
            if (home / f"{name}{suffix}").exists():
                shutil.copyfile(home / f"{name}{suffix}", history / f"{number}-{name}{suffix}")


def _recorded(history: Path, name: str) -> Iterator[tuple[object, ...]]:
    for path in history.glob(f"*-{name}"):
        yield from rows_of(path)
