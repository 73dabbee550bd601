"""What processes and files take at one moment, as Linux counts it."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PARTS = ("ledger", "views", "index", "others")
"""The parts of a folder whose files are counted together."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """What a process takes."""

    pid: int
    resident_mb: float
    """All pages in memory, those of mapped files too, which the kernel can drop."""
    memory_mb: float
    """Pages in memory that belong to no file: a leak of memory grows these."""
    descriptors: int
    threads: int
    cpu_seconds: float


def usage(pid: int) -> Usage | None:
    """What a process takes; None if it has ended."""
    process = Path("/proc") / str(pid)
    try:
        status = (process / "status").read_text()
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        descriptors = len(list((process / "fd").iterdir()))
    except (FileNotFoundError, ProcessLookupError):
        return None
    counts = {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+)", status, re.MULTILINE)}
    if "VmRSS" not in counts:  # it is ending
        return None
    own = counts["RssAnon"] + counts["RssShmem"]
    cpu = (int(fields[11]) + int(fields[12])) / _TICKS
    return Usage(pid, counts["VmRSS"] / 1024, own / 1024, descriptors, counts["Threads"], cpu)


def disk_bytes(home: Path) -> Mapping[str, int]:
    """The bytes on disk of each part of a folder."""
    found = dict.fromkeys(PARTS, 0)
    for folder, _, names in os.walk(home):
        for name in names:
            path = Path(folder, name)
            try:
                found[_part(path.relative_to(home))] += path.stat().st_blocks * 512
            except FileNotFoundError:  # it was removed meanwhile
                continue
    return found


def _part(path: Path) -> str:
    first = path.parts[0]
    if first.startswith("ledger.db"):
        return "ledger"
    if first.startswith("views"):
        return "views"
    return "index" if first == "index" else "others"
