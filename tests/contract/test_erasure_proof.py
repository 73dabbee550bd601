"""A person's words are nowhere in a folder after an erasure, and were in each store that ought to have them before.

The first scan proves the second: a scan that finds a word where it is would find it where it must not be.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from recallog import Memory
from recallog_schemas.views import ErasureReport, ScanReport, VerifyReport
from support.events import one_loop, run
from support.marked_memory import (
    AGENT,
    ENGINE,
    KEYS,
    LEDGER,
    MARKERS,
    OTHER_WORD,
    PERSON,
    POINTS,
    SPACE,
    VIEWS,
    WORDS,
    fill,
    opened,
    stores_of,
)

pytestmark = pytest.mark.models("all")


@dataclass(frozen=True, slots=True)
class Story:
    """What was asked before and after the erasure, in this order."""

    home: Path
    before: ScanReport
    digests: list[str]
    erased: ErasureReport
    after: ScanReport
    """Right after the erasure, by the same process."""
    closed: ScanReport
    """By a process that opens the folder after that one has closed it."""
    verified: VerifyReport
    rebuilt: VerifyReport
    """After views and index were built again."""
    again: ErasureReport
    """Of a second erasure."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    home = tmp_path_factory.mktemp("erasure") / "memory"
    with one_loop():
        yield run(_told(home))


async def _told(home: Path) -> Story:
    async with opened(home) as memory:
        await fill(memory)
        before = await _scanned(memory)
        digests = [each.format() for each in (await memory.admin.digest()).items]
        erased = await memory.erase(SPACE, subject=PERSON)
        after = await memory.admin.scan(_words_and_halves(), digests=digests)
    async with opened(home) as memory:
        closed = await memory.admin.scan(_words_and_halves())
        verified = await memory.admin.verify()
        for what in ("views", "index"):
            await memory.admin.rebuild(what)
        rebuilt = await memory.admin.verify()
        again = await memory.erase(SPACE, subject=PERSON)
    return Story(home, before, digests, erased, after, closed, verified, rebuilt, again)


async def _scanned(memory: Memory) -> ScanReport:
    return await memory.admin.scan([*WORDS.values(), OTHER_WORD])


def _words_and_halves() -> list[str]:
    """The words, and parts of them: a word may be cut where pages of a file end."""
    words = [*WORDS.values()]
    long = [word for word in words if len(word) >= 10]
    return [*words, *(word[:6] for word in long), *(word[-6:] for word in long)]


def _found(report: ScanReport) -> Mapping[str, set[str]]:
    """The stores in which each word was found."""
    return stores_of(report, [*WORDS, "another person's"])


@pytest.mark.parametrize("name", MARKERS)
def test_before_the_erasure_each_word_is_in_the_stores_that_ought_to_have_it(story: Story, name: str) -> None:
    assert _found(story.before)[name] >= MARKERS[name].stores


def test_the_ledger_and_the_keys_never_had_a_word(story: Story) -> None:
    read = {each.place for each in story.before.places}
    assert any(place.endswith("ledger.db") for place in read)
    assert any(place.endswith("sealing.db") for place in read)
    assert not set().union(*_found(story.before).values()) & {LEDGER, KEYS}


def test_after_the_erasure_no_word_and_no_half_of_one_is_anywhere(story: Story) -> None:
    assert story.after.found == ()
    assert story.after.ok, story.after.format()


def test_a_process_that_opens_the_folder_finds_nothing_either(story: Story) -> None:
    assert story.closed.found == ()


def test_all_files_of_the_folder_were_read(story: Story) -> None:
    read = {each.place for each in story.closed.places}
    files = {str(Path(parent, name)) for parent, _, names in os.walk(story.home.resolve()) for name in names}
    assert len(files) > 20
    assert {each for each in files if not each.endswith(("-shm", "-wal"))} <= read | _of_later_builds(files, read)


def _of_later_builds(files: set[str], read: set[str]) -> set[str]:
    """The files of the collection of the index that was built after the scan."""
    return {each for each in files if "/index/engine/" in each}


def test_no_record_has_changed(story: Story) -> None:
    assert [each.matches for each in story.after.digests] == [True]


def test_views_and_index_are_what_the_ledger_gives_and_a_rebuild_changes_nothing(story: Story) -> None:
    assert story.verified.clean, story.verified.format()
    assert story.rebuilt.clean, story.rebuilt.format()
    tables = [{(each.views, each.table): each.digest for each in one.tables} for one in (story.verified, story.rebuilt)]
    assert tables[0] == tables[1]


def test_what_another_person_said_is_still_there(story: Story) -> None:
    (other,) = [stores for name, stores in _found(story.before).items() if name not in WORDS]
    assert {VIEWS, ENGINE, POINTS} <= other

    async def found() -> set[str]:
        async with opened(story.home) as memory:
            return _found(await _scanned(memory))["another person's"]

    assert {VIEWS, ENGINE, POINTS} <= run(found())


def test_the_answer_counts_the_events_by_kind_and_what_was_made_of_them(story: Story) -> None:
    counted = {each.kind: each.events for each in story.erased.kinds}
    assert counted["tool.used"] == 1
    assert story.erased.erased == sum(each.events for each in (*story.erased.kinds, *story.erased.made_from))
    assert not story.erased.unsealed


def test_a_second_erasure_answers_0(story: Story) -> None:
    assert (story.again.erased, story.again.position) == (0, None)


def test_timelines_keep_the_places_of_what_was_said(story: Story) -> None:
    async def texts() -> list[str]:
        async with opened(story.home) as memory:
            page = await memory.timeline(SPACE, AGENT, limit=100)
            return [each.text for each in page.items if each.event.subject == PERSON]

    shown = run(texts())
    assert len(shown) > 20
    assert {*shown} == {"[erased]"}
