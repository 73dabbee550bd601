"""A process that asks questions: `python -m chaos.reader …`, with the cluster in RECALLOG_LEDGER and RECALLOG_VIEWS.

It asks for the newest memories of random agents, one question after the other, also while services are killed or
stopped. Each answer must come within `seconds_max`, and be right or a named, retryable error. Now and then it
closes its memory and opens another one, as a program that starts does.
"""

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from chaos import events, history, own_writes
from chaos.campaign import Campaign
from recallog import Memory
from recallog_schemas.errors import RecallogError
from recallog_schemas.views import EpisodicView
from support.random_events import AGENTS

READER = "reader"
"""The name of its history."""
ANSWER_SECONDS_MAX = 5.0
"""The longest time that a question, or closing a memory, may take. A silent service costs two seconds."""
STATUS_SECONDS_MAX = 20.0
"""That of `status`, which sends hundreds of requests to Redis one after the other, for the sizes of all tables."""

_WINDOW = 40
_PAUSE_SECONDS = 0.1
_ANSWERS_OF_A_MEMORY = 100
"""After so many answers it opens another memory, which needs the broker; one that is open answers without it."""
_SPACES = 8
"""Spaces that it asks about: their events are computed once."""


class WrongAnswer(Exception):
    """The text says what is wrong with an answer."""


class Truth:
    """What answers may contain: the events of the campaign, and no less than earlier answers."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._visible: OrderedDict[tuple[str, str], list[int]] = OrderedDict()
        self._newest: dict[tuple[str, str], int] = {}
        """By space and agent: the highest offset of an earlier answer."""

    def check(self, space: str, agent: str, view: EpisodicView) -> None:
        """Raise `WrongAnswer` if the newest memories of `agent` in `space` cannot be `view`."""
        offsets = [memory.position.offset for memory in view.memories]
        if offsets != sorted(set(offsets)):
            raise WrongAnswer(f"memories out of order: {offsets}")
        own: list[int] = []
        for memory in view.memories:
            number = memory.event.payload.get(events.NUMBER)
            if number is None and memory.event.id.startswith(f"{memory.event.causation_id}/answer"):
                continue  # of an agent
            if not isinstance(number, int) or memory.event != events.event_of(self._campaign.seed, space, number):
                raise WrongAnswer(f"no event of the run: {memory.event!r}")
            if memory.event.agent == agent and own_writes.is_visible(memory.event):
                own.append(number)
        visible = self._own(space, agent)
        first = visible.index(own[0]) if own else 0
        if own != visible[first : first + len(own)]:
            raise WrongAnswer(f"own events {own}, but the agent has published {visible}")
        last = max([-1 if view.checkpoint is None else view.checkpoint.offset, *offsets])
        if last < self._newest.get((space, agent), -1):
            raise WrongAnswer(f"read up to {last}, earlier up to {self._newest[space, agent]}")
        self._newest[space, agent] = last

    def _own(self, space: str, agent: str) -> list[int]:
        """The numbers of the agent's own events that it certainly remembers, in order."""
        key = space, agent
        if key not in self._visible:
            made = (
                (number, events.event_of(self._campaign.seed, space, number))
                for number in range(self._campaign.events_of(space))
            )
            self._visible[key] = [
                number for number, event in made if event.agent == agent and own_writes.is_visible(event)
            ]
        return self._visible[key]


class Reader:
    """Asks one question after the other until it is told to stop."""

    def __init__(self, campaign: Campaign, written: history.Writer, stop: Path, rng: random.Random) -> None:
        self._truth = Truth(campaign)
        self._spaces: Sequence[str] = rng.sample(campaign.space_names, min(_SPACES, len(campaign.space_names)))
        self._written = written
        self._stop = stop
        self._rng = rng

    async def ask_until_stopped(self) -> None:
        while not self._stop.exists():
            memory = Memory.open()
            try:
                answers = 0
                while answers < _ANSWERS_OF_A_MEMORY and not self._stop.exists():
                    answers += await self._ask(memory)
                    await asyncio.sleep(_PAUSE_SECONDS)
            finally:
                await self._timed("close", memory.close)

    async def _ask(self, memory: Memory) -> bool:
        """Ask once; whether it was answered."""
        space, agent = self._rng.choice(self._spaces), self._rng.choice(AGENTS)

        async def episodic() -> None:
            self._truth.check(space, agent, await memory.episodic(space, agent, window=_WINDOW))

        async def salient() -> None:
            await memory.salient(space, agent, "bread")

        async def status() -> None:
            await memory.admin.status()

        name, question = self._rng.choices(
            [("episodic", episodic), ("salient", salient), ("status", status)], [0.8, 0.1, 0.1]
        )[0]
        return await self._timed(name, question)

    async def _timed(self, question: str, work: Callable[[], Awaitable[Any]]) -> bool:
        """Record how long `work` takes, and its outcome; whether it ended without an error.

        An error that is not retryable ends this process.
        """
        began = time.monotonic()
        outcome: dict[str, Any] = {"right": True}
        try:
            await work()
        except WrongAnswer as error:
            outcome = {"right": False, "why": str(error)[:2000]}
        except RecallogError as error:
            if not error.retryable:
                raise
            outcome = {"error": type(error).__name__, "message": str(error)[:300]}
        seconds = time.monotonic() - began
        self._written.note(history.QUESTION, question=question, seconds=round(seconds, 3), **outcome)
        return "error" not in outcome


def seconds_max(question: str) -> float:
    """The longest time that a question may take."""
    return STATUS_SECONDS_MAX if question == "status" else ANSWER_SECONDS_MAX


def stop_of(folder: Path) -> Path:
    """The file whose existence tells the reader to end."""
    return folder / "reader.stop"


def main(
    folder: Path,
    seed: Annotated[int, typer.Option()],
    events: Annotated[int, typer.Option()],
    spaces: Annotated[int, typer.Option()],
    life: Annotated[int, typer.Option(help="How many readers there were before.")] = 0,
) -> None:
    """Ask questions about the events of a campaign."""
    campaign = Campaign(seed, events=events, spaces=spaces)
    rng = random.Random(f"{seed} reader {life}")
    reader = Reader(campaign, history.Writer(history.path_of(folder, READER)), stop_of(folder), rng)
    asyncio.run(reader.ask_until_stopped())


if __name__ == "__main__":
    typer.run(main)
