"""The entity graph as plain values, compared with the oracle."""

from recallog_projections.models.facts import tables
from recallog_projections.models.facts.tables import Counts, Entity
from recallog_projections.stores.store import Generation, Store
from support.entries_checking import View
from support.entries_oracle import ExpectedEntries
from support.graph_oracle import graphs


def check_graph(store: Store, generation: Generation, expected: ExpectedEntries) -> None:
    """Assert that the tables of the graph hold what the oracle holds, and nothing else."""
    view = View(store, generation)
    entities, words, counts = {}, set(), {}
    for space, owner, graph in graphs(expected):
        links = sum(key < other for key, entity in graph.items() for other in entity.links)
        counts[space, owner, ""] = Counts(len(graph), links)
        for key, entity in graph.items():
            entities[space, owner, key] = (len(entity.facts), entity.facts, entity.linked)
            words |= {(space, owner, f"{word} {key}") for word in key.split()}
    assert {key: values_of(row) for key, row in view.rows(tables.ENTITIES).items()} == entities
    assert set(view.rows(tables.WORDS)) == words
    assert view.rows(tables.COUNTS) == counts


def values_of(row: Entity) -> tuple[int, list[tuple[int, str]], list[tuple[str, int, int]]]:
    """The number of its entries, those that it holds, and its links."""
    facts = [(fact.offset, fact.owner) for fact in row.facts]
    return row.total, facts, [(link.key, link.count, link.newest) for link in row.links]
