"""A chapter of the demo: nine simulated days, in which what the accuser has noted ages, is used, and is archived."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from recallog import Event, Memory
from recallog_service.demo import village

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
SUMMARY = f"3 memories: {NOTED['silence'][0]} · {NOTED['comet'][0]} · {NOTED['gull'][0]}"


@dataclass(frozen=True, slots=True)
class Aged:
    """What became of the notes."""

    days: list[dict[str, str]]
    """For each day: the tier of each note at its end; "-" once it is archived."""
    summaries: list[str]
    same_after_rebuild: bool
    """Whether the views that were built again have the same tiers, without an event more in the ledger."""

    @property
    def as_expected(self) -> bool:
        """Whether each note was in the tiers that its use and its age give it."""
        passed = {id_: " ".join(day[id_] for day in self.days) for id_ in NOTED}
        return passed == PASSED and self.summaries == [SUMMARY] and self.same_after_rebuild


async def let_days_pass(home: Path) -> Aged:
    """Note what the accuser would keep on the evening of the last day, and let nine days pass in the empty folder."""
    evening = village.recording()[-1].at
    counting = village.settings(home).model_copy(update={"count_accesses": True})  # what is read is promoted
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
        ends = await memory.admin.ledger_ends()
        await memory.admin.rebuild("views")
        entries = (await memory.long_term.list(village.SPACE, village.ACCUSER)).entries
        return Aged(
            days=days,
            summaries=[entry.text for entry in entries if entry.type == "summary"],
            same_after_rebuild=await _tiers(memory) == days[-1] and await memory.admin.ledger_ends() == ends,
        )


async def _tiers(memory: Memory) -> dict[str, str]:
    entries = (await memory.long_term.list(village.SPACE, village.ACCUSER)).entries
    tiers = {entry.id: entry.tier for entry in entries}
    return {id_: tiers.get(id_) or "-" for id_ in NOTED}


def _event(kind: str, at: datetime, **payload: object) -> Event:
    return Event(space=village.SPACE, agent=village.ACCUSER, kind=kind, at=at, payload=payload)
