"""Random histories of entries: the graph equals that of the live entries, and shows nobody what it may not see."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog.models.facts import by_entities
from recallog.models.long_term import erasures
from recallog.reading.time_travel import fold_onto
from recallog_projections.models.facts import tables
from recallog_projections.models.long_term.tables import ROWS
from recallog_projections.stores.store import Generation
from recallog_projections.views import builtin
from recallog_schemas.models.facts import limits
from simulation.test_entries import BATCHES, SEEDS, SIZES, history
from simulation.test_entries import values_of as bytes_of
from support.entries_checking import View
from support.entries_oracle import ExpectedEntries, ExpectedEntry, expect
from support.finishing import finish
from support.folding import all_rows, folded, ledger_at, reading_of
from support.graph_checking import check_graph, values_of
from support.graph_oracle import graphs, reached, readable
from support.random_entries import AGENTS

pytestmark = pytest.mark.models("facts", "tiers")

ASKED = {
    "Tell me about Alpha": ["alpha"],
    "what does Acme own?": ["acme"],
    'and "Acme Corp"?': ["acme corp"],
    "《红楼梦》在哪里": ["红楼梦"],
    "Gamma or Rye": ["gamma", "rye"],
    "who rents from gamma mills, and what of delta?": ["gamma mills", "delta"],
    "nothing": [],
}


@settings(max_examples=200)
@given(seed=SEEDS, size=SIZES)
def test_the_graph_equals_that_of_the_live_entries_wherever_batches_end(seed: int, size: int) -> None:
    events = history(seed, size)
    expected = expect(events)
    for records in BATCHES:
        projector, generation = folded(ledger_at(bytes_of(events), unique_ids=False, batch_records=records))
        check_graph(projector.store, generation, expected)


@settings(max_examples=100)
@given(seed=SEEDS, size=SIZES)
def test_each_agent_reaches_what_it_may_read_and_nothing_else(seed: int, size: int) -> None:
    events = history(seed, size)
    expected = expect(events)
    reading = reading_of(*folded(ledger_at(bytes_of(events), unique_ids=False)))
    for space in ("village", "city"):
        for agent in (*AGENTS, "ghost", "stranger"):
            owners = {entry.offset: entry.owner for entry in readable(expected, space, agent)}
            for query, names in ASKED.items():
                found = finish(by_entities.rank_entries(reading, space, agent, query, limit=1_000))
                assert {each.offset: each.weight for each in found} == reached(expected, space, agent, names)
                assert {each.offset: each.owner for each in found}.items() <= owners.items()
                assert [each.weight for each in found] == sorted((each.weight for each in found), reverse=True)


@settings(max_examples=100)
@given(seed=SEEDS, size=SIZES, facts=st.integers(1, 4), links=st.integers(1, 2))
def test_where_a_limit_leaves_something_out_the_rest_is_right(seed: int, size: int, facts: int, links: int) -> None:
    events = history(seed, size)
    with patch.multiple(limits, GRAPH_FACTS_KEPT=facts, GRAPH_LINKS_KEPT=links):
        folds = [folded(ledger_at(bytes_of(events), unique_ids=False, batch_records=records)) for records in BATCHES]
    one, thousand = (all_rows(projector, generation) for projector, generation in folds)
    assert one == thousand
    projector, generation = folds[0]
    rows = View(projector.store, generation).rows(tables.ENTITIES)
    expected = {
        (space, owner, key): entity for space, owner, graph in graphs(expect(events)) for key, entity in graph.items()
    }
    assert rows.keys() == expected.keys()
    for key, row in rows.items():
        total, held, linked = values_of(row)
        assert total == len(expected[key].facts)
        assert len(held) <= facts
        assert set(held) <= set(expected[key].facts)
        assert len(linked) <= links
        for other, count, newest in linked:
            assert 0 < count <= len(expected[key].links[other])
            assert newest in (*expected[key].links[other], -1)


@settings(max_examples=50)
@given(seed=SEEDS, size=SIZES, share=st.floats(0, 1))
def test_what_is_erased_at_present_is_in_no_graph_of_the_past(seed: int, size: int, share: float) -> None:
    events = history(seed, size)
    present, past = (
        reading_of(*folded(ledger_at(bytes_of(events), unique_ids=False), until=until))
        for until in (size, int(share * size))
    )
    for space in ("village", "city"):
        erased = finish(erasures.events(past, present, space))
        finish(fold_onto(past, erased, builtin.projections()))
    assert isinstance(past.source, Generation)
    entries = ExpectedEntries()
    for row in View(past.store, past.source).rows(ROWS).values():
        content = {"type": row.type, "entity": row.entity, "text": row.text, "audience": row.audience}
        content |= {"shared": row.shared, "captured": row.captured}
        known = ExpectedEntry(row.space, row.owner, row.id, row.offset, "live", content)
        entries.entries[row.space, row.id] = known
    check_graph(past.store, past.source, entries)
