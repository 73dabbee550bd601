"""Resident memory of a process that appends and folds; it must not grow with the ledger."""

import asyncio
import json
import os
import resource
import sys
from pathlib import Path

from benchmarks.homes import opened
from benchmarks.measure import Goal, Measure, Setup
from benchmarks.workload import batches, villages
from recallog_streams import generations

_RATIO = Goal("≤", 1.1)
_FOLDED_AT_ONCE = 2_000


async def measure(setup: Setup) -> list[Measure]:
    """Measures a new process, which holds nothing of other benchmarks."""
    few, many = setup.size(100_000, 20_000), setup.size(1_000_000, 200_000)
    setup.report(f"resident: appending and folding {many:,} events in a new process")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.resident", str(setup.folder / "resident"), str(few), str(many)),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"python -m benchmarks.resident ended with exit code {process.returncode}")
    before, after = json.loads(said)
    return [
        Measure(f"resident: at {few:,} events", before / 2**20, "MiB"),
        Measure(f"resident: at {many:,} events", after / 2**20, "MiB"),
        Measure(f"resident: at {many:,} ÷ at {few:,}", after / before, "", _RATIO),
    ]


async def _grow(folder: Path, marks: list[int]) -> list[int]:
    """Resident bytes when the ledger had as many events as each of `marks`."""
    done, found = 0, []
    async with opened(folder) as home:
        for batch in batches(villages(max(marks)), _FOLDED_AT_ONCE):
            await home.ledger.append(batch)
            await generations.current(home.projector, 0)
            done += len(batch)
            if done in marks:
                found.append(_resident_bytes())
    return found


def _resident_bytes() -> int:
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: the peak, in bytes


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_grow(Path(sys.argv[1]), [int(mark) for mark in sys.argv[2:]]))))
