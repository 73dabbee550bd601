"""One damage of one file, drawn from a seed: which file, what is changed, and where."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recallog import layout
from recallog.composition import REACTORS

PAGE_BYTES = 4096
_LOG_BYTES, _FRAME_BYTES = 32, 24
"""The headers of a write-ahead log and of each of its frames."""
_NAMED = (
    *(layout.LEDGER, layout.views_file(), layout.views_file("topics"), str(layout.INDEX_ROWS)),
    *(layout.views_lock(), layout.views_lock("topics"), layout.lock_file(REACTORS)),
    *(str(layout.INDEX_LOCK), str(layout.INDEX_ADDRESS), str(layout.INDEX_LOG)),
)
KINDS = {
    "flip_bit": 6,
    "flip_byte": 4,
    "flip_several": 4,
    "zero_page": 3,
    "garbage_page": 2,
    "swap_pages": 3,
    "swap_ranges": 2,
    "roll_back_page": 3,
    "roll_back_file": 2,
    "truncate": 3,
    "extend": 2,
    "empty": 1,
    "delete": 2,
    "garbage": 1,
}
"""What is done with a file, with its weight."""
_WRITTEN_SHARE = 0.9
"""How many of the places are drawn among bytes that are not zero: much of a file of the engine is never read."""


@dataclass(frozen=True)
class Mutation:
    """A damage of a file of a folder; `at` and `values` are of its kind."""

    file: str
    kind: str
    at: tuple[int, ...] = ()
    values: tuple[int, ...] = ()

    def __str__(self) -> str:
        where = f" at {', '.join(map(str, self.at))}" if self.at else ""
        how = f" with {', '.join(map(str, self.values))}" if self.values else ""
        return f"{self.kind} {self.file}{where}{how}"

    def document(self) -> dict[str, Any]:
        """The damage as JSON has it."""
        return asdict(self)

    def apply(self, home: Path, older: Path) -> None:
        """Damage the file in `home` in place; `older` is an earlier copy of the folder."""
        path = home / self.file
        if self.kind == "delete":
            path.unlink()
        elif self.kind == "roll_back_file" and (older / self.file).exists():
            with path.open("r+b") as file:
                file.truncate()
                file.write((older / self.file).read_bytes())
        elif self.kind == "roll_back_file":
            path.unlink()
        else:
            data = bytearray(path.read_bytes())
            self._change(data, older / self.file)
            with path.open("r+b") as file:  # in place: the inode stays, as when a disk fails
                file.write(data)
                file.truncate()

    def _change(self, data: bytearray, older: Path) -> None:
        match self.kind:
            case "flip_bit" | "flip_byte" | "flip_several":
                for at, value in zip(self.at, self.values, strict=True):
                    data[at] ^= value
            case "zero_page":
                (at,) = self.at
                data[at : at + PAGE_BYTES] = bytes(len(data[at : at + PAGE_BYTES]))
            case "garbage_page" | "garbage":
                (at,), (seed,) = self.at, self.values
                length = len(data) if self.kind == "garbage" else len(data[at : at + PAGE_BYTES])
                data[at : at + length] = random.Random(seed).randbytes(length)
            case "swap_pages" | "swap_ranges":
                first, second = self.at
                (length,) = self.values
                data[first : first + length], data[second : second + length] = (
                    data[second : second + length],
                    data[first : first + length],
                )
            case "roll_back_page":
                (at,) = self.at
                before = older.read_bytes()[at : at + PAGE_BYTES] if older.exists() else b""
                data[at : at + len(before)] = before
            case "truncate":
                (at,) = self.at
                del data[at:]
            case "extend":
                (seed, length) = self.values
                data += random.Random(seed).randbytes(length) if seed else bytes(length)
            case "empty":
                data.clear()
            case _:
                raise ValueError(self.kind)


def draw(rng: random.Random, home: Path, files: Sequence[str]) -> Mutation:
    """A damage of one of the files. Each group of files has the same chance, whatever the size and number of files."""
    groups: dict[str, list[str]] = {}
    for file in files:
        groups.setdefault(_group(file), []).append(file)
    weights = [_weight(group) for group in groups]
    file = rng.choice(groups[rng.choices(list(groups), weights)[0]])
    data = (home / file).read_bytes()
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    if not data and kind not in ("extend", "delete"):
        kind = "extend"
    return Mutation(file, kind, *_places(rng, kind, file, data))


def _group(file: str) -> str:
    """The name of the group of a file: files of the engine are one group by suffix, all others one each."""
    return f"engine {Path(file).suffix}" if file.startswith(str(layout.INDEX_ENGINE)) else file


def _weight(group: str) -> float:
    """How often a group is drawn: most often what has the ledger and the views."""
    name = group.removesuffix("-wal")
    if name == layout.LEDGER:
        return 4
    if name in (layout.views_file(), layout.views_file("topics"), str(layout.INDEX_ROWS)):
        return 3
    if group.startswith("engine"):
        return 1
    return 0.3


def _places(rng: random.Random, kind: str, file: str, data: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    size = len(data)
    match kind:
        case "flip_bit":
            return (_place(rng, data),), (1 << rng.randrange(8),)
        case "flip_byte":
            return (_place(rng, data),), (rng.randrange(1, 256),)
        case "flip_several":
            first, count = _place(rng, data), rng.randrange(2, 9)
            near = rng.random() < 0.5
            places = {min(size - 1, first + n) if near else _place(rng, data) for n in range(count)}
            return tuple(sorted(places)), tuple(rng.randrange(1, 256) for _ in places)
        case "zero_page" | "roll_back_page":
            return (_page(rng, file, data),), ()
        case "garbage_page":
            return (_page(rng, file, data),), (rng.randrange(1, 1 << 30),)
        case "garbage":
            return (0,), (rng.randrange(1, 1 << 30),)
        case "swap_pages":
            return (_page(rng, file, data), _page(rng, file, data)), (PAGE_BYTES,)
        case "swap_ranges":
            length = rng.randrange(1, min(256, size // 2) + 1) if size > 1 else 1
            first, second = sorted(min(_place(rng, data), size - length) for _ in range(2))
            return (max(0, first), max(0, second)), (min(length, max(1, second - first)),)
        case "truncate":
            return (rng.choice((rng.randrange(size), rng.randrange(size) // PAGE_BYTES * PAGE_BYTES)),), ()
        case "extend":
            length = rng.choice((1, rng.randrange(1, PAGE_BYTES), PAGE_BYTES, 5 * PAGE_BYTES))
            return (), (rng.choice((0, rng.randrange(1, 1 << 30))), length)
        case _:
            return (), ()


def _place(rng: random.Random, data: bytes) -> int:
    """A place in the file, mostly one that is not zero."""
    written = np.flatnonzero(np.frombuffer(data, np.uint8))
    if len(written) and rng.random() < _WRITTEN_SHARE:
        return int(written[rng.randrange(len(written))])
    return rng.randrange(len(data))


def _page(rng: random.Random, file: str, data: bytes) -> int:
    """The start of a page of a file, or of that in a frame of a write-ahead log."""
    place = _place(rng, data)
    if not file.endswith("-wal"):
        return place // PAGE_BYTES * PAGE_BYTES
    frame_bytes = _FRAME_BYTES + PAGE_BYTES
    return min(len(data) - 1, max(0, place - _LOG_BYTES) // frame_bytes * frame_bytes + _LOG_BYTES + _FRAME_BYTES)
