"""Random histories of entries: no operation shows an agent a text that is not its to read, nor one that was replaced or
erased, by words and by the index, now and in every past.

What may be shown comes from the model below, which shares no code with the views.
"""

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from contract.test_index_entries import changed, retained
from recallog import Event, Memory, Position
from recallog.retrieval.channels import FOUR_CHANNEL
from recallog.retrieval.channels import PRESETS as PRESETS_OF
from recallog.settings import Settings
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas.errors import OutOfRange
from recallog_schemas.views import View
from support.events import event, one_loop, run
from support.indexing import indexed, indexing_of, memory_with

pytestmark = pytest.mark.models("prompt")

AGENTS = ("baker", "miller", "smith")
COMMON = "bread"
"""A word of all texts, so that a question for it finds everything that may be found."""

LINKED = f"{COMMON} of Acme Corp"
"""A question for it that names an entity, which further ones are linked to."""
PRESETS: list[dict[str, Any]] = [
    {"preset": "four_channel"},
    {"preset": "hybrid"},
    *({"preset": "four_channel", "channels": [channel]} for channel in PRESETS_OF[FOUR_CHANNEL]),
]

_numbers = count(1)


@dataclass
class Entry:
    """What the model knows of an entry."""

    owner: str
    mark: str
    audience: frozenset[str]
    shared: bool
    status: str = "live"

    def readers(self) -> frozenset[str]:
        if self.status != "live":
            return frozenset({self.owner}) if self.status == "ended" else frozenset()
        return frozenset(AGENTS) if self.shared else self.audience | {self.owner}


@dataclass
class Model:
    """The entries after each event, and the ids that are erased at the end."""

    moments: list[dict[str, Entry]] = field(default_factory=list)
    erased: set[str] = field(default_factory=set)

    def marks(self, agent: str, moment: int, statuses: tuple[str, ...]) -> set[str]:
        """The marks of the entries that `agent` may read after the event `moment`, without those erased since."""
        entries = self.moments[moment].items()
        return {
            entry.mark
            for id_, entry in entries
            if entry.status in statuses and agent in entry.readers() and id_ not in self.erased
        }


def history(chance: random.Random, space: str, size: int) -> tuple[list[Event], Model]:
    """Events about entries, and what follows from them."""
    model, shares, entries = Model(), False, dict[str, Entry]()
    events: list[Event] = []

    def said() -> tuple[str, str]:
        mark = f"m{next(_numbers)}m"
        about = chance.choice(("flour", "mill", "Acme Corp", "Acme Corp and Beta Mills", "Beta Mills and Gamma"))
        return mark, f"{COMMON} {about} {mark}."

    for _ in range(size):
        actor = chance.choice(AGENTS)
        known = chance.choice([*entries, "nothing"])
        entry = entries.get(known)
        owns = entry is not None and entry.owner == actor and entry.status == "live"
        kind = chance.choice(("retain",) * 6 + ("update", "transfer", "retract", "archive", "erase", "share", "speak"))
        if kind == "retain":
            mark, text = said()
            audience = chance.sample(AGENTS, chance.randrange(3)) or None
            id_ = f"{space}-{len(entries)}"
            made = retained(text, actor, id_, audience=audience, session=chance.choice((None, "dusk")))
            entries[id_] = Entry(actor, mark, frozenset(audience or ()) - {actor}, shares and audience is None)
        elif kind == "update":
            mark, text = said()
            made = changed("updated", actor, entry=known, text=text)
            if owns and entry is not None:
                entries[known] = Entry(entry.owner, mark, entry.audience, entry.shared)
        elif kind == "transfer":
            to = chance.choice(AGENTS)
            made = changed("transferred", actor, entries=[known], to=to)
            if owns and entry is not None and to != actor:
                entries[known] = Entry(to, entry.mark, frozenset(), entry.shared)
        elif kind in ("retract", "archive"):
            made = changed(f"{kind}ed".replace("eed", "ed"), actor, entry=known)
            if owns and entry is not None:
                entries[known] = Entry(entry.owner, entry.mark, entry.audience, entry.shared, "ended")
        elif kind == "erase":
            made = changed("erased", actor, entries=[known])
            if entry is not None and entry.owner == actor and entry.status != "erased":
                entries[known] = Entry(entry.owner, "", frozenset(), False, "erased")
                model.erased.add(known)
        elif kind == "share":
            shares = not shares
            kinds = {"shared_kinds": ["memory.retained"] if shares else []}
            made = event(agent="narrator", kind="space.configured", payload=kinds)
        else:
            made = event(agent=actor, payload={"text": f"{COMMON} is good."})
        events.append(made.model_copy(update={"space": space}))
        model.moments.append(dict(entries))
    return events, model


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Memory]]:
    """Two memories of one ledger, without an index and with one."""
    home = tmp_path_factory.mktemp("memory")
    with one_loop():
        engine = EdgeEngine(home / "engine")
        found = {
            "off": Memory.open(Settings(home=home, index="off")),
            "index": memory_with(home, lambda ledger: indexing_of(ledger, engine)),
        }
        yield found
        for memory in found.values():
            run(memory.close())


