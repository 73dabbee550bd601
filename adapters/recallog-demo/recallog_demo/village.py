"""The steps of the demo. Each step works on a real folder and returns the views that the command prints."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from recallog import Event, IndexUnavailable, Memory, Position, RecallogError, Settings, ViewsBehind, layout
from recallog.retrieval.channels import KEYWORD
from recallog.views import (
    Belief,
    ContextView,
    EpisodicView,
    Explanation,
    LedgerDigests,
    RecallView,
    ReflectionView,
    Remembered,
    VerifyReport,
)
from recallog_demo.tampering import forge, tamper
from recallog_projections import private_files
from recallog_schemas import codec

SPACE = "village"
RECORDING = Path(__file__).with_name("village.jsonl")

# The last event of the scene that two agents remember differently: "Read it out, then."
SCENE_ENDS_WITH = "village-0167"
ACCUSER, KNOWER, ACCUSED = "widow", "teacher", "smith"
PRIVATE_THOUGHT = "village-0160"
WRONG_BELIEF, VERDICT, BETTER_BELIEF = "village-0149", "village-0240", "village-0282"
TURN_OF_THE_WRONG_BELIEF = 40
TURN_OF_THE_BETTER_ONE = 80

# Four turns after the third ruling, which the accused still remembers after many later events.
TURN_AFTER_THE_VERDICT = 70
RULED, FORGED_RULING = b"goes free", b"is guilty"
QUESTION = "Where was the smith on Sunday at midnight?"
PROMPT_TOKENS = 700

INDEX_WAIT_SECONDS = 5.0

# Asked right after the scene, when no event contains any of these words, and again after the testimony.
IN_OTHER_WORDS = "Who is learning the alphabet?"
TESTIMONY = "village-0225"


@dataclass(frozen=True, slots=True)
class Crash:
    """The ingesting process was killed after `acknowledged` events, and then started again."""

    acknowledged: int
    in_ledger_after_kill: int
    added_by_second_run: int
    in_ledger: int
    lost: int
    doubled: int


@dataclass(frozen=True, slots=True)
class Reflected:
    """A belief, the events that it is based on, and the reflection that was due before it."""

    due: ReflectionView
    belief: Belief
    evidence: list[Remembered]


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answers to one question: for two agents at the same position, and for one of them later."""

    memories: int
    """The number of events that the space had then."""
    by_words: RecallView
    """The answer from keywords alone for the agent that knows."""
    knower: RecallView
    accuser: RecallView
    later: RecallView
    """The answer for the accuser after the testimony."""
    without_index: str | None
    """Why the index did not answer; None if it did."""

    @property
    def as_expected(self) -> bool:
        """Whether a thought is found by a question in other words, and only for the agent that had it."""
        accuser_ids = [hit.event.id for hit in (*self.accuser.hits, *self.later.hits)]
        if PRIVATE_THOUGHT in accuser_ids or self.by_words.hits:
            return False
        if self.without_index is not None:
            return True
        return [view.hits[0].event.id if view.hits else None for view in (self.knower, self.later)] == [
            PRIVATE_THOUGHT,
            TESTIMONY,
        ]


def settings(home: Path, index: str = "off") -> Settings:
    """The settings of the demo, independent of the environment: a folder, and no index unless `index` names one."""
    return Settings(
        home=home,
        ledger=None,
        views=None,
        index=index,
        embedder="minilm",
        index_token_vectors=True,
        index_idle_seconds=0,
        count_accesses=False,  # the demo shows numbers of the events that it publishes
    )


def recording() -> list[Event]:
    """The recorded events in order."""
    return [codec.decode(line) for line in RECORDING.read_bytes().splitlines()]


async def remove_earlier_run(home: Path) -> None:
    """Remove an earlier run of the demo. Raises `RecallogError` if the folder contains other spaces."""
    if not (home / layout.LEDGER).exists():
        return
    async with Memory.open(settings(home)) as memory:
        others = sorted({space.space for space in await memory.spaces()} - {SPACE})
    if others:
        raise RecallogError(f"{home} contains other spaces ({others[0]}, …). Choose another folder: --home demo")
    _remove_index(home)
    for name in (layout.LEDGER, layout.views_file()):
        for suffix in ("", "-wal", "-shm"):
            (home / f"{name}{suffix}").unlink(missing_ok=True)
    (home / layout.views_lock()).unlink(missing_ok=True)


