"""The entity graph: which entries an agent reaches from the entities of a question, and what leaves the graph."""

from collections.abc import Sequence
from typing import Any

import pytest

from recallog import Memory
from recallog.models.facts import by_entities
from recallog.operations.parameters import At
from recallog_projections.models.facts import tables
from recallog_projections.models.facts.tables import Counts, Entity, EntityFact, Link
from recallog_schemas import Event
from recallog_schemas.models.facts import limits as facts_limits
from support.entries_checking import View
from support.events import event, run
from support.finishing import finish
from support.folding import folded, ledger_at, reading_of

pytestmark = pytest.mark.models("facts", "tiers")

CHAIN = {
    "r1": ("Alpha works with Beta.", "Alpha"),
    "r2": ("Beta supplies Gamma.", "Beta"),
    "r3": ("Gamma rents from Delta.", "Gamma"),
    "r4": ("Delta is closed.", "Delta"),
}


def retained(id_: str, text: str, entity: str | None = None, **fields: Any) -> Event:
    payload = {"text": text} | ({} if entity is None else {"entity": entity})
    return event("memory.retained", id=id_, payload=payload, **fields)


def changed(change: str, **payload: Any) -> Event:
    return event(f"memory.{change}", payload=payload)


def chain() -> list[Event]:
    return [retained(id_, text, entity) for id_, (text, entity) in CHAIN.items()]


class Town:
    """A fold of events in memory."""

    def __init__(self, events: Sequence[Event]) -> None:
        ledger = ledger_at([])
        finish(ledger.append(events))
        self.projector, self.generation = folded(ledger)
        self.view = View(self.projector.store, self.generation)

    def found(self, query: str, agent: str = "baker", limit: int = 50) -> list[tuple[int, float]]:
        reading = reading_of(self.projector, self.generation)
        found = finish(by_entities.rank_entries(reading, "village", agent, query, limit=limit))
        return [(each.offset, each.weight) for each in found]

    def entity(self, key: str, graph: str = "baker") -> Entity | None:
        return self.view.rows(tables.ENTITIES).get(("village", graph, key))

    def counts(self, graph: str = "baker") -> Counts | None:
        return self.view.rows(tables.COUNTS).get(("village", graph, ""))


def test_two_hops_reach_what_is_named_together() -> None:
    assert Town(chain()).found("Tell me about Alpha") == [(0, 1.0), (1, 0.5), (2, 0.25)]


def test_a_word_of_an_entity_finds_it_and_so_does_its_quoted_name() -> None:
    town = Town([retained("f", "It prefers React.", "Acme Corp"), retained("g", "Corp law is dry.")])
    for query in ("What does Acme prefer?", 'what about "Acme Corp"?', "ACME", "acme \u201cacme corp\u201d"):
        assert town.found(query) == [(0, 1.0)], query
    assert town.found("React") == [(0, 1.0)]
    assert town.found("Acme Labs") == town.found("acme") == town.found("Zeta") == []


def test_a_query_without_capitals_finds_whole_names() -> None:
    town = Town([retained("f", "It prefers React.", "Acme Corp"), retained("g", "它更喜欢茶。", "极点公司")])
    assert town.found("what does acme corp prefer?") == [(0, 1.0)]
    assert town.found("react") == [(0, 1.0)]
    assert town.found("极点公司喜欢什么？") == [(1, 1.0)]
    assert town.found("the of what") == town.found("") == []


def test_an_entry_that_names_more_of_the_question_comes_first() -> None:
    town = Town([retained("a", "Alice knows Bob."), retained("b", "Alice sleeps."), retained("c", "Bob sleeps.")])
    assert town.found("Did Alice meet Bob?") == [(0, 1.0), (2, 1.0), (1, 1.0)]
    assert town.found("Did Alice meet Bob?", limit=2) == [(0, 1.0), (2, 1.0)]


def test_rows_of_an_entity() -> None:
    town = Town([*chain(), retained("r5", "Beta left Alpha.")])
    assert town.entity("beta") == Entity(
        3,
        (EntityFact(0, "baker"), EntityFact(1, "baker"), EntityFact(4, "baker")),
        (Link("alpha", 2, 4), Link("gamma", 1, 1)),
    )
    assert town.counts() == Counts(entities=4, links=3)


@pytest.mark.parametrize(
    "last",
    [
        changed("retracted", entry="r2"),
        changed("archived", entry="r2"),
        changed("erased", entries=["r2"]),
        changed("transferred", entries=["r2"], to="miller"),
        changed("updated", entry="r2", text="nothing to see", entity=None),
        changed("updated", entry="r2", type="tool_usage"),
    ],
    ids=lambda last: last.kind,
)
def test_links_go_with_the_entry(last: Event) -> None:
    town = Town([*chain(), last])
    assert town.found("Alpha") == [(0, 1.0)]
    assert town.counts() == Counts(entities=4, links=2)
    beta = town.entity("beta")
    assert beta is not None
    assert beta.facts == (EntityFact(0, "baker"),)


def test_a_changed_text_is_found_by_its_new_entities() -> None:
    town = Town([*chain(), changed("updated", entry="r2", text="Beta supplies Omega.")])
    assert town.found("Omega") == [(1, 1.0), (0, 0.5)]
    assert town.entity("omega") is not None
    assert town.found("Alpha") == [(0, 1.0), (1, 0.5)]


def test_a_pin_changes_nothing() -> None:
    assert Town(chain()).view.rows(tables.ENTITIES) == Town(
        [*chain(), changed("updated", entry="r2", priority="pinned")]
    ).view.rows(tables.ENTITIES)


