"""A process that publishes: `python -m chaos.producer …`, with the cluster in RECALLOG_LEDGER and RECALLOG_VIEWS.

It publishes the events of each of its spaces in order, in calls of any size, with concurrent calls for different
spaces. A call whose outcome is unknown is repeated with the same ids until it is acknowledged. The acknowledgement is
recorded before the next call; a restarted process continues after the last recorded one.
"""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from chaos import events, history, own_writes
from chaos.campaign import Campaign
from recallog import Memory
from recallog_schemas import Event, Position
from recallog_schemas.errors import StorageUnavailable, UnknownOutcome

_SPACES_OF_A_CALL = 8
_PAUSE_SECONDS = 0.05
_NONE_YET = 0.0


class Pace:
    """The fraction of all events that may be published so far, 0 to 1. The conductor writes it by replacing a file."""

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


class Publisher:
    """Publishes the events of some spaces, in one call after the other."""

    def __init__(
        self,
        campaign: Campaign,
        memory: Memory,
        written: history.Writer,
        pace: Pace,
        acknowledged: dict[str, int],
        rng: random.Random,
    ) -> None:
        self._seed = campaign.seed
        self._memory = memory
        self._written = written
        self._pace = pace
        self._rng = rng
        self._acknowledged = acknowledged
        """By space, how many of its events are acknowledged."""
        self._all = {space: campaign.events_of(space) for space in acknowledged}
        self._contradictions = 0

    async def publish_all(self) -> None:
        """Publish all events."""
        total = sum(self._all.values())
        while (done := sum(self._acknowledged.values())) < total:
            allowed = int(self._pace.read() * total) - done
            if allowed <= 0:
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            call = self._next_call(min(allowed, self._size()))
            *_, at = await self._publish(history.FIRST, call)
            for space, number in call:
                self._acknowledged[space] = number + 1
            event = events.event_of(self._seed, *call[-1])
            if self._rng.random() < 0.1 and own_writes.is_visible(event):
                await own_writes.read_own(self._memory, event, at, self._written)
            if self._rng.random() < 0.06:
                await self._publish(history.AGAIN, self._earlier(call))
            if self._rng.random() < 0.03:
                await self._contradict(*self._rng.choice(call))

    def _size(self) -> int:
        return self._rng.randint(1, self._rng.choice((1, 10, 10, 50, 50, 200, 1000)))

    def _next_call(self, size: int) -> list[tuple[str, int]]:
        """The next `size` events of a few spaces: the spaces are mixed, and the events of each are in order."""
        unfinished = [space for space, count in self._all.items() if self._acknowledged[space] < count]
        chosen = self._rng.sample(unfinished, min(len(unfinished), self._rng.randint(1, _SPACES_OF_A_CALL)))
        following = {space: self._acknowledged[space] for space in chosen}
        call: list[tuple[str, int]] = []
        while chosen and len(call) < size:
            space = self._rng.choice(chosen)
            call.append((space, following[space]))
            following[space] += 1
            if following[space] == self._all[space]:
                chosen.remove(space)
        return call

    def _earlier(self, call: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]]:
        """The call that was just made, or random earlier events of its spaces."""
        if self._rng.random() < 0.5:
            return call
        return [(space, self._rng.randrange(number + 1)) for space, number in call[:100]]

    async def _contradict(self, space: str, number: int) -> None:
        event = events.event_of(self._seed, space, number)
        if events.may_be_contradicted(event):
            self._contradictions += 1
            other = events.contradiction(event, self._contradictions)
            await self._send(history.CONTRADICTION, [other], [number])

    async def _publish(self, why: str, call: Sequence[tuple[str, int]]) -> list[Position]:
        batch = [events.event_of(self._seed, space, number) for space, number in call]
        return await self._send(why, batch, [number for _, number in call])

    async def _send(self, why: str, batch: Sequence[Event], numbers: Sequence[int]) -> list[Position]:
        positions = await self._until_acknowledged(batch)
        self._written.acknowledged(why, batch, numbers, positions)
        return positions

    async def _until_acknowledged(self, batch: Sequence[Event]) -> list[Position]:
        while True:
            try:
                return list(await self._memory.publish_many(batch))
            except (UnknownOutcome, StorageUnavailable) as error:
                self._written.note(type(error).__name__, sent=len(batch), message=str(error))
            await asyncio.sleep(self._rng.uniform(0, 0.5))


async def produce(campaign: Campaign, name: str, folder: Path) -> None:
    """Publish the events of the producer `name`, from the end of its history."""
    path = history.path_of(folder, name)
    spaces = campaign.spaces_of(name)
    counts = dict.fromkeys(spaces, 0)
    for acknowledged in history.acknowledged(path):
        counts[acknowledged.space] = max(counts[acknowledged.space], acknowledged.number + 1)
    life = sum(line["what"] == "started" for line in history.Tail(path).lines())
    written, pace = history.Writer(path), Pace(pace_of(folder))
    written.note("started")
    async with Memory.open() as memory:
        async with asyncio.TaskGroup() as publishers:
            for number in range(campaign.concurrency):
                mine = {space: counts[space] for space in spaces[number :: campaign.concurrency]}
                rng = random.Random(f"{campaign.seed} {name} {number} {life}")
                publisher = Publisher(campaign, memory, written, pace, mine, rng)
                publishers.create_task(publisher.publish_all())
    written.note("finished")


def pace_of(folder: Path) -> Path:
    return folder / "pace"


def main(
    name: str,
    folder: Path,
    seed: Annotated[int, typer.Option()],
    events: Annotated[int, typer.Option()],
    spaces: Annotated[int, typer.Option()],
    producers: Annotated[int, typer.Option()],
    concurrency: Annotated[int, typer.Option()],
) -> None:
    """Publish the events of one producer of a campaign."""
    campaign = Campaign(seed, events=events, spaces=spaces, producers=producers, concurrency=concurrency)
    asyncio.run(produce(campaign, name, folder))


if __name__ == "__main__":
    typer.run(main)
