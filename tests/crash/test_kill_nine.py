"""Kill -9 at random moments: no acknowledged event is lost, none is stored twice, and the views are correct.

A failing run prints its seed; `RECALLOG_TEST_SEED=<seed>` makes the same choices again (the scheduling of the system
cannot be repeated).
"""

import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from recallog import Memory
from support.events import MOMENT, recorded, run
from support.processes import Process, begun, ended, start

EVENTS = 3000
BATCH = 20

# The same as the command, without the time that its start takes.
INGEST = """
import asyncio, sys
from pathlib import Path
from recallog import Memory
from recallog_service.formats import jsonl
from recallog_service.ingest import ingest

async def main(file, home):
    with Path(file).open("rb") as lines:
        async with Memory.open(home) as memory:
            await ingest(memory, jsonl.read(lines), batch=20, acknowledged=lambda *said: print(*said, flush=True))

asyncio.run(main(*sys.argv[1:]))
"""
REBUILD = """
import asyncio, sys
from recallog import Memory

async def main(home, what):
    async with Memory.open(home) as memory:
        print("begins", flush=True)
        await (memory.admin.rebuild() if what == "rebuild" else memory.episodic("village", "baker"))

asyncio.run(main(*sys.argv[1:]))
"""


def file_of(folder: Path, agent: str, events: int = EVENTS) -> Path:
    """A file of numbered events of one agent."""
    common = {"envelope": 1, "space": "village", "agent": agent, "at": MOMENT}
    kinds = ["agent.spoke", "agent.thought", "world.observed"]
    lines = [
        json.dumps(
            common | {"id": f"{agent}-{n}", "kind": kinds[n % 3], "turn": n, "payload": {"text": f"{agent} {n}"}}
        )
        for n in range(events)
    ]
    path = folder / f"{agent}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def start_ingest(file: Path, home: Path, *, by_command: bool) -> Process:
    if by_command:
        options = ["--home", home, "--acknowledge", "--batch", BATCH, "--no-index"]
        return start("-m", "recallog_service", "ingest", file, *options)
    return start("-c", INGEST, file, home)


def read_ids(process: Process, lines: int | None) -> list[str]:
    """The ids of the next acknowledged events, fewer if the process ends."""
    assert process.stdout is not None
    ids = []
    while lines is None or len(ids) < lines:
        line = process.stdout.readline()
        if not line.endswith("\n"):
            break
        if line.partition(":")[0] == "0":
            ids.append(line.split()[1])
    return ids


class Kills:
    """Counts kills up to a wanted number; a kill after the process had ended by itself does not count."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._killed = 0

    def rounds(self) -> Iterator[int]:
        """Rounds until the wanted number of kills has taken effect."""
        for number in range(40):
            if self._killed >= self._wanted:
                return
            yield number
        pytest.fail("most kills come too late: this machine is too fast for the files of this test")

    def kill(self, process: Process) -> list[str]:
        """Kill -9; returns the acknowledgements of the process that were not read yet."""
        process.kill()
        unread = read_ids(process, None)
        code = ended(process)
        assert code in (-9, 0)
        self._killed += code == -9
        return unread


def finish(process: Process) -> list[str]:
    """Wait until the process ends by itself."""
    ids = read_ids(process, None)
    assert ended(process) == 0
    return ids


def ids_in(home: Path) -> list[str]:
    """The ids of the ledger's events in order."""

    async def work() -> list[str]:
        async with Memory.open(home) as memory:
            return [each.id for each in await recorded(memory)]

    return run(work())


def check(home: Path, agents: Sequence[str], acknowledged: set[str]) -> None:
    """Every event is in the ledger once and in its file's order, and the views are clean."""
    ids = ids_in(home)
    assert acknowledged <= set(ids)
    assert len(ids) == len(set(ids))
    for agent in agents:
        assert [id_ for id_ in ids if id_.startswith(f"{agent}-")] == [f"{agent}-{n}" for n in range(EVENTS)]

    async def work() -> None:
        async with Memory.open(home) as memory:
            report = await memory.admin.verify()
            assert report.clean
            assert report.records == EVENTS * len(agents)
            assert len(await memory.admin.dead_letters()) == 0

    run(work())