def test_the_last_entry_of_an_entity_takes_it_away() -> None:
    town = Town([*chain(), changed("erased", entries=list(CHAIN))])
    assert all(town.view.rows(table) == {} for table in tables.ALL)


def test_a_call_of_a_tool_is_in_no_graph() -> None:
    tool = event("memory.retained", payload={"text": "grep Alpha", "type": "tool_usage", "entity": "Alpha"})
    assert Town([tool]).counts() is None


def test_an_experience_is() -> None:
    done = event("experience.recorded", payload={"action_type": "trade", "summary": "Sold to Alpha", "outcome": "Gold"})
    assert Town([done]).found("Alpha") == [(0, 1.0)]


def test_a_reader_follows_its_own_graph_and_the_shared_one_as_one() -> None:
    town = Town(
        [
            event("space.configured", payload={"shared_kinds": ["memory.retained"]}),
            retained("own", "Alpha works with Beta.", audience=("baker",)),
            retained("all", "Beta supplies Gamma.", agent="miller"),
            retained("mine", "Gamma is mine.", agent="smith", audience=("smith", "widow")),
        ]
    )
    assert town.found("Alpha") == [(1, 1.0), (2, 0.5)]
    assert town.found("Alpha", "miller") == []
    assert town.found("Beta", "widow") == [(2, 1.0), (3, 0.5)]
    assert town.found("Gamma", "widow") == [(3, 1.0), (2, 1.0)]
    assert town.found("Gamma", "stranger") == [(2, 1.0)]


def test_a_private_link_is_followed_by_nobody_else() -> None:
    """Both ends are shared; that they belong together is not."""
    town = Town(
        [
            event("space.configured", payload={"shared_kinds": ["memory.retained"]}),
            retained("a", "Alpha stands.", agent="miller"),
            retained("b", "Omega falls.", agent="miller"),
            retained("ab", "Alpha bribed Omega.", agent="smith", audience=("smith",)),
        ]
    )
    assert town.found("Alpha", "smith") == [(3, 1.0), (1, 1.0), (2, 0.5)]
    assert town.found("Alpha", "baker") == [(1, 1.0)]


def test_of_an_entity_the_newest_entries_are_looked_at() -> None:
    many = facts_limits.GRAPH_FACTS_KEPT + 10
    town = Town([retained(f"e{n}", f"Alpha did {n}.") for n in range(many)])
    alpha = town.entity("alpha")
    assert alpha is not None
    assert alpha.total == many
    assert alpha.facts[0] == EntityFact(10, "baker")
    assert len(alpha.facts) == facts_limits.GRAPH_FACTS_KEPT
    newest = [(many - 1 - n, 1.0) for n in range(facts_limits.GRAPH_HOP_FACTS)]
    assert town.found("Alpha", limit=1_000) == newest


def test_the_strongest_links_are_kept() -> None:
    hub = [retained(f"e{n}", f"Hub met Name{n}.") for n in range(facts_limits.GRAPH_LINKS_KEPT + 1)]
    town = Town([*hub, retained("again", "Hub saw Name1.")])
    row = town.entity("hub")
    assert row is not None
    assert len(row.links) == facts_limits.GRAPH_LINKS_KEPT
    assert Link("name1", 2, facts_limits.GRAPH_LINKS_KEPT + 1) in row.links
    assert "name0" not in {link.key for link in row.links}


def test_a_word_of_many_entities_is_looked_up_by_the_others() -> None:
    names = [
        retained(f"e{n}", f"It exists {n}.", f"Corporation {n:04}") for n in range(facts_limits.GRAPH_SAME_WORD + 5)
    ]
    town = Town([*names, retained("z", "It exists too.", "Zeta Corporation")])
    assert town.found('"Zeta Corporation"') == [(len(names), 1.0)]
    assert (
        len(town.found("Corporation", limit=1_000)) == facts_limits.GRAPH_HOP_ENTITIES - 1
    )  # one is "corporation" itself


def test_an_erasure_of_many_entries_with_many_readers_and_entities_is_one_step() -> None:
    """More rows follow from it than the fold would load one by one."""
    names = ", ".join(f"{letter}lpha" for letter in "ABCDEFGHIJKLMNOP")
    readers = tuple(f"reader-{n}" for n in range(40))
    many = [retained(f"e{n}", f"{names} {n}", audience=readers) for n in range(3)]
    town = Town([*many, changed("erased", entries=["e0", "e1", "e2"])])
    assert all(town.view.rows(table) == {} for table in tables.ALL)


def test_stats_count_links_also_in_the_past() -> None:
    async def told() -> tuple[int, int, int]:
        async with Memory.in_memory() as memory:
            positions = await memory.publish_many(chain())
            agent = ("village", "baker")
            before = (await memory.long_term.stats(*agent)).entity_link_count
            await memory.long_term.retract(*agent, "r3")
            after = (await memory.long_term.stats(*agent)).entity_link_count
            await memory.long_term.forget(*agent, ["r2"])
            past = (await memory.long_term.stats(*agent, as_of=positions[-1])).entity_link_count
            return before, after, past

    assert run(told()) == (3, 2, 2)


def test_a_past_has_no_link_of_an_erased_entry() -> None:
    async def told() -> Sequence[object]:
        async with Memory.in_memory() as memory:
            positions = await memory.publish_many(chain())
            await memory.long_term.forget("village", "baker", ["r2"])
            access = memory.long_term._access
            at = At(as_of=positions[-1])
            return await access.of_space("village", at, by_entities.rank_entries, "village", "baker", "Alpha", limit=9)

    assert run(told()) == [by_entities.LinkedEntry(0, "baker", 1.0)]
