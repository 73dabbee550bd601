"""The graph of a lineage, compared with a naive walk over everything that an agent may see."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from recallog import Event, Memory
from recallog_schemas import limits, triggers
from recallog_schemas.models.facts.triggers import EXTRACTION
from recallog_schemas.models.tiers.triggers import SUMMARY
from recallog_schemas.views import Lineage
from support.campaigns import trials
from support.events import event, run
from support.random_entries import random_history

pytestmark = pytest.mark.models("long_term", "beliefs", "tiers", "facts", "conversations")

AGENTS = ("baker", "miller", "smith")
EVENTS, ASKED = 60, 6
Named = Mapping[str, Mapping[str, str]]
"""By the id of a product, its sources with their relations."""


def random_links(seed: int) -> list[Event]:
    """Entries and episodes that name each other: earlier ones, later ones, themselves, and ids of nothing."""
    rng = random.Random(seed)
    drawn: dict[str, Event] = {}
    for number, fields in enumerate(random_history(rng, EVENTS)):
        ids = [f"{kind}-{rng.randrange(max(1, number - 9), number + 4)}" for kind in ("e", "o", "o")]
        kind = rng.choice(("agent.spoke", "agent.thought", "world.observed", "agent.reflected"))
        belief: dict[str, Any] = {"belief": f"Belief {number}.", "based_on": rng.sample(ids, 2)}
        payload = belief if kind == "agent.reflected" else {"text": f"Word {number}."}
        drawn[f"o-{number}"] = event(
            kind,
            id=f"o-{number}",
            agent=rng.choice(AGENTS),
            payload=payload,
            causation_id=rng.choice((None, *ids)),
            audience=rng.choice((None, None, None, ("miller",))),
        )
        try:
            of_entries = Event.model_validate(fields | {"causation_id": None})
        except ValidationError:
            continue
        drawn.setdefault(of_entries.id, of_entries)
    return list(drawn.values())


async def named(memory: Memory, agent: str, ids: Sequence[str]) -> Named:
    """What each event and entry that an agent may see names, by the operation that shows them whole."""
    found: dict[str, dict[str, str]] = {}
    for first in range(0, len(ids), limits.ENTRIES_IDS_MAX):
        for each in (await memory.entries("village", agent, ids[first : first + limits.ENTRIES_IDS_MAX])).entries:
            shown = each.event
            sources = {} if shown.causation_id is None else {shown.causation_id: "cause"}
            field = {"agent.reflected": "based_on", "memory.retained": "sources"}.get(shown.kind)
            sources |= dict.fromkeys(shown.payload.get(field) or () if field else (), "source")
            found[shown.id] = sources
    return found


def reached(start: str, steps: Mapping[str, set[str]], depth: int) -> dict[str, int]:
    """How far each id is from the first one."""
    found, edge = {start: 0}, {start}
    for distance in range(1, depth + 1):
        edge = {each for one in edge for each in steps.get(one, ())} - found.keys()
        found |= dict.fromkeys(edge, distance)
    return found


def check(found: Lineage, names: Named, depth: int) -> None:
    sources = {id_: {each for each in of if each in names} for id_, of in names.items()}
    products: dict[str, set[str]] = {id_: {one for one, of in names.items() if id_ in of} for id_ in names}
    asked = found.event_id
    if asked not in names:
        assert (found.nodes, found.edges, found.ok) == ((), (), False)
        return
    back, forth = reached(asked, sources, depth), reached(asked, products, depth)
    expected = {id_: forth[id_] if id_ in forth else -back[id_] for id_ in back.keys() | forth.keys()}
    expected |= {id_: -back[id_] for id_ in back.keys() & forth.keys() if back[id_] <= forth[id_]}
    assert {each.memory.id: each.steps for each in found.nodes} == expected
    assert len(found.nodes) == len(expected)
    assert [abs(each.steps) for each in found.nodes] == sorted(abs(each.steps) for each in found.nodes)
    edges = {(one, id_, names[id_][one]) for id_ in expected for one in names[id_] if one in expected}
    assert {(each.source, each.product, each.relation) for each in found.edges} == edges
    assert len(found.edges) == len(edges)
    for is_back, distances in ((True, back), (False, forth)):
        assert {each.node.memory.id for each in found.branches(back=is_back)} >= distances.keys()


@pytest.mark.parametrize("seed", range(trials(200, of=1_000)))
def test_the_graph_is_that_of_a_naive_walk_over_what_the_agent_may_see(seed: int) -> None:
    history, rng = random_links(seed), random.Random(seed)
    ids = [each.id for each in history]

    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(history)
            agent = rng.choice(AGENTS)
            names = await named(memory, agent, ids)
            asked = [(rng.choice(ids), rng.choice((1, 2, None))) for _ in range(ASKED)]
            answers = []
            for id_, depth in asked:
                found = await memory.lineage("village", agent, id_, depth=depth)
                check(found, names, limits.LINEAGE_NODES if depth is None else depth)
                answers.append(found)
            await memory.admin.rebuild()
            for (id_, depth), before in zip(asked, answers, strict=True):
                after = await memory.lineage("village", agent, id_, depth=depth)
                assert after.model_dump(exclude={"generation"}) == before.model_dump(exclude={"generation"})

    run(work())
