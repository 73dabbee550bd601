"""Progressive disclosure with the embedded index: preview, neighbours and whole event of a hit."""

from pathlib import Path

import pytest

from recallog import Memory, Settings
from support.cli import recallog
from support.events import event, run
from support.index_process import DEADLINE_SECONDS

SAID = [
    ("miller", "agent.spoke", "The bakery owes me for nine sacks of flour."),
    ("miller", "agent.thought", "Nobody knows that I watered the flour."),
    ("baker", "agent.spoke", "My sister arrives by the evening train."),
    ("narrator", "world.observed", "A heavy box is missing from the cupboard."),
    ("baker", "agent.thought", "The blacksmith copied a key once."),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("disclosed") / "home"
    events = [
        event(kind, agent=agent, id=f"e-{n}", turn=n, payload={"text": text})
        for n, (agent, kind, text) in enumerate(SAID)
    ]

    async def work() -> None:
        async with Memory.open(Settings(home=home, index="off")) as memory:
            await memory.publish_many(events)

    run(work())
    return home


def test_an_event_found_by_meaning_is_shown_as_preview_then_with_neighbours_then_whole(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=home, index="embedded", deadline_seconds=DEADLINE_SECONDS)) as memory:
            page = await memory.search("village", "baker", "a chest has disappeared", wait_index=True)
            assert (page.degraded, page.index_behind) == (None, 0)
            assert page.index is not None
            assert page.index_checkpoint is not None
            best = page.hits[0]
            assert best.id == "e-3"
            assert {hit.id for hit in page.hits} <= {"e-2", "e-3", "e-4"}
            around = await memory.around("village", "baker", best.id)
            assert [each.id for each in around.events] == ["e-2", "e-3", "e-4"]
            whole = await memory.entries("village", "baker", [best.id, "e-1"])
            assert [shown.text for shown in whole.entries] == ["A heavy box is missing from the cupboard."]

    run(work())


def test_the_commands_wait_for_the_index_and_report_that_it_answered(home: Path) -> None:
    found = recallog(
        "recall", "village", "baker", "missing box", "--explain", "--wait", "--home", home, "--index", "embedded"
    )
    assert found.code == 0, found
    first, text, parts, place, *_ = found.out.splitlines()
    assert "  e-3  narrator  " in first
    assert text.strip() == "A heavy box is missing from the cupboard."
    assert "semantic" in parts
    assert "e-3 at 0:3, of the index" in place
    assert "the index answered: generation" in found.err
    assert "degraded" not in found.err
    page = recallog(
        "search", "village", "baker", "missing box", "--wait", "--home", home, "--index", "embedded", "--json"
    ).json
    assert (page["hits"][0]["id"], page["degraded"]) == ("e-3", None)
