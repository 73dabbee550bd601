"""`recallog recall` and `recallog search` with a preset or with types, over a memory whose index is off."""

from pathlib import Path

import pytest

from recallog import Memory, Settings
from recallog_schemas import Event
from support.cli import Result, recallog
from support.events import event, run

pytestmark = pytest.mark.models("long_term")

QUESTION = "who waters the rye?"
OFF = {"RECALLOG_INDEX": "off"}


def retained(id_: str, text: str, **more: object) -> Event:
    return event("memory.retained", id=id_, payload={"text": text, **more})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an event, the fact that was made from it, and a lesson."""
    folder = tmp_path_factory.mktemp("presets") / "home"

    async def work() -> None:
        async with Memory.open(Settings(home=folder, index="off")) as memory:
            await memory.publish_many(
                [
                    event(id="said", payload={"text": "Well, the smith waters the rye, I think, by the river."}),
                    retained("lesson", "Water rye at dusk, and oats at noon, and neither in the rain.", type="lesson"),
                    retained("fact", "The smith waters the rye.", type="fact", sources=["said"]),
                ]
            )

    run(work())
    return folder


def asked(home: Path, command: str, *options: str) -> Result:
    result = recallog(command, "village", "baker", QUESTION, "--home", home, *options, **OFF)
    assert result.code == 0, result.err
    return result


def test_a_preset_ranks_entries_and_says_how(home: Path) -> None:
    found = asked(home, "recall", "--preset", "four_channel", "--json").json
    assert [hit["event"]["id"] for hit in found["hits"]] == ["fact", "lesson"]
    assert (found["preset"], found["fusion"], found["channels"]) == (
        "four_channel",
        "rrf",
        ["entity", "keyword", "temporal"],
    )
    assert found["hits"][0]["parts"] == {"keyword": 1 / 61, "temporal": 1 / 61}
    shown = asked(home, "recall", "--preset", "four_channel", "--explain")
    assert "keyword 0.016 + temporal 0.016 = 0.033" in shown.out
    assert "2 memories compared by entity, keyword, temporal (four_channel)" in shown.err


def test_weights_and_channels_are_options(home: Path) -> None:
    options = ["--preset", "four_channel", "--recency-weight", "1", "--channel", "temporal"]
    found = asked(home, "recall", *options, "--json").json
    assert [(hit["event"]["id"], hit["score"]) for hit in found["hits"]] == [("fact", 1 / 61), ("lesson", 1 / 62)]
    found = asked(home, "recall", "--preset", "hybrid", "--vector-weight", "0.3", "--json").json
    assert [hit["score"] for hit in found["hits"]] == [0.7 / 61, 0.7 / 62]


def test_types_narrow_the_answer(home: Path) -> None:
    for types, expected in ((["lesson"], ["lesson"]), (["event"], ["said"]), (["event", "fact"], ["fact"])):
        options = [option for each in types for option in ("--type", each)]
        for command in ("recall", "search"):
            hits = asked(home, command, *options, "--json").json["hits"]
            assert [hit["id"] if command == "search" else hit["event"]["id"] for hit in hits] == expected


def test_what_a_hit_stands_for_is_shown(home: Path) -> None:
    assert "(also said)" in asked(home, "recall").out
    assert "(also said)" in asked(home, "search").out


def test_options_that_need_a_preset_are_named(home: Path) -> None:
    result = recallog("recall", "village", "baker", QUESTION, "--vector-weight", "0.3", "--home", home, **OFF)
    assert result.code == 2
    assert "vector_weight" in result.err
    assert "preset" in result.err
