"""The files that `recallog ingest` reads: named files, stdin, and files of known formats in folders and archives.
Compressed files are read directly."""

import gzip
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from recallog_schemas.errors import InvalidArgument, InvalidEvent, InvalidInput
from recallog_service.formats import Format, Source, registry
from recallog_service.formats.source import Sample

STDIN = "-"
UNPACKED_BYTES_MAX = 2 * 1024**3
"""Maximum size of an unpacked file, and of all members of an archive together."""
UNPACKED_BYTES_SMALL = 64 * 1024**2
UNPACKED_RATIO_MAX = 250
"""Maximum expansion of a file that is not small: logs expand by 10 to 50, a decompression bomb by 1,000."""
MEMBERS_MAX = 100_000

_ARCHIVE = ".zip"
Lines = Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read, and its format."""

    name: str
    format: Format
    lines: Lines
    sampled: Source | None = None
    """The source by which the format was recognised, if it is still open."""

    def source(self) -> Source:
        return self.sampled or Source(self.lines())


@dataclass(slots=True)
class InputFiles:
    """The files to read, and the files that are left out."""

    files: list[InputFile] = field(default_factory=list)
    """The files to read; those of a folder in the order of their times."""
    unrecognised: list[str] = field(default_factory=list)
    """Files of folders in unknown formats."""
    blank: list[str] = field(default_factory=list)
    """Files of folders without a record."""
    refused: dict[str, InvalidInput] = field(default_factory=dict)
    """Files among others that cannot be read, with the reasons."""

    def add(self, others: "InputFiles") -> None:
        """Add the files of a folder."""
        self.files += others.files
        self.unrecognised += others.unrecognised
        self.blank += others.blank
        self.refused |= others.refused


def input_files(names: Sequence[str], chosen: Format | None = None) -> InputFiles:
    """The files to read. `chosen` is the format of all files; None: it is recognised.

    Raises `InvalidArgument` for a file that does not exist. If a single file is named, also raises `InvalidArgument` if
    it is not readable, and `InvalidEvent` if it cannot be unpacked or its format is not recognised.
    """
    found = InputFiles()
    for name in names:
        path = Path(name)
        if holds_files(name):
            found.add(files_among(paths_in(path) if path.is_dir() else [path], chosen))
            continue
        try:
            found.files.append(_make_file(name, chosen, is_only=len(names) == 1))
        except InvalidInput as error:
            if len(names) == 1 or not path.exists():
                raise
            found.refused[name] = error
    return found


def holds_files(name: str) -> bool:
    """Whether `name` is a folder or an archive."""
    return name != STDIN and (Path(name).is_dir() or Path(name).suffix.lower() == _ARCHIVE)


def _make_file(name: str, chosen: Format | None, *, is_only: bool) -> InputFile:
    lines = _standard_input if name == STDIN else partial(_lines, Path(name))
    source = Source(lines())
    # A file is sampled even if its format is given: an unreadable file is an error before others are read.
    sample = Sample() if chosen and name == STDIN else source.sample
    # Keeping many samples would use much memory, but stdin can be read only once.
    return InputFile(name, chosen or registry.format_of(sample), lines, source if name == STDIN or is_only else None)


def paths_in(folder: Path) -> Iterator[Path]:
    """The files of a folder and its subfolders."""
    return (each for each in sorted(folder.rglob("*")) if each.is_file())


def files_among(paths: Iterable[Path], chosen: Format | None = None) -> InputFiles:
    """The files to read among `paths` and the members of archives, oldest first. Unreadable ones are noted as
    refused."""
    found = InputFiles()
    timed: list[tuple[datetime, InputFile]] = []
    for path in paths:
        try:
            for name, lines in list(_parts(path)):
                sample = Source(lines()).sample
                known = chosen or registry.recognise(sample)
                if sample.is_blank:
                    found.blank.append(name)
                elif known is None:
                    found.unrecognised.append(name)
                else:
                    timed.append((sample.first_time, InputFile(name, known, lines)))
        except InvalidInput as error:
            found.refused[str(path)] = error
    found.files += [file for _, file in sorted(timed, key=lambda pair: pair[0])]
    return found


def _parts(path: Path) -> Iterable[tuple[str, Lines]]:
    """The file, or the members of an archive."""
    if path.suffix.lower() != _ARCHIVE:
        return [(str(path), partial(_lines, path))]
    with _readable(path), ZipFile(path) as archive:
        members = [each for each in archive.infolist() if not each.is_dir()]
    unpacked = sum(each.file_size for each in members)
    if len(members) > MEMBERS_MAX or unpacked > _unpacked_max(sum(each.compress_size for each in members)):
        raise InvalidEvent(
            f"{path} has {len(members):,} files of {unpacked:,} bytes, above the limit", rule="too_large"
        )
    return [(f"{path}/{each.filename}", partial(_member_lines, path, each.filename)) for each in members]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raises `InvalidArgument` if the block cannot read the file, `InvalidEvent` if the file is not in the compression
    format of its name."""
    try:
        yield
    except (OSError, EOFError, BadZipFile, zlib.error, RuntimeError) as error:
        if isinstance(error, OSError) and error.strerror:
            raise InvalidArgument(f"cannot read {path}: {error.strerror}", path="file") from None
        raise InvalidEvent(f"cannot read {path}: {error}", rule="unparsable") from None


def _unpacked_max(packed: int) -> int:
    return max(UNPACKED_BYTES_SMALL, min(UNPACKED_BYTES_MAX, packed * UNPACKED_RATIO_MAX))


def _standard_input() -> Iterator[bytes]:
    yield from sys.stdin.buffer


def _lines(path: Path) -> Iterator[bytes]:
    with _readable(path), path.open("rb") as file:
        if path.suffix.lower() != ".gz":
            yield from file
            return
        with gzip.open(file) as unpacked:
            yield from _read_bounded(path, unpacked, _unpacked_max(path.stat().st_size))


def _member_lines(path: Path, name: str) -> Iterator[bytes]:
    with _readable(path), ZipFile(path) as archive, archive.open(name) as unpacked:
        yield from unpacked


def _read_bounded(path: Path, file: gzip.GzipFile, bytes_max: int) -> Iterator[bytes]:
    left = bytes_max
    while line := file.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise InvalidEvent(f"{path} unpacks to more than {bytes_max:,} bytes, the limit", rule="too_large")
        yield line
