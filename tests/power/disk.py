"""A disk that keeps only what it has promised: the model of POSIX, without what file systems add to it.

* A sync of a file makes all its earlier writes and its size safe. It does not make its name safe.
* A sync of a folder makes the names in it safe, as they were.
* Everything else may have reached the disk or not, each sector of a write and each change of a name by itself. A file
  may have its new size and zeros in place of what was written.
* A sector is written whole or not at all, and names change at once: a renamed file has the old name or the new one.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from power.trace import Entry

SECTOR = 512
_HOLE = bytes(1 << 16)


@dataclass(slots=True)
class _Write:
    number: int
    offset: int
    data: bytes


@dataclass(slots=True)
class _Size:
    number: int
    size: int


@dataclass(slots=True)
class File:
    """A file by what was written and what is safe."""

    content: bytearray = field(default_factory=bytearray)
    safe: bytearray = field(default_factory=bytearray)
    pending: list[_Write | _Size] = field(default_factory=list)

    def write(self, number: int, offset: int, data: bytes) -> None:
        # What was read from a mapping is the whole file: only what is new was written.
        if bytes(self.content[offset : offset + len(data)]) == data:
            return
        if len(data) > SECTOR:
            data, offset = _changed(self.content, offset, data)
        self.pending.append(_Write(number, offset, data))
        _put(self.content, offset, data)

    def resize(self, number: int, size: int) -> None:
        if size != len(self.content):
            self.pending.append(_Size(number, size))
            _resize(self.content, size)

    def sync(self, before: int) -> None:
        """Everything that was done before the record `before` is safe."""
        for each in self.pending:
            if each.number < before:
                _apply(self.safe, each)
        self.pending = [each for each in self.pending if each.number >= before]

    def drawn(self, rng: random.Random, chance: float) -> bytearray:
        """What may be there afterwards: what is safe, and each pending sector with this chance."""
        if not self.pending:
            return self.safe
        found = bytearray(self.safe)
        for each in self.pending:
            if isinstance(each, _Size):
                if rng.random() < chance:
                    _resize(found, each.size)
                continue
            for start, part in _sectors(each):
                if rng.random() < chance:
                    _put(found, start, part)
        if len(found) < len(self.content) and rng.random() < chance / 2:
            _resize(found, len(self.content))
        return found


@dataclass(slots=True)
class Folder:
    """A folder by the names in it: those that programs see, and those that are safe."""

    names: dict[str, "Node"] = field(default_factory=dict)
    safe: dict[str, "Node"] = field(default_factory=dict)
    pending: list[tuple[int, dict[str, "Node | None"]]] = field(default_factory=list)
    """Changes at once: each name with its file, or None."""

    def change(self, number: int, **names: "Node | None") -> None:
        self.pending.append((number, names))
        _rename(self.names, names)

    def sync(self, before: int) -> None:
        for number, names in self.pending:
            if number < before:
                _rename(self.safe, names)
        self.pending = [each for each in self.pending if each[0] >= before]

    def drawn(self, rng: random.Random, chance: float) -> dict[str, "Node"]:
        found = dict(self.safe)
        for _, names in self.pending:
            if rng.random() < chance:
                _rename(found, names)
        return found


Node = File | Folder


class Disk:
    """The files under `root`, which exists and is safe. Records are applied one by one."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self.root = Folder()
        self._inodes: dict[int, Node] = {}
        self._syncs: dict[int, int] = {}
        self._number = 0

    def apply(self, entry: Entry) -> None:
        """Apply the next record."""
        self._number += 1
        number, inode = self._number, entry.inode
        match entry.op:
            case "w":
                self._file(inode).write(number, entry.offset, entry.first)
            case "t":
                self._file(inode).resize(number, entry.size)
            case "f":
                file = self._file(inode)
                file.resize(number, max(entry.size, len(file.content)))
            case "o":
                self._opened(number, entry)
            case "d":
                folder, name = self._place(entry.first)
                folder.change(number, **{name: self._new(inode, Folder())})
            case "u":
                folder, name = self._place(entry.first)
                folder.change(number, **{name: None})
            case "l":
                folder, name = self._place(entry.second)
                folder.change(number, **{name: self._at(entry.first)})
            case "r":
                self._renamed(number, entry)
            case "b":
                self._syncs[entry.size] = number
            case "e":
                self._synced(inode, self._syncs.pop(entry.size))

    def write(self, target: Path, rng: random.Random, chance: float) -> None:
        """Write the files as they may be after a power failure now; with chance 1 as programs see them."""
        if chance >= 1:
            _copy(self.root, target, lambda folder: folder.names, lambda file: file.content)
        else:
            _copy(self.root, target, lambda each: each.drawn(rng, chance), lambda each: each.drawn(rng, chance))

    def _opened(self, number: int, entry: Entry) -> None:
        folder, name = self._place(entry.first)
        if name not in folder.names:
            folder.change(number, **{name: self._new(entry.inode, File())})
        elif entry.size:
            self._file(entry.inode).resize(number, 0)

    def _renamed(self, number: int, entry: Entry) -> None:
        (old, old_name), (new, new_name) = self._place(entry.first), self._place(entry.second)
        moved = self._at(entry.first)
        if old is new:
            old.change(number, **{new_name: moved, old_name: None})
        else:
            new.change(number, **{new_name: moved})
            old.change(number, **{old_name: None})

    def _synced(self, inode: int, begun: int) -> None:
        if (node := self._inodes.get(inode)) is not None:
            node.sync(begun)
        # A folder is known by the call that made it; the root was there before.
        else:
            self.root.sync(begun)

    def _new(self, inode: int, node: Node) -> Node:
        self._inodes[inode] = node
        return node

    def _file(self, inode: int) -> File:
        found = self._inodes[inode]
        assert isinstance(found, File)
        return found

    def _at(self, path: bytes) -> Node:
        folder, name = self._place(path)
        return folder.names[name]

    def _place(self, path: bytes) -> tuple[Folder, str]:
        parts = Path(path.decode()).relative_to(self._root).parts
        folder: Node = self.root
        for part in parts[:-1]:
            assert isinstance(folder, Folder)
            folder = folder.names[part]
        assert isinstance(folder, Folder)
        return folder, parts[-1]


