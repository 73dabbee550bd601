"""The files that `recallog ingest` reads: those that are named, stdin, and those of folders whose format is known."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from recallog_schemas.errors import InvalidArgument
from recallog_service.formats import Format, Source, registry
from recallog_service.formats.source import Sample

STDIN = "-"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read, and its format."""

    name: str
    format: Format
    sampled: Source | None = None
    """The source by which the format was recognised, where it need not be opened again."""

    def source(self) -> Source:
        return self.sampled or Source(_lines(self.name))


def input_files(names: Sequence[str], chosen: Format | None = None) -> tuple[list[InputFile], list[str]]:
    """The files to read, those of a folder in the order of their times, and files of folders in no known format.

    `chosen` is the format of all of them. Raises `InvalidArgument` for a file that cannot be read, and if there is no
    file to read; `InvalidEvent` for a named file whose format is not recognised.
    """
    found: list[InputFile] = []
    unrecognised: list[str] = []
    for name in names:
        if name != STDIN and Path(name).is_dir():
            of_folder, others = _of_folder(Path(name), chosen)
            found += of_folder
            unrecognised += others
            continue
        source = Source(_lines(name))
        # A file is sampled even where its format is known: one that cannot be read is an error before others are read.
        sample = Sample() if chosen and name == STDIN else source.sample
        known = chosen or registry.format_of(sample)
        # Many samples would fill the memory, but stdin can be read only once.
        found.append(InputFile(name, known, source if name == STDIN or len(names) == 1 else None))
    if not found:
        raise InvalidArgument(f"no file of a known format in {', '.join(names)}", path="file")
    return found, unrecognised


def _of_folder(folder: Path, chosen: Format | None) -> tuple[list[InputFile], list[str]]:
    found: list[tuple[datetime, InputFile]] = []
    unrecognised: list[str] = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        sample = Source(_lines(str(path))).sample
        known = chosen or registry.recognised(sample)
        if known is None:
            unrecognised.append(str(path))
        else:
            found.append((sample.first_time, InputFile(str(path), known)))
    return [file for _, file in sorted(found, key=lambda pair: pair[0])], unrecognised


def _lines(name: str) -> Iterator[bytes]:
    if name == STDIN:
        yield from sys.stdin.buffer
        return
    try:
        with Path(name).open("rb") as lines:
            yield from lines
    except OSError as error:
        raise InvalidArgument(f"cannot read {name}: {error.strerror}", path="file") from None
