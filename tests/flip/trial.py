"""One trial, in a process of its own: a copy of a folder is damaged, and every operation is called."""

import asyncio
import random
import shutil
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flip import folders, judge, mutations
from flip.folders import Folders
from flip.judge import Damage, Expected, Judge, Outcome, Verdict
from flip.memories import in_process, served, without_folder
from flip.mutations import Mutation
from flip.questions import PUBLISH, QUESTIONS, REINDEX, REPAIRS, REPEATS, VERIFY, WRITTEN, Question
from flip.story import batches
from recallog import Memory, layout
from recallog_projections.stores.checksums import is_intact
from recallog_projections.stores.sqlite_logs import segment_address
from recallog_schemas.errors import RecallogError

CALL_SECONDS_MAX = 5.0
INDEX_WAIT_SECONDS = 2.0
"""How long a trial waits for the index before it asks: with a damaged index it may never follow."""
SERVED_WAIT_SECONDS = 8.0
"""The same, if a process must start."""


@dataclass(frozen=True)
class Plan:
    """What one trial does; all of it follows from the seed and the number of the trial."""

    number: int
    state: str
    """The folder that is damaged."""
    mutations: tuple[Mutation, ...]
    live: bool
    """Whether the folder is damaged while a memory has it open."""
    repair_first: Question | None
    order: tuple[int, ...]
    """Of the questions."""

    def as_served(self, root: Folders) -> "Plan | None":
        """The same damage of the folder whose index another process serves, as far as it has such files.

        None if it has none of the engine's.
        """
        theirs = folders.files_of(root.of(folders.SERVED))
        damages = []
        for mutation in self.mutations:
            name = Path(mutation.file).name
            file = next((file for file in theirs if mutation.file == file or name == Path(file).name), None)
            size = (root.of(folders.SERVED) / file).stat().st_size if file is not None else 0
            if file is not None and (size or not mutation.at):
                damages.append(replace(mutation, file=file, at=tuple(at % size for at in mutation.at)))
        if not any(mutation.file.startswith(str(layout.INDEX_ENGINE)) for mutation in damages):
            return None
        repair = None if self.repair_first is REINDEX else self.repair_first
        return replace(self, state=folders.SERVED, mutations=tuple(damages), repair_first=repair)

    def describe(self) -> str:
        """The trial in one line."""
        how = [f"folder {self.state}"]
        how += ["open meanwhile"] if self.live else []
        how += [f"first {self.repair_first.name}"] if self.repair_first else []
        return f"trial {self.number}: {', and '.join(map(str, self.mutations))} ({'; '.join(how)})"


EMPTY_SHARE = 0.2
"""How many of the empty files, such as locks, may be damaged."""
SERVED_SHARE = 0.05
LIVE_SHARE = 0.25
TWO_SHARE = 0.08
REPAIR_SHARE = 0.2
_NOT_LIVE = ("-shm", ".lock")
"""Files that only processes that run use: a truncated memory map ends them."""


def plan(seed: int, number: int, root: Folders, only: str = "") -> Plan:
    """The trial `number` of a run with `seed`, which damages files whose path begins with `only`."""
    rng = random.Random(f"{seed}/{number}")
    state = folders.SERVED if rng.random() < SERVED_SHARE else rng.choice(folders.STATES)
    live = rng.random() < LIVE_SHARE
    home = root.of(state)
    files = [each for each in folders.files_of(home) if (home / each).stat().st_size or rng.random() < EMPTY_SHARE]
    files = [each for each in files if each.startswith(only)] or [layout.LEDGER]
    # The engine maps its files: in this process, a file that is cut would end it.
    own = "" if state == folders.SERVED else str(layout.INDEX)
    open_files = [each for each in files if not each.endswith(_NOT_LIVE) and not (own and each.startswith(own))]
    live = live and bool(open_files)
    files = open_files if live else files
    drawn = [mutations.draw(rng, home, files) for _ in range(2 if rng.random() < TWO_SHARE else 1)]
    if len({mutation.file for mutation in drawn}) < len(drawn):
        del drawn[1:]
    repair = rng.choice(REPAIRS[: -1 if state == folders.SERVED else None]) if rng.random() < REPAIR_SHARE else None
    order = list(range(len(QUESTIONS)))
    rng.shuffle(order)
    return Plan(number, state, tuple(drawn), live, repair, tuple(order))