def shown(view: View) -> set[str]:
    """All marks anywhere in an answer."""
    return set(re.findall(r"m\d+m", view.model_dump_json()))


def texts(view: Any) -> set[str]:
    """The marks in the texts of hits."""
    return {mark for hit in view.hits for mark in re.findall(r"m\d+m", hit.text)}


async def unnamed(memory: Memory, space: str, agent: str, as_of: Position | None) -> list[Any]:
    """The answers of operations that show memories without being given their ids."""
    return [
        await memory.search(space, agent, COMMON, limit=100, as_of=as_of),
        await memory.context(space, agent, query=COMMON, as_of=as_of),
        await memory.salient(space, agent, COMMON, as_of=as_of),
        await memory.timeline(space, agent, as_of=as_of),
        await memory.episodic(space, agent, as_of=as_of),
    ]


async def by_id(memory: Memory, space: str, agent: str, ids: list[str], as_of: Position | None) -> list[Any]:
    """The answers of all operations that show an entry that one knows the id of."""
    answers: list[Any] = [await memory.entries(space, agent, ids, as_of=as_of)] if ids else []
    for id_ in ids[:3]:
        answers.append(await memory.explain(space, agent, id_, query=COMMON, as_of=as_of))
        with suppress(OutOfRange):
            answers.append(await memory.around(space, agent, id_, as_of=as_of))
    return answers


@pytest.mark.parametrize("seed", range(3))
def test_no_operation_shows_an_agent_what_it_may_not_read(memories: dict[str, Memory], seed: int) -> None:
    chance = random.Random(seed)
    space = f"village-{next(_numbers)}"
    events, model = history(chance, space, 40)
    ids = list(model.moments[-1])

    async def work() -> None:
        positions = await memories["off"].publish_many(events)
        if chance.random() < 0.7:
            await indexed(memories["index"])
        moments = [len(events) - 1, *chance.sample(range(len(events)), 3)]
        for memory in memories.values():
            for agent in AGENTS:
                for number, moment in enumerate(moments):
                    as_of = positions[moment] if number else None
                    live = model.marks(agent, moment, ("live",))
                    found = await memory.recall(space, agent, COMMON, top_k=100, as_of=as_of)
                    assert texts(found) == live
                    assert shown(found) <= live
                    for how in PRESETS:
                        ranked = await memory.recall(space, agent, LINKED, top_k=100, as_of=as_of, **how)
                        assert shown(ranked) <= live
                        assert how.get("channels") or how["preset"] == "hybrid" or texts(ranked) == live
                    for answer in await unnamed(memory, space, agent, as_of):
                        assert shown(answer) <= live
                    kept = model.marks(agent, moment, ("live", "ended"))
                    for answer in await by_id(memory, space, agent, ids, as_of):
                        assert shown(answer) <= kept

    run(work())
