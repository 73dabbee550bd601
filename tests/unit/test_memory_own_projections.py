"""Custom projections: folded with the built-in ones, built automatically, with dead letters of their own."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from recallog import MODELS, Event, Memory, Model, Position
from recallog.reading.read_session import ReadSession
from recallog.views import RetryReport
from recallog_projections.rows import Rows
from recallog_projections.tables import Log, Table
from recallog_schemas import Record
from recallog_schemas.errors import DeadLettered, NewDeadLetters, OutOfRange, ProjectionError, ViewsTooNew
from support.altering import plant_record
from support.events import event, run


class Spoken(msgspec.Struct, frozen=True):
    words: int


class Line(msgspec.Struct, frozen=True):
    text: str


WORDS = Table("words", Spoken)
LINES = Log("lines", Line, keep=3)


class Words:
    """The number of words of each agent, and the last lines of its space. Raises on the word `chokes_on`."""

    name: ClassVar[str] = "words"
    tables = (WORDS, LINES)

    def __init__(self, chokes_on: str = "", version: int = 1) -> None:
        self.version = version
        self._chokes_on = chokes_on

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            event = record.event
            row = rows.get(WORDS, event.space, event.agent) or Spoken(0)
            rows.put(WORDS, Spoken(row.words + len(event.text.split())), event.space, event.agent)
            if self._chokes_on and self._chokes_on in event.text:
                raise ValueError("cannot swallow that")
            rows.append(LINES, Line(event.text), event.space)


class Loudest:
    """A second projection."""

    name: ClassVar[str] = "loudest"
    version: ClassVar[int] = 1
    table: ClassVar = Table("loudest", Line)
    tables = (table,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            if record.event.text.isupper():
                rows.put(self.table, Line(record.event.text), record.event.space)


SAID = [event(turn=n, payload={"text": text}) for n, text in enumerate(["one", "two two", "bad", "four", "FIVE FIVE"])]


async def filled(home: Path) -> None:
    async with Memory.open(home) as memory:
        await memory.publish_many(SAID)
        await memory.episodic("village", "baker")


async def words(memory: Memory, agent: str = "baker") -> int | None:
    row = await memory.row(WORDS, "village", agent)
    return row.words if row else None


# Reading rows and logs.


def test_rows_and_entries_include_the_events_published_before(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            await memory.publish_many(SAID)
            assert await words(memory) == 7
            assert [line.text for line in await memory.log_entries(LINES, "village")] == ["bad", "four", "FIVE FIVE"]
            assert [line.text for line in await memory.log_entries(LINES, "village", newest=1)] == ["FIVE FIVE"]

    run(work())


def test_a_row_that_was_never_written_is_none(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            assert await words(memory, "nobody") is None
            assert await memory.log_entries(LINES, "nowhere") == []

    run(work())


@pytest.mark.models("all")
def test_a_table_of_an_unknown_projection_is_an_error(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            with pytest.raises(ProjectionError, match="words"):
                await words(memory)

    run(work())


# Adding and removing projections.


def test_a_projection_added_later_is_built_from_the_beginning(tmp_path: Path) -> None:
    async def work() -> None:
        await filled(tmp_path)
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            assert await words(memory) == 7
            assert (await memory.admin.verify()).clean

    run(work())


def test_react_waits_for_no_custom_projection_and_catch_up_for_all(tmp_path: Path) -> None:
    """On a cluster possibly no worker builds them, and due reflections are in the built-in views."""

    async def work() -> None:
        await filled(tmp_path)
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            await memory.react()
            assert [row.views for row in (await memory.admin.status()).partitions if row.generation is None] == [
                "words"
            ]
            await memory.catch_up()
            assert [row.lag for row in (await memory.admin.status()).partitions] == [0, 0]

    run(work())


def test_a_projection_can_be_left_out_and_added_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            await memory.publish_many(SAID)
            assert await words(memory) == 7
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event(payload={"text": "six"}))
            assert len((await memory.episodic("village", "baker")).memories) == 6
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            assert await words(memory) == 8

    run(work())


def test_memories_with_different_projections_share_a_folder_without_building_each_other_s_views_again(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as plain, Memory.open(tmp_path, projections=[Words()]) as with_words:
            await plain.publish_many(SAID)
            generations = set()
            for _ in range(3):
                await with_words.publish(event(payload={"text": "six"}))
                assert await words(with_words)
                generations.add((await plain.episodic("village", "baker")).generation)
                generations.add((await with_words.episodic("village", "baker")).generation)
            assert len(generations) == 1

    run(work())


def test_two_custom_projections_work_together(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words(), Loudest()]) as memory:
            await memory.publish_many(SAID)
            assert await words(memory) == 7
            assert await memory.row(Loudest.table, "village") == Line("FIVE FIVE")
            assert {row.views for row in (await memory.admin.status()).partitions} == {"built-in", "words", "loudest"}

    run(work())


def test_two_projections_with_one_name_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProjectionError, match="words"):
        Memory.open(tmp_path, projections=[Words(), Words()])


@pytest.mark.parametrize("name", ["", "Words", "my words", "../words", "words.db", "ä", "index", "reactors"])
def test_its_name_is_lower_case_and_safe_as_a_file_s(tmp_path: Path, name: str) -> None:
    projection = Words()
    projection.name = name  # type: ignore[misc]
    with pytest.raises(ProjectionError):
        Memory.open(tmp_path, projections=[projection])


# Versions.


def test_a_newer_version_is_rebuilt_automatically(tmp_path: Path) -> None:
    class Shouted(Words):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            for record in run:
                rows.put(WORDS, Spoken(1000), record.event.space, record.event.agent)

    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            await memory.publish_many(SAID)
            assert await words(memory) == 7
        async with Memory.open(tmp_path, projections=[Shouted(version=2)]) as memory:
            assert await words(memory) == 1000
            assert (await memory.admin.verify()).clean

    run(work())


def test_an_older_version_does_not_undo_what_a_newer_one_has_built(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words(version=2)]) as memory:
            await memory.publish_many(SAID)
            await words(memory)
        async with Memory.open(tmp_path, projections=[Words(version=1)]) as memory:
            with pytest.raises(ViewsTooNew):
                await words(memory)
            assert len((await memory.episodic("village", "baker")).memories) == 5

    run(work())


# Dead letters.


def test_a_record_that_it_cannot_apply_is_its_own_dead_letter_and_the_other_views_continue(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words(chokes_on="bad")]) as memory:
            await memory.publish_many(SAID)
            assert await words(memory) == 6  # the writes of the raising record are undone
            (letter,) = await memory.admin.dead_letters()
            assert (letter.views, letter.position, letter.reason) == ("words", Position(0, 2), "projection_failed")
            assert letter.detail == "words: ValueError: cannot swallow that"
            assert (letter.space, letter.id, letter.kind) == ("village", SAID[2].id, "agent.spoke")
            assert len((await memory.episodic("village", "baker", after=letter.position)).memories) == 5

    run(work())


def test_a_dead_letter_is_shown_with_its_content(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words(chokes_on="bad")]) as memory:
            await memory.publish_many(SAID)
            detail = await memory.admin.dead_letter(Position(0, 2))
            assert '"text":"bad"' in detail.content
            with pytest.raises(OutOfRange, match="not a dead letter"):
                await memory.admin.dead_letter(Position(0, 1))
            with pytest.raises(OutOfRange):
                await memory.admin.dead_letter(Position(0, 99))

    run(work())


def test_a_retry_that_would_not_help_rebuilds_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words(chokes_on="bad")]) as memory:
            await memory.publish_many(SAID)
            await memory.admin.dead_letters()
            before = await memory.admin.status()
            report = await memory.admin.retry_dead_letters()
            assert ([letter.position for letter in report], report.applied) == ([Position(0, 2)], 0)
            assert not report.ok
            assert await memory.admin.status() == before

    run(work())


def test_a_retry_applies_the_record_once_the_projection_is_fixed(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words(chokes_on="bad")]) as memory:
            await memory.publish_many(SAID)
            await memory.admin.dead_letters()
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            assert len(await memory.admin.dead_letters()) == 1
            assert await memory.admin.retry_dead_letters() == RetryReport(items=(), applied=1)
            assert await words(memory) == 7
            assert (await memory.admin.verify()).clean

    run(work())


def test_without_dead_letters_a_retry_does_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            await memory.publish_many(SAID)
            assert await memory.admin.retry_dead_letters() == RetryReport(items=(), applied=0)

    run(work())


def test_verification_finds_a_fixed_projection_whose_views_were_not_rebuilt(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words(chokes_on="bad")]) as memory:
            await memory.publish_many(SAID)
            await memory.admin.dead_letters()
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            report = await memory.admin.verify()
            assert not report.clean
            assert {check.views for check in report.tables if check.difference} == {"words"}

    run(work())


def test_a_rebuild_that_would_lose_remembered_events_does_not_cut_over(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            await memory.publish_many(SAID)
            assert await words(memory) == 7
        async with Memory.open(tmp_path, projections=[Words(chokes_on="bad")]) as memory:
            with pytest.raises(NewDeadLetters, match=r"0:2.*--accept"):
                await memory.admin.rebuild()
            assert await words(memory) == 7
            assert len((await memory.admin.abort_rebuild()).aborted) == 1
            assert await words(memory) == 7

    run(work())


def test_a_rebuild_that_accepts_losses_cuts_over(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            await memory.publish_many(SAID)
            assert await words(memory) == 7
        async with Memory.open(tmp_path, projections=[Words(chokes_on="bad")]) as memory:
            reports = await memory.admin.rebuild(accept=True)
            assert [report.views for report in reports] == ["built-in", "words"]
            assert await words(memory) == 6
            assert len(await memory.admin.dead_letters()) == 1

    run(work())


# Unreadable records.


def plant(home: Path, data: bytes) -> Position:
    """Write a record directly to the file."""
    return Position(0, plant_record(home / "ledger.db", data))


def test_invalid_records_do_not_stop_the_stream(tmp_path: Path) -> None:
    async def work() -> None:
        await filled(tmp_path)
        positions = [plant(tmp_path, data) for data in (b"\xffrubbish", b"[" * 9000, b'{"envelope": 7}', b"{}")]
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event(turn=99))
            assert (await memory.episodic("village", "baker")).memories[-1].event.turn == 99
            letters = await memory.admin.dead_letters()
            assert [letter.position for letter in letters] == positions
            assert [letter.reason for letter in letters] == ["unparsable", "unparsable", "future_schema", "invalid"]
            assert (await memory.admin.verify()).clean
            (status,) = (await memory.admin.status()).partitions
            assert (status.dead_letters, status.incomplete) == (4, True)

    run(work())


def test_waiting_for_a_dead_letter_raises_an_error_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        await filled(tmp_path)
        position = plant(tmp_path, b"\xffrubbish")
        async with Memory.open(tmp_path) as memory:
            for question in (
                memory.episodic("village", "baker", after=position),
                memory.timeline("village", "baker", after=position),
            ):
                with pytest.raises(DeadLettered, match=f"{position}.*unparsable.*dead-letters show"):
                    await question
            assert (await memory.admin.dead_letter(position)).content == "\\xffrubbish"

    run(work())


def test_a_query_of_the_past_skips_an_unreadable_record(tmp_path: Path) -> None:
    async def work() -> None:
        await filled(tmp_path)
        position = plant(tmp_path, b"\xffrubbish")
        async with Memory.open(tmp_path) as memory:
            assert len((await memory.episodic("village", "baker", as_of=position)).memories) == 5

    run(work())


def test_a_retry_rebuilds_nothing_for_unreadable_records(tmp_path: Path) -> None:
    async def work() -> None:
        await filled(tmp_path)
        plant(tmp_path, b"\xffrubbish")
        async with Memory.open(tmp_path) as memory:
            generation = (await memory.episodic("village", "baker")).generation
            assert len(await memory.admin.retry_dead_letters()) == 1
            assert (await memory.episodic("village", "baker")).generation == generation

    run(work())


def test_a_row_that_cannot_be_stored_makes_only_its_own_record_a_dead_letter(tmp_path: Path) -> None:
    class Fat(Words):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            for record in run:
                rows.append(LINES, Line(record.event.text * (300_000 if record.event.text == "bad" else 1)), "village")

    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Fat()]) as memory:
            await memory.publish_many(SAID)
            kept = await memory.log_entries(LINES, "village")
            assert [line.text for line in kept] == ["two two", "four", "FIVE FIVE"]
            assert [letter.position for letter in await memory.admin.dead_letters()] == [Position(0, 2)]

    run(work())


# The past.


def test_rows_and_logs_are_read_as_of_the_past() -> None:
    async def work() -> None:
        async with Memory.in_memory(projections=[Words()]) as memory:
            first, *_ = (await memory.publish_many(SAID)).items
            row = await memory.row(WORDS, "village", "baker", as_of=first)
            assert row == Spoken(1)
            lines = await memory.log_entries(LINES, "village", as_of=first)
            assert [line.text for line in lines] == ["one"]
            assert await words(memory) == 7

    run(work())


def test_as_of_a_time_a_projection_gets_later_events_too(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            await memory.publish_many(SAID)
            assert await memory.row(WORDS, "village", "baker", as_of="2000-01-01T00:00:00Z") == Spoken(7)

    run(work())


class Spoke(Words):
    """Counts what is spoken, and forgets it when something was lost."""

    kinds = frozenset({"agent.spoke", "toy.lost"})

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            if record.event.kind == "agent.spoke":
                super().apply(rows, [record])
            elif record.event.payload.get("text") == "all":
                rows.delete(WORDS, record.event.space, record.event.agent)
            else:
                raise ValueError("lost what?")


async def past_of(*lost: Event) -> int | None:
    """How many words there were after the first event, in a past in which `lost` erases."""

    async def erase(past: ReadSession, present: ReadSession, space: str) -> Sequence[Event]:
        return lost

    model = Model(name="spoken", projections=lambda: [Spoke()], erase=erase)
    async with Memory.in_memory(models=[*MODELS, model]) as memory:
        first, *_ = (await memory.publish_many(SAID)).items
        row = await memory.row(WORDS, "village", "baker", as_of=first)
        assert (await memory.episodic("village", "baker", as_of=first)).memories
        return row.words if row else None


def test_events_of_a_model_erase_in_the_past_of_its_views() -> None:
    assert run(past_of()) == 1
    assert run(past_of(event("toy.lost", payload={"text": "all"}))) is None


def test_a_past_in_which_something_cannot_be_erased_is_not_shown() -> None:
    with pytest.raises(ProjectionError, match="a past cannot be erased in: words: ValueError: lost what"):
        run(past_of(event("toy.lost")))
