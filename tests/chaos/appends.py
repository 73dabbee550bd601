"""A process that appends to lists and reads them: `python -m chaos.appends NAME …`, in the environment of a cluster.

A list belongs to an agent: what it has said, and what was said to it. A call of `publish_many` appends one event or
several, each to the list of its agent and to the lists of its audience; a question reads one list, or all lists of a
space. Each operation is recorded before it begins and after it has ended, for `support.list_append`, which looks for
histories that Recallog rules out. Some of the events are promises, which a reactor answers.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from chaos import history
from recallog import Event, Memory, Position
from recallog_schemas import codec
from recallog_schemas.errors import RecallogError, StorageUnavailable, UnknownOutcome

VALUE = "value"
"""The field of the payload with the value that is appended, unique in a run."""
PREFIX = "list-"
"""Names of the spaces of lists begin with it."""
KIND = "agent.spoke"

_SPACES = [f"{PREFIX}{number}" for number in range(6)]
_AGENTS = 4
"""Of each space in each era."""
_ERA_SECONDS = 300.0
"""After it the clients use other agents, so that a list is read whole in one page."""
LIST_MAX = 1_000
_PAUSE_SECONDS_MAX = 1.2
_SESSIONS = 2
PROMISE = "I promise"
_PROMISES = 0.3
"""The fraction of the events that are promises."""


class Client:
    """Does one operation after the other: a session of a program."""

    def __init__(self, memory: Memory, name: str, files: tuple[history.Writer, Path], began: float) -> None:
        """
        Args:
            memory: the memory that it shares with other sessions.
            name: the name of the session, unique in a run.
            files: where it records its operations, and the file whose existence tells it to end.
            began: when the run began, by the monotonic clock of the machine.
        """
        self._memory = memory
        self._name = name
        self._written, self._stop = files
        self._began = began
        self._rng = random.Random(name)
        self._operations = 0
        self._own: dict[tuple[str, str], tuple[Position, int]] = {}
        """By space and agent: the position and the value of the last event that this session has appended to a list."""

    async def work(self) -> None:
        """Append and read until it is told to stop."""
        while not self._stop.exists():
            space, agents = self._rng.choice(_SPACES), self._agents()
            kind = self._rng.choices((self._append, self._read, self._read_ledger), (0.55, 0.42, 0.03))[0]
            await kind(space, agents)
            await asyncio.sleep(self._rng.uniform(0, _PAUSE_SECONDS_MAX))

    def _agents(self) -> Sequence[str]:
        era = int((time.monotonic() - self._began) / _ERA_SECONDS)
        return [f"agent-{era}-{number}" for number in range(_AGENTS)]

    def _begin(self, what: str, space: str, **more: Any) -> dict[str, Any]:
        self._operations += 1
        begun = {"op": f"{self._name}/{self._operations}", "process": self._name, "kind": what, "space": space, **more}
        self._written.note("invoked", **begun, time=time.monotonic_ns())
        return begun

    def _end(self, begun: dict[str, Any], outcome: str, **more: Any) -> None:
        self._written.note(outcome, op=begun["op"], **more, time=time.monotonic_ns())

    async def _append(self, space: str, agents: Sequence[str]) -> None:
        batch = [self._event(space, agents, number) for number in range(self._rng.choice((1, 1, 1, 2, 3)))]
        appended = [[each.payload[VALUE], [each.agent, *(each.audience or ())]] for each in batch]
        begun = self._begin("append", space, appended=appended)
        patient = self._rng.random() < 0.7
        outcome = "failed"
        while True:
            try:
                positions = await self._memory.publish_many(batch)
            except (UnknownOutcome, StorageUnavailable) as error:
                if isinstance(error, UnknownOutcome):
                    outcome = "unknown"  # for good: what becomes of a later attempt says nothing about it
                if outcome == "failed" or not patient or self._stop.exists():
                    self._end(begun, outcome, message=str(error)[:300])
                    return
            else:
                break
            await asyncio.sleep(self._rng.uniform(0, 0.5))
        for (value, lists), at in zip(appended, positions, strict=True):
            for agent in lists:
                self._own[space, agent] = at, value
        self._end(begun, "ok", positions=[str(at) for at in positions])

    def _event(self, space: str, agents: Sequence[str], number: int) -> Event:
        agent, *others = self._rng.sample(agents, len(agents))
        value = f"{self._name}/{self._operations + 1}/{number}"
        text = f"{PROMISE} {value}" if self._rng.random() < _PROMISES else f"I say {value}"
        audience = tuple(others[: self._rng.choice((0, 0, 1, 2))]) or None
        payload = {"text": text, VALUE: value}
        return Event(id=value, space=space, agent=agent, kind=KIND, payload=payload, audience=audience)

    async def _read(self, space: str, agents: Sequence[str]) -> None:
        """Read a list from the views; sometimes with the own last event in it, as `after` guarantees."""
        agent = self._rng.choice(agents)
        at, value = self._own.get((space, agent), (None, None))
        own = at is not None and self._rng.random() < 0.5
        begun = self._begin("read", space, reader="after" if own else "views", sees=[value] if own else [])
        options: dict[str, Any] = {"after": at} if own else {}
        try:
            page = await self._memory.timeline(space, agent, limit=LIST_MAX, kinds=[KIND], **options)
        except RecallogError as error:
            if not error.retryable:
                raise
            self._end(begun, "failed", message=type(error).__name__)
            return
        self._end(begun, "ok", lists={agent: _values([item.event for item in page.items])})

    async def _read_ledger(self, space: str, agents: Sequence[str]) -> None:
        """Read all lists of a space from the ledger."""
        begun = self._begin("read", space, reader="ledger", sees=[])
        lists: dict[str, list[str]] = {agent: [] for agent in agents}
        known = set()
        try:
            async for batch in self._memory.admin.records(space=space):
                for _, data in batch.records:
                    event = codec.decode(data)
                    if event.space == space and event.id not in known and VALUE in event.payload:
                        known.add(event.id)
                        for agent in {event.agent, *(event.audience or ())} & lists.keys():
                            lists[agent].append(event.payload[VALUE])
        except RecallogError as error:
            if not error.retryable:
                raise
            self._end(begun, "failed", message=type(error).__name__)
            return
        self._end(begun, "ok", lists=lists)


def _values(events: Sequence[Event]) -> list[str]:
    return [event.payload[VALUE] for event in events]


async def use_lists(name: str, folder: Path, began: float, life: int) -> None:
    """Run the sessions of one process."""
    written, stop = history.Writer(history.path_of(folder, name)), stop_of(folder)
    async with Memory.open() as memory, asyncio.TaskGroup() as sessions:
        for number in range(_SESSIONS):
            client = Client(memory, f"{name}/{life}/{number}", (written, stop), began)
            sessions.create_task(client.work())


def stop_of(folder: Path) -> Path:
    """The file whose existence tells the processes to end."""
    return folder / "appends.stop"


def main(
    name: str,
    folder: Path,
    began: Annotated[float, typer.Option(help="When the run began, by the monotonic clock.")],
    life: Annotated[int, typer.Option(help="How often a process with this name was started before.")] = 0,
) -> None:
    """Append to lists and read them."""
    asyncio.run(use_lists(name, folder, began, life))


if __name__ == "__main__":
    typer.run(main)
