"""The views of the kernel and of all memory models compared with the oracle."""

import json
from collections import Counter

from recallog.models.beliefs import due as due_reflections
from recallog.reading.read_session import ReadSession
from recallog_projections.models.beliefs import reflection
from recallog_projections.models.items import projection as items
from recallog_projections.stores.store import Generation, Store
from recallog_projections.views import due
from support.entries_checking import check_entries, check_tiers, check_uses
from support.finishing import finish
from support.folding import check_kernel_views, rows_of
from support.graph_checking import check_graph
from support.items_oracle import Bounds, shelves
from support.oracle import Expected


def check_views(store: Store, generation: Generation, expected: Expected) -> None:
    """Assert that the views of `generation` equal the oracle's, table by table and agent by agent."""
    check_kernel_views(store, generation, expected)
    _check_reflections(store, generation, expected)
    check_entries(store, generation, expected.entries)
    check_graph(store, generation, expected.entries)
    check_uses(store, generation, expected.entries)
    check_tiers(store, generation, expected.entries)
    _check_items(store, generation, expected)


def _check_items(store: Store, generation: Generation, expected: Expected) -> None:
    values = [json.dumps(event.fields).encode() for event in expected.counted if event.happened]
    found = {address: items.ROWS.decode(data) for address, data in rows_of(store, generation, items.ROWS.name).items()}
    assert {address: (items.value_of(row), row.version, row.sha256) for address, row in found.items()} == {
        (space, agent, items.path_of(*address)): (item.value, item.version, item.sha256)
        for (space, agent), shelf in shelves(values, Bounds()).items()
        for address, item in shelf.items.items()
    }


def _check_reflections(store: Store, generation: Generation, expected: Expected) -> None:
    """Exactly one trigger is pending for each agent whose reflection is due, and none for any other agent."""
    due = []
    for space in expected.spaces:
        for agent in expected.agents(space):
            state = expected.reflection(space, agent)
            if state.due:
                due.append((space, agent, state.trigger, len(state.counted)))
    assert finish(_pending(ReadSession(store, generation.partition, generation))) == due
    _check_due_rows(store, generation, expected)


def _check_due_rows(store: Store, generation: Generation, expected: Expected) -> None:
    """Each agent with a threshold has one row in the table of due work, and no other agent has any.

    The row says with how many shared events the agent falls due; of an agent that is due, with how many it fell due.
    """
    reflecting = [
        (space, agent)
        for space in expected.spaces
        for agent in expected.agents(space)
        if expected.setting(space, agent, "reflection_threshold") is not None
    ]
    rows = rows_of(store, generation, due.COUNT.name)
    assert sorted((space, agent) for space, _, agent in rows) == sorted(reflecting)
    for space, due_at, agent in rows:
        state = expected.reflection(space, agent)
        shared = sum(said.space == space and said.memorable and said.shared for said in expected.counted)
        if state.due:
            assert int(due_at) <= shared
        else:
            assert state.threshold is not None
            assert int(due_at) == shared + state.threshold - len(state.counted)
    spaces = rows_of(store, generation, reflection.SPACES.name)
    counted = {place[0]: reflection.SPACES.decode(data).agents for place, data in spaces.items()}
    assert counted == Counter(space for space, _ in reflecting)


async def _pending(reading: ReadSession) -> list[tuple[str, str, str, int]]:
    return [(found.space, found.agent, found.trigger, found.events) async for found in due_reflections.pending(reading)]
