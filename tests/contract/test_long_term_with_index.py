"""`memory.long_term` where an index measures how similar entries are: near-duplicates, lessons, and merging."""

import asyncio
import threading
from pathlib import Path

import pytest

from contract.test_index_entries import changed, retained
from contract.test_index_store import CountedEmbedder, Village, in_a_village
from recallog import Memory
from recallog.models.long_term import deduplication
from recallog.settings import Settings
from recallog_schemas.errors import EmbedderUnavailable
from support.indexing import catch_up

pytestmark = pytest.mark.models("long_term")

A = ("village", "baker")
# Of the toy embedder, which compares words.
LONG = "Before the market opens on Friday the baker sifts nine sacks of rye at the mill with the miller"
CLOSE = "The baker sifts nine sacks of rye at the mill with the miller before the market opens on Friday"
CLOSER = "Prior to the market opens on Friday the baker sifts nine sacks of rye at the mill with the miller"
FAR = "The hinges need oil."


async def listed(found: Village) -> dict[str, str]:
    return {each.id: each.text for each in (await found.memory.long_term.list(*A)).entries}


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "behind"])
@pytest.mark.parametrize("entry_type", ["fact", "lesson", "summary"])
def test_a_nearly_equal_text_is_stored_and_paid_for(indexed: bool, entry_type: str, tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        retain = found.memory.long_term.retain
        await found.memory.publish(changed("metered", units=10))
        await catch_up(found.indexing)
        await retain(*A, LONG, type=entry_type, entry_id="first")
        if indexed:
            await catch_up(found.indexing)
        near = await retain(*A, CLOSE, type=entry_type, entry_id="second")
        assert (near.outcome, near.id) == ("stored", "second")
        assert await listed(found) == {"first": LONG, "second": CLOSE}
        assert (await found.memory.long_term.stats(*A)).balance == 8
        if entry_type == "summary":
            assert near.nearest is None
            return
        assert near.nearest is not None
        assert (near.nearest.id, near.nearest.similarity) == ("first", near.similarity)
        assert near.nearest.similarity > 0.92
        far = await retain(*A, FAR, type=entry_type)
        assert far.nearest is not None
        assert far.nearest.similarity < 0.85

    in_a_village(tmp_path, work)


def test_a_text_with_other_readers_is_no_duplicate(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await found.memory.publish(retained(LONG, id="own"))
        await catch_up(found.indexing)
        near = await found.memory.long_term.retain(*A, CLOSE, audience=["miller"])
        assert (near.outcome, near.similarity) == ("stored", None)

    in_a_village(tmp_path, work)


def test_equal_texts_that_are_retained_at_the_same_moment_are_one_entry(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await found.memory.publish(changed("metered", units=10))
        await catch_up(found.indexing)
        retain = found.memory.long_term.retain
        answers = await asyncio.gather(*(retain(*A, text, type="lesson") for text in (LONG, f"{LONG}.", CLOSE)))
        assert sorted(each.outcome for each in answers) == ["skipped", "stored", "stored"]

    in_a_village(tmp_path, work)


def test_a_repeat_that_would_measure_another_similarity_is_a_repeat(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        retain = found.memory.long_term.retain
        await found.memory.publish(retained(LONG, id="first", type="lesson"))
        await catch_up(found.indexing)
        assert (await retain(*A, FAR, type="lesson", entry_id="far")).outcome == "stored"
        await found.memory.publish(retained(f"{FAR} Again.", id="closer", type="lesson"))
        again = await retain(*A, FAR, type="lesson", entry_id="far")
        assert (again.id, again.outcome) == ("far", "stored")
        await found.memory.publish(retained(FAR, id="far", type="lesson"))
        assert len(await listed(found)) == 3

    in_a_village(tmp_path, work)


def test_without_a_model_a_text_is_retained_without_a_comparison(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await found.memory.publish(retained(LONG, id="first"))
        await catch_up(found.indexing)
        found.embedders["toy"].failure = EmbedderUnavailable("the model is gone")
        near = await found.memory.long_term.retain(*A, CLOSE)
        assert (near.outcome, near.similarity) == ("stored", None)
        lessons = await found.memory.long_term.lessons(*A, "one two")
        assert lessons.relevance_by == "words"
        found.embedders["toy"].failure = None

    in_a_village(tmp_path, work)


def test_lessons_by_cosine_and_boost(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await found.memory.publish_many(
            [
                retained(LONG, id="equal", type="lesson"),
                retained(CLOSE, id="preferred", type="lesson", priority="important"),
                retained(FAR, id="pinned", type="lesson", priority="pinned"),
                retained(LONG, id="fact"),
                retained(f"{LONG} eighteen", id="shared", agent="miller", type="lesson", audience=["baker"]),
                retained(LONG, id="private", agent="miller", type="lesson"),
            ]
        )
        await catch_up(found.indexing)
        answer = await found.memory.long_term.lessons(*A, LONG)
        assert answer.relevance_by == "semantic"
        assert [each.entry.id for each in answer.lessons] == ["pinned", "preferred", "equal", "shared"]
        by_id = {each.entry.id: each for each in answer.lessons}
        assert (by_id["equal"].similarity, by_id["equal"].score) == (1.0, 1.0)
        preferred = by_id["preferred"]
        assert preferred.similarity is not None
        assert preferred.score == round(preferred.similarity + 0.15, 6)

    in_a_village(tmp_path, work)


def test_near_duplicates_that_stand_are_merged_once(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await found.memory.publish_many(
            [
                retained(LONG, id="old fact", priority="critical"),
                retained(CLOSE, id="new fact"),
                retained(LONG, id="old lesson", type="lesson"),
                retained(CLOSE, id="new lesson", type="lesson"),
                retained(CLOSER, id="newest lesson", type="lesson"),
                retained(FAR, id="far"),
                retained(LONG, id="others", agent="miller"),
                retained(CLOSE, id="seen by others", audience=["miller"]),
            ]
        )
        await catch_up(found.indexing)
        progress: list[tuple[int, int]] = []
        merged = await found.memory.long_term.deduplicate(*A, apply=True, progress=lambda *each: progress.append(each))
        assert set(merged.merged) == {"old fact", "new lesson", "newest lesson"}
        assert {(each.archived, each.kept) for each in merged.proposed} == {
            ("old fact", "new fact"),
            ("new lesson", "old lesson"),
            ("newest lesson", "old lesson"),
        }
        assert (await listed(found)).keys() == {"new fact", "old lesson", "far", "seen by others"}
        kept = (await found.memory.long_term.get(*A, "new fact")).entry
        gone = (await found.memory.long_term.get(*A, "old fact")).entry
        assert kept is not None
        assert gone is not None
        assert (kept.priority, gone.status) == ("critical", "archived")
        assert progress
        ends = await found.memory.admin.ledger_ends()
        again = await found.memory.long_term.deduplicate(*A, apply=True)
        assert (again.merged, again.position) == ((), None)
        assert await found.memory.admin.ledger_ends() == ends

    in_a_village(tmp_path, work)


def test_a_red_lined_entry_stays_and_the_strongest_priority_too(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await found.memory.publish_many(
            [
                retained(LONG, id="old", type="lesson"),
                retained(CLOSE, id="critical", type="lesson", priority="critical"),
                retained(CLOSER, id="important", type="lesson", priority="important"),
                retained(LONG, id="fact", red_line=True),
                retained(CLOSE, id="newer fact"),
            ]
        )
        await catch_up(found.indexing)
        await found.memory.long_term.deduplicate(*A, apply=True)
        entries = (await found.memory.long_term.list(*A)).entries
        assert {each.id: each.priority for each in entries} == {"old": "critical", "fact": "normal"}

    in_a_village(tmp_path, work)


@pytest.mark.parametrize("rows", [1, 32])
def test_the_last_of_several_facts_takes_over_the_strongest_priority(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplication, "_COMPARED_ROWS", rows)

    async def work(found: Village) -> None:
        await found.memory.publish_many(
            [
                retained(LONG, id="oldest", priority="critical"),
                retained(CLOSE, id="older"),
                retained(CLOSER, id="newest", priority="important"),
            ]
        )
        await catch_up(found.indexing)
        merged = await found.memory.long_term.deduplicate(*A, apply=True)
        assert merged.merged == ("oldest", "older")
        (kept,) = (await found.memory.long_term.list(*A)).entries
        assert (kept.id, kept.priority) == ("newest", "critical")

    in_a_village(tmp_path, work)


def test_only_texts_that_may_be_near_duplicates_are_embedded_together_and_once(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await found.memory.publish_many([retained(f"{word} {word}{word}", id=word) for word in "abcdefghijklmnopqrst"])
        await found.memory.publish_many([retained(text, id=text, type="lesson") for text in (LONG, CLOSE)])
        await catch_up(found.indexing)
        embedder = found.embedders["toy"]
        assert isinstance(embedder, CountedEmbedder)
        embedder.calls.clear()
        before = embedder.embedded
        done = await found.memory.long_term.deduplicate(*A, apply=True)
        assert (done.compared, len(done.merged)) == (22, 1)
        assert (embedder.embedded - before, len(embedder.calls)) == (2, 1)

    in_a_village(tmp_path, work, more={"toy": CountedEmbedder()})


def test_an_entry_that_is_forgotten_meanwhile_takes_none_with_it(tmp_path: Path) -> None:
    """Another program erases the newer fact after both were compared: the older one stays."""

    async def forget() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as other:
            assert (await other.long_term.forget(*A, ["newer"])).changed

    def progress(done: int, total: int) -> None:
        thread = threading.Thread(target=lambda: asyncio.run(forget()))
        if done == 0:
            thread.start()
            thread.join()

    async def work(found: Village) -> None:
        await found.memory.publish_many([retained(LONG, id="older"), retained(CLOSE, id="newer")])
        await catch_up(found.indexing)
        assert (await found.memory.long_term.deduplicate(*A, apply=True, progress=progress)).merged == ()
        assert await listed(found) == {"older": LONG}

    in_a_village(tmp_path, work)
