"""A chapter of the demo: facts are extracted from a turn, found over two hops, and one of them is updated."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recallog import Event, IndexUnavailable, Memory, Position, ViewsBehind
from recallog.views import RecallView
from recallog_demo import village

READER = "judge"
SESSION = "register"
SAID = (
    "I have the parish register before me.",
    "Edda Marsh rents a room from Marta Quill.",
    "Marta Quill works for Sallow Mill.",
    "Sallow Mill belongs to Jonas Weir.",
    "Jonas Weir lives in Lower Sallow.",
)
"""What the judge reads out in one turn. The first sentence states nothing about the village."""
FACTS = SAID[1:]
QUESTION = "Who gets the rent of Edda Marsh in the end?"
HOPS = FACTS[:3]
"""The facts that are linked to the question's entity: the one that names it, and those one and two links away."""
OUTDATED, UPDATED = FACTS[2], "Sallow Mill belongs to the widow of Jonas Weir."


@dataclass(frozen=True, slots=True)
class Drawn:
    """The facts that a reactor extracted from one turn, and the answers to a question about them."""

    facts: Sequence[str]
    """Their texts, in the order in which they were said."""
    sources: Sequence[str]
    """The source of each of the facts."""
    found: RecallView
    linked: RecallView
    """The hits of the channel of entities alone."""
    updated: RecallView
    """The answer after one fact was updated."""
    before: RecallView
    """The answer then, as of the time before the update."""
    same_after_rebuild: bool
    """Whether a rebuild of the views gives the same answer and adds no event."""

    @property
    def as_expected(self) -> bool:
        """Whether each fact was extracted once with its source, and the question follows exactly two links."""
        now = tuple(UPDATED if text == OUTDATED else text for text in HOPS)
        return (
            tuple(self.facts) == tuple(self.sources) == FACTS
            and self.found.hits[0].text == HOPS[0]
            and _texts(self.linked) == HOPS
            and _texts(self.updated) == now
            and _texts(self.before) == HOPS
            and self.same_after_rebuild
        )


async def draw_and_follow(home: Path) -> Drawn:
    """Read the register to the judge of the village in the empty folder `home`, and ask about it."""
    async with Memory.open(village.settings(home, index="embedded")) as memory:
        await memory.publish(_event("agent.configured", {"extract_facts": True}))
        said = [_event("agent.spoke", {"text": text}) for text in SAID]
        await memory.publish_many([*said, _event("turn.ended", {})])
        await memory.react(village.SPACE)
        drawn = (await memory.long_term.list(village.SPACE, READER)).entries[::-1]
        texts = {event.id: event.text for event in said}
        with suppress(IndexUnavailable, ViewsBehind):  # the answer reports it
            await memory.catch_up_index()
        found = await _asked(memory)
        linked = await _asked(memory, entity_alone=True)
        (end,) = await memory.admin.ledger_ends()
        (outdated,) = [entry.id for entry in drawn if entry.text == OUTDATED]
        await memory.long_term.update(village.SPACE, READER, outdated, text=UPDATED)
        updated = await _asked(memory, entity_alone=True)
        past = await _asked(memory, entity_alone=True, as_of=Position(0, end - 1))
        ends = await memory.admin.ledger_ends()
        await memory.admin.rebuild("views")
        again = await _asked(memory, entity_alone=True)
        return Drawn(
            facts=[entry.text for entry in drawn],
            sources=[" ".join(texts[source] for source in entry.sources) for entry in drawn],
            found=found,
            linked=linked,
            updated=updated,
            before=past,
            same_after_rebuild=_texts(again) == _texts(updated) and await memory.admin.ledger_ends() == ends,
        )


async def _asked(memory: Memory, *, entity_alone: bool = False, as_of: Position | None = None) -> RecallView:
    """The answer by the preset of four channels, or by its channel of entities alone."""
    return await memory.recall(
        village.SPACE,
        READER,
        QUESTION,
        preset="four_channel",
        channels=["entity"] if entity_alone else None,
        as_of=as_of,
    )


def _event(kind: str, payload: dict[str, object]) -> Event:
    return Event(space=village.SPACE, agent=READER, kind=kind, session=SESSION, payload=payload)


def _texts(view: RecallView) -> tuple[str, ...]:
    return tuple(hit.text for hit in view.hits)
