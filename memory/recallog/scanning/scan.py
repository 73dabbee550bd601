"""The scan of a memory for markers: its folder, or its server and its topic, and the points of its index."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recallog.components import Components
from recallog.queries import verification
from recallog.queries.rebuilds import groups
from recallog.reading.projection_group import INDEX
from recallog.scanning import files
from recallog.scanning.forms import Forms, forms_of, search
from recallog_schemas.errors import StorageUnavailable
from recallog_schemas.views import ScannedPlace, ScanReport
from recallog_streams.ledgers.ledger import Ledger

if TYPE_CHECKING:
    from recallog.settings import Settings


async def scan_points(components: Components, markers: Sequence[str]) -> ScanReport:
    """Scan the points of the index."""
    forms = forms_of(markers)
    (index,) = await groups(components, INDEX)
    return ScanReport(places=tuple(await _scan_contents("the points of the index", index.store.contents(), forms)))


async def scan(
    components: Components, settings: "Settings | None", markers: Sequence[str], digests: Sequence[str]
) -> ScanReport:
    """Scan everything except the points of the index.

    Raises `OutOfRange` if the ledger ends before the position of one of `digests`.
    """
    compared = await verification.compared_digests(components, digests)
    forms, places, folders = forms_of(markers), list[ScannedPlace](), _folders_of(settings)
    for views in components.groups():
        places += await _scan_contents(f"the views {views.store.location}", views.store.contents(), forms)
        folders += await views.store.files()
    if settings is None or "://" in (settings.ledger or ""):
        places += await _scan_contents("the ledger", _records_of(components.ledger), forms)
    places += await asyncio.to_thread(_scan_files, folders, markers)
    now = await verification.digests(components)
    return ScanReport(places=tuple(places), ledger=now.items, digests=tuple(compared))


def _folders_of(settings: "Settings | None") -> list[Path]:
    """The folders of a memory on this machine."""
    named = () if settings is None else (settings.ledger or settings.home, settings.views or settings.home)
    return [*dict.fromkeys(Path(place).resolve() for place in named if "://" not in str(place))]


async def _records_of(ledger: Ledger) -> AsyncIterator[tuple[str, bytes]]:
    """The records of all partitions as they are stored."""
    for partition, end in enumerate(await ledger.ends()):
        async for batch in ledger.read(partition, 0, end):
            for offset, data in batch.stored:
                yield f"the record {partition}:{offset}", data


async def _scan_contents(where: str, contents: AsyncIterator[tuple[str, bytes]], forms: Forms) -> list[ScannedPlace]:
    """The places in which a form was found, and all other places as one."""
    found, rest_bytes = list[ScannedPlace](), 0
    async for place, data in contents:
        scanned = search(place, [data], forms)
        if scanned.found:
            found.append(scanned)
        else:
            rest_bytes += scanned.bytes
    return [*found, ScannedPlace(place=where, bytes=rest_bytes)] if found or rest_bytes else []


def _scan_files(places: Sequence[Path], markers: Sequence[str]) -> list[ScannedPlace]:
    command = [sys.executable, "-m", files.__name__, *map(str, places)]
    process = subprocess.run(command, input=json.dumps(markers).encode(), stdout=subprocess.PIPE, check=False)
    if process.returncode:
        raise StorageUnavailable(f"the process that reads the files has ended with exit code {process.returncode}")
    return files.PLACES.validate_json(process.stdout)
