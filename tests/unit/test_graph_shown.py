"""`memory.long_term.entities` and `about`: the entity graph as an agent may see it."""

from typing import Any

import pytest

from recallog import InvalidArgument, Memory
from support.events import event, run

pytestmark = pytest.mark.models("facts")

TEXTS = {
    "f-1": ("Lea bakes for Ann Rivers.", "fact"),
    "f-2": ("Lea sold flour to Ann Rivers.", "lesson"),
    "f-3": ("Ann Rivers met Bo.", "fact"),
}


async def keep(memory: Memory, agent: str = "baker", **more: Any) -> None:
    for id_, (text, type_) in TEXTS.items():
        await memory.long_term.retain("village", agent, text, type=type_, entry_id=id_, **more)


def asked(question: Any, **more: Any) -> Any:
    async def work() -> Any:
        async with Memory.in_memory() as memory:
            await keep(memory, **more)
            return await question(memory)

    return run(work())


def test_the_strongest_entities_come_first_with_the_number_of_their_entries() -> None:
    graph = asked(lambda memory: memory.long_term.entities("village", "baker"))
    assert [(each.entity, each.entries) for each in graph.entities] == [("ann rivers", 3), ("lea", 2), ("bo", 1)]
    assert [(each.one, each.other, each.entries) for each in graph.links] == [
        ("ann rivers", "lea", 2),
        ("ann rivers", "bo", 1),
    ]
    assert graph.total == 3


def test_links_of_few_entries_are_left_out_where_more_are_asked_for() -> None:
    graph = asked(lambda memory: memory.long_term.entities("village", "baker", min_entries=2))
    assert [(each.one, each.other) for each in graph.links] == [("ann rivers", "lea")]


def test_a_limit_leaves_out_weak_entities_and_their_links() -> None:
    graph = asked(lambda memory: memory.long_term.entities("village", "baker", limit=2))
    assert [each.entity for each in graph.entities] == ["ann rivers", "lea"]
    assert [each.other for each in graph.links] == ["lea"]


def test_the_graph_of_a_type_counts_the_entries_of_that_type_alone() -> None:
    graph = asked(lambda memory: memory.long_term.entities("village", "baker", type="fact"))
    assert [(each.entity, each.entries) for each in graph.entities] == [("ann rivers", 2), ("bo", 1), ("lea", 1)]
    assert [(each.one, each.other, each.entries) for each in graph.links] == [
        ("ann rivers", "bo", 1),
        ("ann rivers", "lea", 1),
    ]


def test_an_agent_sees_no_entity_of_another_one() -> None:
    graph = asked(lambda memory: memory.long_term.entities("village", "miller"))
    assert (graph.entities, graph.links, graph.total, graph.empty) == ((), (), 0, True)


def test_an_entry_for_another_reader_is_in_the_graph_of_both() -> None:
    graph = asked(lambda memory: memory.long_term.entities("village", "miller"), audience=["miller"])
    assert [each.entity for each in graph.entities] == ["ann rivers", "lea", "bo"]


def test_an_entity_is_found_in_any_case_with_its_entries_and_what_they_name_besides_it() -> None:
    found = asked(lambda memory: memory.long_term.about("village", "baker", "Lea"))
    assert [each.id for each in found.entries] == ["f-2", "f-1"]
    assert [(each.entity, each.entries) for each in found.related] == [("ann rivers", 2)]
    assert found.ok


def test_an_unknown_entity_has_no_entries() -> None:
    found = asked(lambda memory: memory.long_term.about("village", "baker", "Nobody"))
    assert (found.entity, found.entries, found.ok, found.format()) == ("nobody", (), False, "(nothing)")


def test_an_entry_that_is_forgotten_is_in_the_graph_no_longer() -> None:
    async def question(memory: Memory) -> Any:
        await memory.long_term.forget("village", "baker", ["f-3"])
        return await memory.long_term.entities("village", "baker")

    assert [each.entity for each in asked(question).entities] == ["ann rivers", "lea"]


def test_a_name_without_words_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="entity"):
        asked(lambda memory: memory.long_term.about("village", "baker", " "))


@pytest.mark.models("tiers")
def test_entries_are_listed_by_tier_and_category() -> None:
    async def work() -> Any:
        async with Memory.in_memory() as memory:
            for number in range(6):
                tier, category = ("slow", "fast")[number % 2], ("oven", "mill", None)[number % 3]
                await memory.long_term.retain(
                    "village", "baker", f"Fact {number}.", entry_id=f"e-{number}", tier=tier, category=category
                )
            listed = memory.long_term.list
            return [
                [each.id for each in (await listed("village", "baker", **only)).entries]
                for only in (
                    {"tier": "slow"},
                    {"filter": {"category": "mill"}},
                    {"tier": "fast", "filter": {"category": "mill"}},
                )
            ]

    assert run(work()) == [["e-4", "e-2", "e-0"], ["e-4", "e-1"], ["e-1"]]


def test_pages_of_a_category_have_all_of_its_entries_once() -> None:
    async def work() -> list[str]:
        async with Memory.in_memory() as memory:
            await memory.publish_many(
                [
                    event(
                        "memory.retained",
                        id=f"e-{number:04d}",
                        payload={"text": f"Fact {number}.", "category": "rare" if number % 500 == 0 else "common"},
                    )
                    for number in range(2_600)
                ]
            )
            found, cursor = list[str](), None
            while True:
                page = await memory.long_term.list(
                    "village", "baker", filter={"category": "rare"}, limit=2, cursor=cursor
                )
                found += [each.id for each in page.entries]
                cursor = page.next
                if cursor is None:
                    return found

    assert run(work()) == [f"e-{number:04d}" for number in range(2_500, -1, -500)]
