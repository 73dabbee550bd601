"""Search in documents where an index has processed all, some or none of them."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from contract.test_index_store import Village, in_a_village
from recallog import Event
from recallog_schemas.errors import IndexUnavailable
from support.events import event
from support.indexing import catch_up

pytestmark = pytest.mark.models("workspace")

A = ("village", "baker")
PAGE = "# Rye\nRye needs water.\n## Mill\nThe mill burns.\n## River\nThe river is cold.\n"
Work = Callable[[Village], Awaitable[None]]


async def put(found: Village, key: str, text: str, agent: str = "baker") -> Any:
    return await found.memory.items.put("village", agent, "workspace", key, text)


async def hits(found: Village, query: str, **more: Any) -> list[tuple[str, int, int, str]]:
    """Key, lines and source of the hits that are not weak."""
    view = await found.memory.workspace.search(*A, query, **more)
    assert view.degraded is None
    return [(hit.key, hit.first, hit.last, hit.source) for hit in view.hits if not hit.weak]


@pytest.mark.parametrize("mode", ["hybrid", "fts", "semantic", "unknown"])
def test_an_indexed_document_is_found_by_its_parts(tmp_path: Path, mode: str) -> None:
    async def work(found: Village) -> None:
        await put(found, "rye.md", PAGE)
        await put(found, "other.md", "Bread! Who burned the smith?")
        await catch_up(found.indexing)
        assert (await hits(found, "the mill burns", mode=mode))[:1] == [("rye.md", 3, 4, "index")]
        view = await found.memory.workspace.search(*A, "the mill burns", mode=mode)
        assert (view.mode, view.index is not None, view.index_behind) == (
            mode if mode != "unknown" else "hybrid",
            True,
            0,
        )
        assert view.hits[0].text == "## Mill\nThe mill burns."
        assert (view.hits[0].similarity is None) == (mode == "fts")

    in_a_village(tmp_path, work)


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "behind"])
def test_a_changed_document_is_found_by_its_new_words_alone(tmp_path: Path, indexed: bool) -> None:
    async def work(found: Village) -> None:
        await put(found, "rye.md", PAGE)
        await catch_up(found.indexing)
        await put(found, "rye.md", "One line more.\n" + PAGE.replace("burns", "stands"))
        if indexed:
            await catch_up(found.indexing)
        assert ("rye.md", 4, 5) in [hit[:3] for hit in await hits(found, "stands", mode="fts")]
        assert await hits(found, "burns", mode="fts") == []
        for mode in ("hybrid", "semantic"):
            view = await found.memory.workspace.search(*A, "burns", mode=mode)
            assert not any("burns" in hit.text for hit in view.hits)
        # What did not change is found where it is now, also by an index that has its former lines.
        assert (await hits(found, "river cold"))[0] == ("rye.md", 6, 7, "index")

    in_a_village(tmp_path, work, events=[])


def test_documents_that_are_gone_are_not_found_while_the_index_is_behind(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await put(found, "a.md", "The mill burns.")
        await put(found, "b.md", "The mill stands.")
        await catch_up(found.indexing)
        await found.memory.items.delete(*A, "workspace", "a.md")
        await found.memory.items.move(*A, "workspace", "b.md", "c.md")
        assert [hit[0] for hit in await hits(found, "the mill")] == ["c.md"]
        await catch_up(found.indexing)
        assert [hit[0] for hit in await hits(found, "the mill")] == ["c.md"]

    in_a_village(tmp_path, work, events=[])


def test_the_past_is_found_as_it_was(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        first = await put(found, "rye.md", PAGE)
        second = await put(found, "rye.md", PAGE.replace("burns", "stands"))
        await found.memory.items.delete(*A, "workspace", "rye.md")
        await catch_up(found.indexing)
        assert await hits(found, "mill") == []
        for at in (first.position, second.position):
            (hit, *_) = (await found.memory.workspace.search(*A, "mill", as_of=at)).hits
            assert (hit.key, hit.first, hit.last) == ("rye.md", 3, 4)
            assert ("burns" in hit.text) == (at == first.position)

    in_a_village(tmp_path, work, events=[])


def test_nobody_finds_the_documents_of_another_agent(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await put(found, "secret.md", "The mill burns.")
        await catch_up(found.indexing)
        assert len(await hits(found, "the mill")) == 1
        for agent in ("miller", "stranger"):
            view = await found.memory.workspace.search("village", agent, "the mill")
            assert (view.hits, view.considered) == ((), 0)
            recalled = await found.memory.recall("village", agent, "the mill", types=["document", "event", "fact"])
            assert recalled.hits == ()
        assert (await found.memory.workspace.search("city", "baker", "the mill")).hits == ()

    in_a_village(tmp_path, work, events=[])


def test_documents_change_no_answer_of_recall_without_them(tmp_path: Path) -> None:
    """Neither hits nor scores: words of documents count in no idf, and no document takes a place of a memory."""
    retained = event(kind="memory.retained", payload={"text": "The mill burns at dusk."})

    async def answers(found: Village) -> list[Any]:
        await catch_up(found.indexing)
        found_hits = [
            (await found.memory.recall(*A, query, top_k=50)).hits for query in ("who burned the mill", "bread", "river")
        ]
        return [[(hit.event.id, hit.score, hit.parts) for hit in each] for each in found_hits]

    async def work(found: Village) -> None:
        await found.memory.publish(retained)
        before = await answers(found)
        for number in range(40):
            await put(found, f"{number}.md", f"The mill burns {number} times by the river. Bread!")
        assert await answers(found) == before
        assert all(each for each in before)

    in_a_village(tmp_path, work)


def test_documents_entries_and_events_are_found_together(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await found.memory.publish(event(kind="memory.retained", payload={"text": "The mill burns at dusk."}))
        await put(found, "rye.md", PAGE)
        for indexed in (False, True):
            if indexed:
                await catch_up(found.indexing)
            view = await found.memory.recall(*A, "who burned the mill", types=["document", "fact", "event"], top_k=50)
            assert {"item.put", "memory.retained", "agent.spoke"} <= {hit.event.kind for hit in view.hits}
            assert len({hit.event.id for hit in view.hits}) == len(view.hits)
            chunks = [hit for hit in view.hits if hit.lines is not None]
            assert {hit.source for hit in chunks} == ({"index"} if indexed else {"views"})

    in_a_village(tmp_path, work)


def test_where_the_index_fails_words_are_compared(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await put(found, "rye.md", PAGE)
        await catch_up(found.indexing)
        found.engine.down(IndexUnavailable("the engine is down"))
        for mode in ("hybrid", "fts", "semantic"):
            view = await found.memory.workspace.search(*A, "the mill burns", mode=mode)
            assert (view.hits[0].first, view.hits[0].source, view.mode) == (3, "views", mode)
            assert view.degraded == "only words were compared: the engine is down"

    in_a_village(tmp_path, work, events=[])


def test_where_no_vector_can_be_compared_a_search_by_meaning_compares_words(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await put(found, "rye.md", PAGE)
        view = await found.memory.workspace.search(*A, "the mill burns", mode="semantic")
        assert (view.hits[0].first, view.hits[0].source) == (3, "views")
        assert view.degraded is not None
        await put(found, "会议.md", "请记得备份数据库。")
        await catch_up(found.indexing)
        view = await found.memory.workspace.search(*A, "备份", mode="semantic")  # the model reads no Chinese
        assert [hit.key for hit in view.hits] == ["会议.md"]
        assert view.degraded is not None
        assert view.degraded.startswith("only words were compared: its model cannot read the query")
        view = await found.memory.workspace.search(*A, "", mode="semantic")
        assert (view.hits, view.degraded) == ((), None)

    in_a_village(tmp_path, work, events=[])


def test_equal_parts_of_one_document_are_found_each_at_its_place(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await put(found, "a.md", "# A\n## X\nThe mill burns.\n# B\nno\n# A\n## X\nThe mill burns.\n")
        await catch_up(found.indexing)
        view = await found.memory.workspace.search(*A, "the mill burns")
        assert sorted(hit.first for hit in view.hits if "burns" in hit.text) == [1, 6]

    in_a_village(tmp_path, work, events=[])


def test_a_key_of_any_characters_is_found(tmp_path: Path) -> None:
    keys = ["a/b.md", "100%.md", "a%2Fb.md", "é 会.md", "..", "x" * 256, "line\nbreak", "\x07"]

    async def work(found: Village) -> None:
        for key in keys:
            await put(found, key, "The mill burns.")
        expected = sorted(keys)
        assert sorted(hit[0] for hit in await hits(found, "the mill burns", limit=20)) == expected
        await catch_up(found.indexing)
        assert sorted(hit[0] for hit in await hits(found, "the mill burns", limit=20)) == expected
        shown = (await found.memory.workspace.search(*A, "the mill burns", limit=20)).hits
        assert [(hit.title, hit.text) for hit in shown] == [
            (hit.key.replace("\n", " "), "The mill burns.") for hit in shown
        ]
        recalled = (await found.memory.recall(*A, "the mill burns", types=["document"], top_k=20)).hits
        for hit in recalled:
            assert Event.model_validate_json(hit.event.model_dump_json()) == hit.event

    in_a_village(tmp_path, work, events=[])


def test_documents_and_memories_answer_one_question_that_names_an_agent(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await put(found, "rye.md", PAGE)
        await catch_up(found.indexing)
        view = await found.memory.recall(*A, "What did the miller say about the mill?", types=["event", "document"])
        assert view.degraded is None
        assert {hit.lines is None for hit in view.hits} == {True, False}

    in_a_village(tmp_path, work)