def _remove_index(home: Path) -> None:
    """Remove the index of an earlier run. Raises `RecallogError` while a process has it open."""
    folder = home / layout.INDEX
    if not folder.exists():
        return
    try:
        with private_files.hold_lock(home / layout.INDEX_LOCK, INDEX_WAIT_SECONDS):
            shutil.rmtree(folder)
    except private_files.LockHeld:
        raise RecallogError(f"{folder} is in use. End the programs that use this memory, or use --home demo") from None


async def crash_and_repeat(home: Path, progress: Callable[[int, int], None]) -> Crash:
    """Ingest in a separate process, kill it with -9 halfway, start it again, and count."""
    total = len(recording())
    acknowledged = _ingest(home, kill_after=total // 2, progress=lambda done: progress(done, total))
    after_kill = await _ids(home)
    _ingest(home, kill_after=None, progress=lambda done: progress(done, total))
    ids = await _ids(home)
    return Crash(
        acknowledged=len(acknowledged),
        in_ledger_after_kill=len(after_kill),
        added_by_second_run=len(ids) - len(after_kill),
        in_ledger=len(ids),
        lost=len(acknowledged - set(after_kill)) + len({event.id for event in recording()} - set(ids)),
        doubled=len(ids) - len(set(ids)),
    )


def _ingest(home: Path, kill_after: int | None, progress: Callable[[int], None]) -> set[str]:
    """The ids that the process acknowledged before it ended or was killed."""
    command = [sys.executable, "-m", "recallog_service", "ingest", str(RECORDING), "--home", str(home)]
    acknowledged: set[str] = set()
    command += ["--acknowledge", "--batch", "1"]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECALLOG_")}
    environment = inherited | {"RECALLOG_INDEX": "off", "PYTHONIOENCODING": "utf-8"}
    said = ""
    # Its errors are not shown on the terminal either: the progress bar of a killed process would remain there.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", env=environment
    ) as process:
        if process.stdout is None:
            raise RecallogError("the ingesting process has no output")
        for line in process.stdout:
            if line.endswith("\n") and " village-" in line:
                acknowledged.add(line.split()[1])
                progress(len(acknowledged))
            elif line.strip():
                said = line.strip()
            if kill_after is not None and len(acknowledged) >= kill_after:
                process.kill()
    if kill_after is None and process.returncode != 0:
        raise RecallogError(f"the ingesting process ended with {process.returncode}: {said}")
    return acknowledged


async def _ids(home: Path) -> list[str]:
    async with Memory.open(settings(home)) as memory:
        return [codec.decode(data).id async for batch in memory.admin.records() for _, data in batch.records]


async def position_of(memory: Memory, wanted: Callable[[Event], bool]) -> Position:
    """The position of the last event for which `wanted` is true."""
    found: Position | None = None
    async for batch in memory.admin.records(space=SPACE):
        for offset, data in batch.records:
            if wanted(codec.decode(data)):
                found = Position(batch.partition, offset)
    if found is None:
        raise RecallogError("the recording lacks an event that the demo needs")
    return found


async def side_by_side(memory: Memory) -> tuple[EpisodicView, EpisodicView]:
    """The recent events of the accuser and of the agent that knows, right after the scene."""
    scene = await position_of(memory, lambda event: event.id == SCENE_ENDS_WITH)
    accuser = await memory.episodic(SPACE, ACCUSER, window=8, as_of=scene)
    return accuser, await memory.episodic(SPACE, KNOWER, window=8, as_of=scene)


async def who_knows(memory: Memory, id_: str) -> list[str]:
    """The agents whose timeline contains the event `id_`."""
    knowing = []
    for agent in await memory.agents(SPACE):
        page = await memory.timeline(SPACE, agent.name, limit=1000)
        if any(item.event.id == id_ for item in page.items):
            knowing.append(agent.name)
    return knowing


