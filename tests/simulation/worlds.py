"""The worlds that seeds stand for: of every ten seeds six are of processes, one of workers, three of folders."""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from support.erasing_world import ErasingWorld
from support.folder_world import FolderWorld
from support.worker_world import WorkerWorld
from support.world import World

_MEMORY = Path("/dev/shm")


def run_processes(seed: int) -> None:
    """Producers, readers, rebuilds and reactors, paused at each call of a ledger and a store in memory."""
    World(seed).run()


def run_workers(seed: int) -> None:
    """Workers of a cluster: rebalances, crashes, lost views."""
    WorkerWorld(seed).run()


def run_folder(seed: int) -> None:
    """Programs on one folder: damaged, full, read-only and broken files, stopped holders of locks, power cuts."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        FolderWorld(seed, Path(folder) / "memory").run()


def run_erasures(seed: int) -> None:
    """Histories in a folder from which persons, entries and spaces are erased."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        ErasingWorld(seed, Path(folder) / "memory").run()


Run = Callable[[int], None]

_KINDS: tuple[tuple[str, Run], ...] = (
    *(("processes", run_processes),) * 6,
    ("workers", run_workers),
    *(("folder", run_folder),) * 3,
)


ERASURES = "erasures"
"""The worlds that no seed stands for: they are named."""


def kind_of(seed: int, world: str = "") -> str:
    """The kind of the world of a seed, unless it is named."""
    return world or _KINDS[seed % len(_KINDS)][0]


def simulate(seed: int, world: str = "") -> None:
    """Run the world of a seed, or the named one. An error says how to repeat it."""
    before = random.getstate()
    try:
        run = run_erasures if world == ERASURES else _KINDS[seed % len(_KINDS)][1]
        run(seed)
    except BaseException as error:
        error.add_note(f"seed {seed}. Again: {command(seed, world)}")
        raise
    finally:
        random.setstate(before)


def command(seed: int, world: str = "") -> str:
    """The command that repeats a seed."""
    return f"make simulate{f' WORLD={world}' if world else ''} SEED={seed}"