_DETAIL_CHARS_MAX = 600

ALL = [event for batch in batches() for event in batch]
_OF_FOLDER = ("admin.status", "admin.copy")
"""Operations whose answers contain the id of the ledger or a path."""

Say = Callable[[Outcome | str], None]


async def run(planned: Plan, root: Folders, expected: Expected, folder: Path, say: Say) -> None:
    """Execute a trial in `folder`, which is empty; `say` is called before and after each call."""
    home = folder / "home"
    folders.copy(root.of(planned.state), home)
    files = [mutation.file for mutation in planned.mutations]
    ledger = _ledger_damage(planned, root, expected, folder)
    if planned.state == folders.SERVED:
        expected = replace(expected, by_index=expected.served)
    rolled_back = await _rolled_back(ledger, expected, folder)
    judging = Judge(expected, home, files, ledger, planned.live, rolled_back)
    if not planned.live:
        _damage(planned, home, root)
    await _Trial(planned, root, judging, folder, say).run()


def _damage(planned: Plan, home: Path, root: Folders) -> None:
    for mutation in planned.mutations:
        if (home / mutation.file).exists():  # an open memory may have removed it meanwhile
            mutation.apply(home, _older(planned, root, mutation))


def _older(planned: Plan, root: Folders, mutation: Mutation) -> Path:
    """The earlier copy of the folder that is damaged. An index that is served has none: the older one has no model."""
    is_served = planned.state == folders.SERVED and mutation.file.startswith(f"{layout.INDEX}/")
    return root.of("none" if is_served else "older")


def _ledger_damage(planned: Plan, root: Folders, expected: Expected, folder: Path) -> Damage:
    """What the damaged ledger contains, seen in a copy of it."""
    files = [mutation for mutation in planned.mutations if judge.is_of(layout.LEDGER, mutation.file)]
    if not files:
        return Damage()
    # The ledgers of two folders are not equal: they have the times at which their records were appended.
    whole = judge.records_of(_copy_of(planned, root, folder, layout.LEDGER))
    aside = _damaged_copy(planned, root, folder, layout.LEDGER)
    return judge.look(aside, whole) if aside.exists() else Damage(lost=frozenset(expected.records))


def _damaged_copy(planned: Plan, root: Folders, folder: Path, name: str) -> Path:
    """A damaged copy of one SQLite file and its log, for a look at it."""
    aside = _copy_of(planned, root, folder, name, "damaged").parent
    for mutation in planned.mutations:
        if judge.is_of(name, mutation.file):
            mutation.apply(aside, root.of("older"))
    return aside / name


def _copy_of(planned: Plan, root: Folders, folder: Path, name: str, kind: str = "whole") -> Path:
    """A copy of one SQLite file and its log."""
    aside = folder / f"{kind}-{name.replace('/', '-')}"
    aside.mkdir()
    for suffix in ("", "-wal", "-shm"):
        if (root.of(planned.state) / f"{name}{suffix}").exists():
            shutil.copyfile(root.of(planned.state) / f"{name}{suffix}", aside / f"{name}{suffix}")
    return aside / name


async def _rolled_back(ledger: Damage, expected: Expected, folder: Path) -> Mapping[str, Any]:
    """The answers of the first records, if the others are lost."""
    end = ledger.end(len(expected.records))
    if not ledger.readable or end == len(expected.records):
        return {}
    async with without_folder(ALL[:end]) as memory:
        found = await answers(memory, folder / "prefix")
    plan_of_index = Question("admin.plan_rebuild", {"what": "index"}).name
    (of_index,) = expected.by_index[plan_of_index]["items"]
    return found | {plan_of_index: {"items": [of_index | {"records": end}]}}


async def expect(root: Folders, folder: Path) -> Expected:
    """The answers of a whole folder, and of a memory that has the same events in no file.

    Raises `RuntimeError` if these differ, other than by the index: then neither can be trusted.
    """
    home = folder / "whole"
    folders.copy(root.of("closed"), home)
    records = judge.records_of(home / layout.LEDGER)
    async with in_process(home, follow=False) as memory:
        by_index = await answers(memory, folder / "calls")
    folders.copy(root.of(folders.SERVED), folder / "served")
    async with served(folder / "served", root.model) as memory:
        await memory.catch_up_index()
        by_service = await answers(memory, folder / "calls-served", reindex=False)
    async with without_folder(ALL) as memory:
        by_words = await answers(memory, folder / "calls-by-words")
    for question in QUESTIONS:
        name = question.name
        if not question.by_index and question.operation not in _OF_FOLDER and by_index[name] != by_words[name]:
            raise RuntimeError(f"{name}: {judge.difference(by_index[name], by_words[name])}")
    events = {offset: event.model_dump(mode="json") for offset, event in enumerate(ALL)}
    return Expected(by_index, by_words, by_service, events, records)