async def reflected(memory: Memory, belief: str) -> Reflected:
    """The reflection that led the accuser to the belief of the event with the id `belief`."""
    position = await position_of(memory, lambda event: event.id == belief)
    due = await memory.reflection(SPACE, ACCUSER, as_of=Position(position.partition, position.offset - 1))
    held = (await memory.beliefs(SPACE, ACCUSER, as_of=position)).beliefs[-1]
    page = await memory.timeline(SPACE, ACCUSER, limit=1000, as_of=position)
    return Reflected(due, held, [item for item in page.items if item.event.id in held.based_on])


async def belief_at(memory: Memory, turn: int) -> Belief:
    """The newest belief of the accuser at the end of `turn`."""
    as_of = await position_of(memory, lambda event: event.turn <= turn)
    return (await memory.beliefs(SPACE, ACCUSER, as_of=as_of)).beliefs[-1]


async def why_remembered(memory: Memory) -> Explanation:
    """Why the accused remembers the ruling some turns later."""
    as_of = await position_of(memory, lambda event: event.turn <= TURN_AFTER_THE_VERDICT)
    return await memory.explain(SPACE, ACCUSED, VERDICT, query=QUESTION, as_of=as_of)


async def prompt(memory: Memory) -> ContextView:
    """The prompt for a model that plays the accused at that turn."""
    as_of = await position_of(memory, lambda event: event.turn <= TURN_AFTER_THE_VERDICT)
    return await memory.context(
        SPACE,
        ACCUSED,
        query=QUESTION,
        output_format='Answer with JSON alone: {"kind": "agent.spoke", "payload": {"text": "..."}}',
        budget_tokens=PROMPT_TOKENS,
        as_of=as_of,
    )


async def recall_in_other_words(home: Path, progress: Callable[[int, int], None]) -> Recalled:
    """Index the village up to the testimony in the empty folder `home`, and ask a question in words that do not occur.

    Without an index, only words are compared.
    """
    async with Memory.open(settings(home, index="embedded")) as memory:
        events = recording()
        ids = [event.id for event in events]
        positions = await memory.publish_many(events[: ids.index(TESTIMONY) + 1])
        try:
            await memory.catch_up_index(progress)
        except (IndexUnavailable, ViewsBehind) as error:
            unavailable: str | None = str(error)
        else:
            unavailable = None
        scene = positions[ids.index(SCENE_ENDS_WITH)]
        recalled = Recalled(
            memories=len(positions),
            by_words=await memory.recall(SPACE, KNOWER, IN_OTHER_WORDS, channels=[KEYWORD], as_of=scene),
            knower=await memory.recall(SPACE, KNOWER, IN_OTHER_WORDS, as_of=scene),
            accuser=await memory.recall(SPACE, ACCUSER, IN_OTHER_WORDS, as_of=scene),
            later=await memory.recall(SPACE, ACCUSER, IN_OTHER_WORDS),
            without_index=unavailable,
        )
    return recalled if unavailable else replace(recalled, without_index=recalled.knower.degraded)


async def corrupt_and_verify(home: Path, memory: Memory) -> VerifyReport:
    """Change the ruling in the ledger and a memory of the agent that knows. Returns the report of the verification."""
    forge(home / layout.LEDGER, VERDICT, RULED, FORGED_RULING)
    tamper(home / layout.views_file(), SPACE, KNOWER)
    return await memory.admin.verify()


async def restore_and_rebuild(home: Path, memory: Memory, kept: LedgerDigests) -> VerifyReport:
    """Restore the ledger, and delete all views, which the next query rebuilds. Returns the report of the verification,
    which compares the ledger with the digests that were kept before."""
    forge(home / layout.LEDGER, VERDICT, FORGED_RULING, RULED)
    for suffix in ("", "-wal", "-shm"):
        (home / f"{layout.views_file()}{suffix}").unlink(missing_ok=True)
    return await memory.admin.verify(digests=[digest.format() for digest in kept])
