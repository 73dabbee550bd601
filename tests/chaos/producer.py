"""A process that publishes: `python -m chaos.producer …`, with the cluster in RECALLOG_LEDGER and RECALLOG_VIEWS.

It says the events of its spaces in their order, in calls of any size, several calls at a time (of different spaces).
A call whose outcome is unknown is sent again with the same ids until it is acknowledged; the acknowledgement is written
down before the next call. Killed and started again, it goes on behind what was written down.
"""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from chaos import asking, events, history
from chaos.campaign import Campaign
from recallog import Memory
from recallog_schemas import Event, Position
from recallog_schemas.errors import StorageUnavailable, UnknownOutcome

_SPACES_OF_A_CALL = 8
_PAUSE_SECONDS = 0.05
_NONE_YET = 0.0


class Pace:
    """How much of all events may be said by now, from 0 to 1. The conductor writes it, by replacing the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> float:
        try:
            return float(self._path.read_text())
        except FileNotFoundError:
            return _NONE_YET

    def write(self, share: float) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(f"{share:.6f}")
        new.replace(self._path)


class Voice:
    """Publishes the events of some spaces, one call after the other."""

    def __init__(
        self,
        campaign: Campaign,
        memory: Memory,
        written: history.Writer,
        pace: Pace,
        said: dict[str, int],
        chance: random.Random,
    ) -> None:
        self._seed = campaign.seed
        self._memory = memory
        self._written = written
        self._pace = pace
        self._chance = chance
        self._said = said
        """By space, how many of its events are acknowledged."""
        self._all = {space: campaign.events_of(space) for space in said}
        self._contradictions = 0

    async def speak(self) -> None:
        """Say all there is to say."""
        total = sum(self._all.values())
        while (done := sum(self._said.values())) < total:
            allowed = int(self._pace.read() * total) - done
            if allowed <= 0:
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            call = self._next_call(min(allowed, self._size()))
            *_, at = await self._publish(history.FIRST, call)
            for space, number in call:
                self._said[space] = number + 1
            event = events.event_of(self._seed, *call[-1])
            if self._chance.random() < 0.1 and asking.can_be_seen(event):
                await asking.read_own(self._memory, event, at, self._written)
            if self._chance.random() < 0.06:
                await self._publish(history.AGAIN, self._some_said(call))
            if self._chance.random() < 0.03:
                await self._contradict(*self._chance.choice(call))

    def _size(self) -> int:
        return self._chance.randint(1, self._chance.choice((1, 10, 10, 50, 50, 200, 1000)))

    def _next_call(self, size: int) -> list[tuple[str, int]]:
        """The next `size` events of a few spaces, those of the spaces mixed, each space's in order."""
        unfinished = [space for space, count in self._all.items() if self._said[space] < count]
        chosen = self._chance.sample(unfinished, min(len(unfinished), self._chance.randint(1, _SPACES_OF_A_CALL)))
        following = {space: self._said[space] for space in chosen}
        call: list[tuple[str, int]] = []
        while chosen and len(call) < size:
            space = self._chance.choice(chosen)
            call.append((space, following[space]))
            following[space] += 1
            if following[space] == self._all[space]:
                chosen.remove(space)
        return call

    def _some_said(self, call: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]]:
        """The call just made, or events of its spaces from long ago, in any order."""
        if self._chance.random() < 0.5:
            return call
        return [(space, self._chance.randrange(number + 1)) for space, number in call[:100]]

    async def _contradict(self, space: str, number: int) -> None:
        event = events.event_of(self._seed, space, number)
        if events.may_be_contradicted(event):
            self._contradictions += 1
            other = events.contradiction(event, self._contradictions)
            await self._send(history.CONTRADICTION, [other], [number])

    async def _publish(self, why: str, call: Sequence[tuple[str, int]]) -> list[Position]:
        said = [events.event_of(self._seed, space, number) for space, number in call]
        return await self._send(why, said, [number for _, number in call])

    async def _send(self, why: str, said: Sequence[Event], numbers: Sequence[int]) -> list[Position]:
        positions = await self._until_acknowledged(said)
        self._written.acknowledged(why, said, numbers, positions)
        return positions

    async def _until_acknowledged(self, said: Sequence[Event]) -> list[Position]:
        while True:
            try:
                return await self._memory.publish_many(said)
            except (UnknownOutcome, StorageUnavailable) as error:
                self._written.note(type(error).__name__, sent=len(said), message=str(error))
            await asyncio.sleep(self._chance.uniform(0, 0.5))


async def produce(campaign: Campaign, name: str, folder: Path) -> None:
    """Publish what is `name`'s to say, from where its history ends."""
    path = history_of(folder, name)
    spaces = campaign.spaces_of(name)
    said = dict.fromkeys(spaces, 0)
    for acknowledged in history.acknowledged(path):
        said[acknowledged.space] = max(said[acknowledged.space], acknowledged.number + 1)
    life = sum(line["what"] == "started" for line in history.Tail(path).lines())
    written, pace = history.Writer(path), Pace(pace_of(folder))
    written.note("started")
    async with Memory.open() as memory:
        async with asyncio.TaskGroup() as speaking:
            for number in range(campaign.voices):
                mine = {space: said[space] for space in spaces[number :: campaign.voices]}
                chance = random.Random(f"{campaign.seed} {name} {number} {life}")
                voice = Voice(campaign, memory, written, pace, mine, chance)
                speaking.create_task(voice.speak())
    written.note("finished")


def history_of(folder: Path, producer: str) -> Path:
    return folder / f"{producer}.history.jsonl"


def pace_of(folder: Path) -> Path:
    return folder / "pace"


def main(
    name: str,
    folder: Path,
    seed: Annotated[int, typer.Option()],
    events: Annotated[int, typer.Option()],
    spaces: Annotated[int, typer.Option()],
    producers: Annotated[int, typer.Option()],
    voices: Annotated[int, typer.Option()],
) -> None:
    """Publish the events of one producer of a campaign."""
    campaign = Campaign(seed, events=events, spaces=spaces, producers=producers, voices=voices)
    asyncio.run(produce(campaign, name, folder))


if __name__ == "__main__":
    typer.run(main)