async def answers(memory: Memory, folder: Path, *, reindex: bool = True) -> dict[str, Any]:
    """The canonical answers to all questions, by name."""
    found: dict[str, Any] = {}
    for number, question in enumerate((*QUESTIONS, *REPAIRS, PUBLISH, *WRITTEN)):
        if question is REINDEX and not reindex:
            continue
        try:
            found[question.name] = judge.canonical(question.operation, await question.put(memory, folder / str(number)))
        except RecallogError as error:
            found[question.name] = judge.error_document(error)
    return found


class _Trial:
    """The calls of one trial, in order."""

    def __init__(self, planned: Plan, root: Folders, judging: Judge, folder: Path, say: Say) -> None:
        self._plan = planned
        self._root = root
        self._judge = judging
        self._folder = folder
        self._home = folder / "home"
        self._say = say
        self._calls = 0
        self._altered: bool | None = None
        self._not_right: set[Question] = set()

    async def run(self) -> None:
        questions = [QUESTIONS[number] for number in self._plan.order]
        if self._judge.of_ledger:
            # In a ledger that has lost its end these events are new, and publishing them changes the other answers.
            questions.remove(REPEATS)
        await self._with_memory(lambda memory: self._damaged(memory, questions))
        # Not all of them again: what was right, and is read from views that were verified, is a sample.
        again = [each for number, each in enumerate(questions) if each in self._not_right or number % 3 == 0]
        await self._with_memory(lambda memory: self._again(memory, again))

    async def _with_memory(self, work: Callable[[Memory], Awaitable[None]]) -> None:
        opened = served(self._home, self._root.model) if self._is_served else in_process(self._home)
        await work(await opened.__aenter__())
        await self._call("close", "close", opened.__aexit__(None, None, None), lambda answer: (Verdict.RIGHT, ""))

    @property
    def _is_served(self) -> bool:
        return self._plan.state == folders.SERVED

    async def _damaged(self, memory: Memory, questions: Sequence[Question]) -> None:
        await self._wait_for_index(memory)
        if self._plan.live:
            damaged, self._judge = self._judge, replace(self._judge, files=(), ledger=Damage(), rolled_back={})
            for question in questions[:4]:
                await self._put(memory, question, "before")
            self._judge = damaged
            _damage(self._plan, self._home, self._root)
        if self._plan.repair_first is not None:
            await self._put(memory, self._plan.repair_first, "first")
        outcomes = {question: await self._put(memory, question, "damaged") for question in questions}
        self._not_right = {question for question, outcome in outcomes.items() if outcome.verdict is not Verdict.RIGHT}
        verified = await self._put(memory, VERIFY, "verify")
        for question, outcome in outcomes.items():
            if outcome.verdict is Verdict.MISSED and verified.verdict is Verdict.RIGHT:
                later = await self._put(memory, question, "after verify")
                if later.verdict is Verdict.MISSED:
                    self._say(replace(later, verdict=Verdict.UNNAMED))
        if verified.verdict is not Verdict.RIGHT:
            await self._remedy(memory)

    async def _remedy(self, memory: Memory) -> None:
        """Do what `verify` advises."""
        for question in REPAIRS[:2]:
            await self._put(memory, question, "remedy")
        await self._wait_for_index(memory)

    async def _again(self, memory: Memory, questions: Sequence[Question]) -> None:
        """Ask again: damage of the views and of the index is repaired, at the latest by what `verify` advises."""
        await self._wait_for_index(memory)
        asked = (*questions, VERIFY)
        remains = [each for each in asked if (await self._put(memory, each, "again")).verdict is not Verdict.RIGHT]
        if remains and not self._judge.of_ledger:
            await self._remedy(memory)
            for question in remains:
                outcome = await self._put(memory, question, "repaired")
                if outcome.verdict is not Verdict.RIGHT:
                    detail = f"{outcome.verdict}: {outcome.detail}"
                    self._say(replace(outcome, verdict=Verdict.NOT_HEALED, detail=detail))
        await self._write(memory)

    async def _write(self, memory: Memory) -> None:
        """Publish events, read one back, and answer the reflections that are due."""
        if self._judge.of_ledger:
            await self._put(memory, REPEATS, "write")
        published = await self._put(memory, PUBLISH, "write")
        if published.verdict is Verdict.RIGHT:
            for question in WRITTEN:
                await self._put(memory, question, "write")

    async def _wait_for_index(self, memory: Memory) -> None:
        """Wait until the index has processed the ledger, so that answers do not depend on how fast it does."""
        with suppress(RecallogError, TimeoutError, OSError):
            async with asyncio.timeout(SERVED_WAIT_SECONDS if self._is_served else INDEX_WAIT_SECONDS):
                await memory.start_index()
                index, end = memory._components.index, (await memory.admin.ledger_ends())[0]
                while index is not None:
                    pointer = await index.rows.pointer(0)
                    done = await index.rows.checkpoint(pointer.active) if pointer.active is not None else None
                    if done is not None and done.offset + 1 >= end:
                        break
                    await asyncio.sleep(0.01)

    async def _put(self, memory: Memory, question: Question, stage: str) -> Outcome:
        self._calls += 1
        aside = self._folder / f"call-{self._calls}"
        return await self._call(
            question.name,
            stage,
            question.put(memory, aside),
            lambda answer: self._refined(*self._judge.answer(question, answer)),
            lambda error: self._judge.error(question, error),
        )

    async def _call(
        self,
        name: str,
        stage: str,
        work: Awaitable[Any],
        judged: Callable[[Any], tuple[Verdict, str]],
        failed: Callable[[BaseException], tuple[Verdict, str]] = lambda error: (Verdict.RAW, repr(error)),
    ) -> Outcome:
        self._say(f"{stage}: {name}")
        began = time.monotonic()
        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                verdict, detail = judged(await work)
        except TimeoutError:
            verdict, detail = Verdict.HANG, f"no answer in {CALL_SECONDS_MAX:g} s"
        except BaseException as error:  # noqa: BLE001 - a panic of a native library is no Exception
            verdict, detail = failed(error)
            if verdict is Verdict.RAW:
                detail += f" [{_last_line(error)}]"
        outcome = Outcome(name, stage, verdict, detail[:_DETAIL_CHARS_MAX], time.monotonic() - began)
        self._say(outcome)
        return outcome

    def _refined(self, verdict: Verdict, detail: str) -> tuple[Verdict, str]:
        """A wrong answer is one that missed rows, if no row of the damaged views or ledger has another content."""
        if verdict is not Verdict.WRONG or "is shown as" in detail:
            return verdict, detail
        if self._altered is None:
            self._altered = bool(self._judge.ledger.altered) or any(self._altered_rows(name) for name in folders.VIEWS)
        return (Verdict.WRONG if self._altered else Verdict.MISSED), detail

    def _altered_rows(self, name: str) -> bool:
        """Whether the damaged file has a row that it never had, other than one that fails its checksum.

        Recallog shows no row that fails it. Where such a row is one that a search compares, others may be missed.
        """
        if not any(judge.is_of(name, mutation.file) for mutation in self._plan.mutations):
            return False
        path = _damaged_copy(self._plan, self._root, self._folder, name)
        try:
            altered = [row for row in folders.rows_of(path) if row not in self._root.history[name]]
            return not all(fails_checksum(row) for row in altered)
        except judge.UNREADABLE:
            return False


CHECKED = frozenset({b"rows", b"logs", b"segments"})
"""Tables of views whose rows carry a checksum each, and may be many."""


def fails_checksum(row: tuple[object, ...]) -> bool:
    """Whether a row of views, as `folders.rows_of` has it, fails its checksum."""
    texts = [part.decode(errors="replace") if isinstance(part, bytes) else str(part) for part in row]
    match row:
        case b"rows", int(number), *_, value, crc:
            return not is_intact(number, texts[2:-2], value, crc)
        case b"logs", int(number), *_, crc:
            return not is_intact(number, texts[2:-1], b"", crc)
        case b"segments", _, int(slot), int(count), int(keep), entries, crc:
            return not is_intact(0, segment_address(slot, count, keep), entries, crc)
    return row[0] in CHECKED


def _last_line(error: BaseException) -> str:
    """Where an error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
