"""Documents of workspaces in the index: a point for each chunk, which ends when its text leaves the document."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from contract.test_index_entries import published
from contract.test_index_store import Village, in_a_village, village
from recallog import Event
from recallog_projections.index.documents import COUNTS
from recallog_projections.index.store import damage
from recallog_projections.models.workspace.chunks import chunks
from recallog_schemas.models.workspace import limits as workspace_limits
from support.events import event, run
from support.indexing import catch_up

pytestmark = pytest.mark.models("workspace")

WORKSPACE = ["workspace"]
PAGE = "# Rye\nRye needs water.\n## Mill\nThe mill burns.\n## River\nThe river is cold.\n"


def item(change: str, key: str, agent: str = "baker", namespace: Sequence[str] = WORKSPACE, **more: Any) -> Event:
    return event(f"item.{change}", agent=agent, payload={"namespace": list(namespace), "key": key, **more})


def put(key: str, value: Any, agent: str = "baker", **more: Any) -> Event:
    return item("put", key, agent, value=value, **more)


async def forms(found: Village) -> list[tuple[str, str, int, int | None]]:
    """Space, text, begin and end of the points of chunks, oldest first. The index must be as a fold makes it."""
    assert await found.differences() == []
    active = (await found.rows.pointer(0)).active
    assert active is not None
    assert await damage(found.rows, found.engine, active) == ""
    stored = [point.payload for point in (await found.points()).values() if "entry" in point.payload]
    counted = (await found.rows.scan(active, COUNTS.name, limit=10)).items
    assert sum(COUNTS.decode(item.data).documents for item in counted) == len(stored)
    assert all(payload["readers"] == [payload["agent"]] for payload in stored)
    of_points = [(payload["space"], payload["text"], payload["since"], payload["until"]) for payload in stored]
    return sorted(of_points, key=lambda one: (one[2], one[1]))


async def present(found: Village) -> list[str]:
    return [text for space, text, _, until in await forms(found) if until is None and space == "+village"]


def test_a_document_has_a_point_for_each_chunk(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(found, put("rye.md", PAGE))
        assert await present(found) == [
            "rye.md\n# Rye\nRye needs water.",
            "rye.md: Rye\n## Mill\nThe mill burns.",
            "rye.md: Rye\n## River\nThe river is cold.",
        ]

    in_a_village(tmp_path, work, events=[])


def test_only_what_changed_is_embedded_again_and_the_former_chunk_ends(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(found, put("rye.md", PAGE))
        toy = found.embedders["toy"]
        before = toy.embedded
        changed = await found.memory.publish(put("rye.md", "New: first line.\n" + PAGE.replace("burns", "stands")))
        await catch_up(found.indexing)
        assert toy.embedded == before + 2
        ended = [(text, until) for space, text, _, until in await forms(found) if space == "-+village"]
        assert ended == [("rye.md: Rye\n## Mill\nThe mill burns.", changed.offset)]
        await published(found, put("rye.md", PAGE), put("rye.md", PAGE))
        assert sorted(await present(found)) == sorted(chunk.text for chunk in chunks("rye.md", PAGE))

    in_a_village(tmp_path, work, events=[])


def test_deleted_moved_and_hidden_documents_have_no_present_chunks(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(found, put("a.md", "one"), put("b.md", "two"), put("c.md", "three"), put("d.md", "four"))
        await published(found, item("deleted", "a.md"), item("moved", "b.md", to="c.md"), put("d.md", "4", index=False))
        assert await present(found) == ["c.md\ntwo"]
        await published(found, item("appended", "d.md", text="\n5"), put("c.md", {"no": "text"}), put("a.md", "again"))
        assert await present(found) == ["a.md\nagain"]
        await published(found, put("d.md", "six", index=True))
        assert await present(found) == ["a.md\nagain", "d.md\nsix"]

    in_a_village(tmp_path, work, events=[])


def test_other_items_and_refused_changes_have_no_points(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(
            found,
            put("a.md", "one", base=7),
            item("put", "a.md", namespace=["notes"], value="two"),
            item("put", "a.md", namespace=["workspace", "old"], value="three"),
            item("put", "Goals", namespace=["working"], value="four"),
            item("deleted", "nothing.md"),
        )
        assert await forms(found) == []

    in_a_village(tmp_path, work, events=[])


def test_ended_chunks_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_limits, "DOCUMENT_CHUNKS_ENDED", 3)

    async def work(found: Village) -> None:
        await published(found, *(put("a.md", f"# {number}\none\n# b{number}\ntwo") for number in range(4)))
        points = await forms(found)
        assert [text for _, text, _, until in points if until is not None] == [
            "a.md\n# b1\ntwo", "a.md\n# 2\none", "a.md\n# b2\ntwo",
        ]  # fmt: skip
        assert len(points) == 5
        await published(found, item("deleted", "a.md"))
        assert len(await forms(found)) == 3

    in_a_village(tmp_path, work, events=[])


def random_changes(rng: random.Random, number: int) -> list[Event]:
    made: list[Event] = []
    for _ in range(number):
        key, agent = rng.choice(("a.md", "b/c.md", "%2F.txt")), rng.choice(("baker", "miller"))
        lines = [rng.choice(("# a", "## b", "rye", "water", "", "mill")) for _ in range(rng.randrange(9))]
        what = rng.choice(("put", "put", "put", "appended", "moved", "deleted"))
        more: dict[str, Any] = {"value": "\n".join(lines)} if what == "put" else {}
        if what == "appended":
            more = {"text": "\n# more\nbread"}
        elif what == "moved":
            more = {"to": rng.choice(("a.md", "d.md"))}
        made.append(item(what, key, agent, **more))
        if rng.random() < 0.2:
            made.append(rng.choice(made))
    return made


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_leave_the_chunks_of_the_documents_that_are_there(tmp_path: Path, seed: int) -> None:
    """In batches of one and in one batch, where some come twice: what a rebuild would have."""
    changes = random_changes(random.Random(seed), 60)

    async def indexed(home: Path, parts: Sequence[Sequence[Event]]) -> list[Any]:
        async with village(home, events=[]) as found:
            for part in parts:
                await published(found, *part)
            expected = []
            for agent in ("baker", "miller"):
                page = await found.memory.items.list("village", agent, "workspace")
                expected += [chunk.text for each in page.items for chunk in chunks(each.key, each.value)]
            points = await forms(found)
            assert sorted(text for _, text, _, until in points if until is None) == sorted(expected)
            return points

    one_by_one = run(indexed(tmp_path / "a", [[change] for change in changes]))
    assert run(indexed(tmp_path / "b", [changes])) == one_by_one
