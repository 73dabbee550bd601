"""A chapter of the demo: nine simulated days, in which notes of the accuser age, are used, and are archived."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from recallog import Event, Memory
from recallog_demo import village
from recallog_schemas import codec

NOTED = {
    "silence": ("The judge wants nothing said of it before noon.", "fast", 0.9),
    "finger": ("The smith reads with a finger under the words.", "slow", 0.8),
    "comet": ("In the year of the comet the flood reached the altar step.", "glacial", 0.6),
    "gull": ("A gull sat on the mill all through the hearing.", "glacial", 0.1),
}
"""By id: the text, its tier and its importance."""
QUESTION = "How does the smith read?"
ASKED_UNTIL = 3
"""The last day on which the accuser looks for an answer to the question."""
DAYS = 9
PASSED = {
    "silence": "medium slow glacial glacial glacial glacial glacial - -",
    "finger": "slow slow medium slow glacial glacial glacial glacial glacial",
    "comet": "glacial glacial glacial glacial glacial glacial glacial - -",
    "gull": "glacial glacial glacial glacial glacial glacial glacial - -",
}
"""By id: its tier at the end of each day; "-" once it is archived."""
WHY = (
    "day 1: silence fast → medium, unread for more than 60 s",
    "day 2: silence medium → slow, unread for more than 3,600 s",
    "day 3: finger slow → medium, read 3 times since its last move",
    "day 3: silence slow → glacial, unread for more than 86,400 s",
    "day 4: finger medium → slow, unread for more than 3,600 s",
    "day 5: finger slow → glacial, unread for more than 86,400 s",
    "day 8: silence archived, unread for more than 604,800 s",
    "day 8: comet archived, unread for more than 604,800 s",
    "day 8: gull archived, unread for more than 604,800 s",
)
"""The changes of the plans in the ledger, with their reasons."""
SUMMARY = f"3 memories: {NOTED['silence'][0]} · {NOTED['comet'][0]} · {NOTED['gull'][0]}"


@dataclass(frozen=True, slots=True)
class Aged:
    """The course of the notes."""

    days: list[dict[str, str]]
    """For each day: the tier of each note at its end; "-" once it is archived."""
    why: list[str]
    """The changes of the plans in the ledger, with their reasons, in order."""
    summaries: list[str]
    same_after_rebuild: bool
    """Whether the rebuilt views have the same tiers, and nothing is due, so that the ledger has no additional
    events."""

    @property
    def as_expected(self) -> bool:
        """Whether each note was in the tiers that follow from its use and its age."""
        passed = {id_: " ".join(day[id_] for day in self.days) for id_ in NOTED}
        return passed == PASSED and tuple(self.why) == WHY and self.summaries == [SUMMARY] and self.same_after_rebuild


async def let_days_pass(home: Path) -> Aged:
    """Retain notes of the accuser on the evening of the last day, and let nine days pass, in the empty folder."""
    evening = village.recording()[-1].at
    counting = village.settings(home).model_copy(update={"count_accesses": True})  # entries that are read are promoted
    async with Memory.open(counting) as memory:
        for id_, (text, tier, importance) in NOTED.items():
            noted = _event("memory.retained", evening, text=text, tier=tier, importance=importance)
            await memory.publish(noted.model_copy(update={"id": id_}))
        days = []
        for day in range(1, DAYS + 1):
            at = evening + timedelta(days=day)
            if day <= ASKED_UNTIL:
                await memory.tiers.retrieve(village.SPACE, village.ACCUSER, QUESTION, now=at)
            await memory.publish(_event("clock.ticked", at))
            while await memory.react(village.SPACE):
                pass
            days.append(await _tiers(memory))
        why = [line async for event in _plans(memory) for line in _explained(event, (event.at - evening).days)]
        ends = await memory.admin.ledger_ends()
        await memory.admin.rebuild("views")
        await memory.react(village.SPACE)
        entries = (await memory.long_term.list(village.SPACE, village.ACCUSER)).entries
        return Aged(
            days=days,
            why=why,
            summaries=[entry.text for entry in entries if entry.type == "summary"],
            same_after_rebuild=await _tiers(memory) == days[-1] and await memory.admin.ledger_ends() == ends,
        )


async def _tiers(memory: Memory) -> dict[str, str]:
    entries = (await memory.long_term.list(village.SPACE, village.ACCUSER)).entries
    tiers = {entry.id: entry.tier for entry in entries}
    return {id_: tiers.get(id_) or "-" for id_ in NOTED}


async def _plans(memory: Memory) -> AsyncIterator[Event]:
    """The plans in the ledger."""
    async for batch in memory.admin.records(space=village.SPACE):
        for _, data in batch.records:
            event = codec.decode(data)
            if event.kind == "memory.consolidated":
                yield event


def _explained(plan: Event, day: int) -> Iterator[str]:
    """The changes of a plan with their reasons, by the settings with which it was made."""
    constants = plan.payload["constants"]
    for move in plan.payload.get("moves", ()):
        why = _reason(move["reason"], move["from"], constants)
        yield f"day {day}: {move['id']} {move['from']} → {move['to']}, {why}"
    for ended in plan.payload.get("archived", ()):
        yield f"day {day}: {ended['id']} archived, {_reason(ended['reason'], 'glacial', constants)}"


def _reason(reason: str, tier: str, constants: Mapping[str, Any]) -> str:
    if reason == "access":
        return f"read {constants['promotion_access']} times since its last move"
    if reason in ("ttl", "expired"):
        return f"unread for more than {constants['ttl'][tier]:,.0f} s"
    return reason


def _event(kind: str, at: datetime, **payload: object) -> Event:
    return Event(space=village.SPACE, agent=village.ACCUSER, kind=kind, at=at, payload=payload)