def test_an_ingest_killed_repeatedly_loses_and_duplicates_nothing(tmp_path: Path, chance: random.Random) -> None:
    file, home = file_of(tmp_path, "baker"), tmp_path / "home"
    acknowledged: set[str] = set()
    kills = Kills(wanted=22)
    for attempt in kills.rounds():
        process = start_ingest(file, home, by_command=attempt % 5 == 0)
        acknowledged |= set(read_ids(process, len(acknowledged) + chance.randrange(100)))
        acknowledged |= set(kills.kill(process))
        assert acknowledged <= set(
            ids_in(home)
        )  # checked now, since a later run would hide a loss by adding the event again
    assert 0 < len(acknowledged) < EVENTS, "the kills came too early or too late to mean anything"
    acknowledged |= set(finish(start_ingest(file, home, by_command=True)))
    assert len(acknowledged) == EVENTS
    check(home, ["baker"], acknowledged)


def test_several_ingests_and_a_reader_killed_together_leave_ledger_and_views_intact(
    tmp_path: Path, chance: random.Random
) -> None:
    agents = ["baker", "miller", "smith"]
    home = tmp_path / "home"
    files = {agent: file_of(tmp_path, agent) for agent in agents}
    acknowledged: dict[str, set[str]] = {agent: set() for agent in agents}
    kills = Kills(wanted=20)
    for _ in kills.rounds():
        processes = {agent: start_ingest(files[agent], home, by_command=False) for agent in agents}
        reader = start("-c", REBUILD, home, chance.choice(["rebuild", "episodic"]))
        watched, *others = chance.sample(agents, len(agents))
        lines = len(acknowledged[watched]) + chance.randrange(100)
        acknowledged[watched] |= set(read_ids(processes[watched], lines))
        for process in processes.values():
            process.kill()
        for agent in (watched, *others):
            acknowledged[agent] |= set(kills.kill(processes[agent]))
        kills.kill(reader)
        assert set().union(*acknowledged.values()) <= set(ids_in(home))
    last = {agent: start_ingest(files[agent], home, by_command=False) for agent in agents}
    for agent, process in last.items():
        acknowledged[agent] |= set(finish(process))
    check(home, agents, set().union(*acknowledged.values()))


@pytest.mark.parametrize("what", ["rebuild", "first build"])
def test_a_build_killed_repeatedly_ends_in_the_same_views(tmp_path: Path, chance: random.Random, what: str) -> None:
    home = tmp_path / "home"
    for agent in ("baker", "miller"):
        finish(start_ingest(file_of(tmp_path, agent), home, by_command=False))

    async def digest() -> str:
        async with Memory.open(home) as memory:
            report = await memory.admin.verify()
            assert report.clean
            assert len(await memory.admin.dead_letters()) == 0
            return report.digest

    expected = run(digest())
    seconds, kills = usual_seconds(home, what), Kills(wanted=6)
    for attempt in kills.rounds():
        if what == "first build" and attempt % 3 == 0:
            for path in home.glob("views*"):
                path.unlink()
        process = start_build(home, what, by_command=attempt % 4 == 3)
        time.sleep(chance.uniform(0, seconds))
        kills.kill(process)
    finish(start("-c", REBUILD, home, what))
    check(home, ["baker", "miller"], set())
    assert run(digest()) == expected


def start_build(home: Path, what: str, *, by_command: bool) -> Process:
    """A process that starts to build the views now."""
    if by_command:
        command = ["rebuild"] if what == "rebuild" else ["episodic", "village", "baker"]
        process = start("-m", "recallog_service", *command, "--home", home)
        time.sleep(0.5)  # the start of the command; it prints nothing before it is done
        return process
    return begun(REBUILD, home, what)


def usual_seconds(home: Path, what: str) -> float:
    """How long an undisturbed build takes."""
    if what == "first build":
        for path in home.glob("views*"):
            path.unlink()
    process = start_build(home, what, by_command=False)
    began = time.monotonic()
    finish(process)
    return time.monotonic() - began