def _copy(
    folder: Folder,
    target: Path,
    names: Callable[[Folder], dict[str, Node]],
    content: Callable[[File], bytearray],
) -> None:
    target.mkdir()
    for name, node in names(folder).items():
        if isinstance(node, Folder):
            _copy(node, target / name, names, content)
        else:
            _write(target / name, content(node))


def _write(path: Path, content: bytearray) -> None:
    """Write a file with holes: the library makes files of 32 MB that are empty."""
    with path.open("wb") as file:
        for start in range(0, len(content), len(_HOLE)):
            part = content[start : start + len(_HOLE)]
            if part != _HOLE[: len(part)]:
                file.seek(start)
                file.write(part)
        file.truncate(len(content))


def _apply(content: bytearray, done: _Write | _Size) -> None:
    if isinstance(done, _Size):
        _resize(content, done.size)
    else:
        _put(content, done.offset, done.data)


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        _resize(content, offset)
    content[offset : offset + len(data)] = data


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def _rename(names: dict[str, Node], changed: dict[str, Node | None]) -> None:
    for name, node in changed.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _sectors(write: _Write) -> Iterable[tuple[int, bytes]]:
    at = 0
    while at < len(write.data):
        until = min((write.offset + at) // SECTOR * SECTOR + SECTOR - write.offset, len(write.data))
        yield write.offset + at, write.data[at:until]
        at = until


def _changed(content: bytearray, offset: int, data: bytes) -> tuple[bytes, int]:
    """The part of a long write from its first sector that differs to its last: `(data, offset)`."""
    old = bytes(content[offset : offset + len(data)])
    starts = range(0, len(data), SECTOR)
    differ = [start for start in starts if data[start : start + SECTOR] != old[start : start + SECTOR]]
    first, last = differ[0], differ[-1] + SECTOR
    return data[first:last], offset + first
