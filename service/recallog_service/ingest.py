"""Appends the items of a file to the ledger, in durable batches that can be repeated."""

from collections.abc import Callable, Iterable

from pydantic import Field

from recallog import Event, Memory
from recallog_schemas.errors import IdConflict, StorageError, UnknownOutcome
from recallog_schemas.views import View
from recallog_service.formats.item import Item


class Problem(View):
    """An item that was refused: the number of its line (or conversation), and a message that says where and why."""

    number: int
    message: str


class Ingested(View):
    """The result of an ingest. `known` counts the events that were in the ledger already."""

    added: int = 0
    known: int = 0
    spaces: int = 0
    stopped: bool = False
    problems: tuple[Problem, ...] = Field(default=())


class _Run:
    def __init__(self, memory: Memory, unit: str, acknowledged: Callable[[str, str], None] | None) -> None:
        self._memory = memory
        self._unit = unit
        self._acknowledged = acknowledged
        self.added = 0
        self.known = 0
        self.spaces: set[str] = set()
        self.problems: list[Problem] = []

    async def write(self, items: list[tuple[int, Event]]) -> bool:
        """Append events; False if one was refused. Those before it are in the ledger, those after it are not."""
        try:
            await self._append([event for _, event in items])
        except IdConflict:
            for number, event in items:
                try:
                    await self._append([event])
                except IdConflict as error:
                    self.problems.append(Problem(number=number, message=f"{self._unit} {number}: {error}"))
                    del items[: items.index((number, event)) + 1]
                    return False
        items.clear()
        return True

    async def _append(self, events: list[Event]) -> None:
        try:
            ends = await self._memory.admin.ledger_ends()
            positions = await self._memory.publish_many(events)
        except (StorageError, UnknownOutcome) as error:
            done = self.added + self.known
            raise type(error)(
                f"{error}. {done:,} earlier events are in the ledger; run the same ingest again for the rest"
            ) from None
        new = sum(position.offset >= ends[position.partition] for position in set(positions))
        self.added += new
        self.known += len(events) - new
        self.spaces.update(event.space for event in events)
        if self._acknowledged is not None:
            for position, event in zip(positions, events, strict=True):
                self._acknowledged(str(position), event.id)


async def ingest(
    memory: Memory,
    items: Iterable[Item],
    *,
    unit: str = "line",
    batch: int,
    keep_going: bool = False,
    progress: Callable[[int, int], None] | None = None,
    acknowledged: Callable[[str, str], None] | None = None,
) -> Ingested:
    """Append all events of `items`. Stops at the first refused one, after those before it, unless `keep_going`.

    `unit` names what `Item.number` counts, for messages. `acknowledged` is called with the position and the id of
    each event once it is durable.
    """
    run = _Run(memory, unit, acknowledged)
    waiting: list[tuple[int, Event]] = []
    stopped = False

    async def flush() -> bool:
        while waiting:
            if not await run.write(waiting) and not keep_going:
                return False
            if progress is not None:
                progress(run.added + run.known, run.added + run.known)
        return True

    for item in items:
        if item.event is not None:
            waiting.append((item.number, item.event))
            if len(waiting) < batch:
                continue
        if not await flush():
            stopped = True
            break
        if item.error is not None:
            run.problems.append(Problem(number=item.number, message=str(item.error)))
            if not keep_going:
                stopped = True
                break
    if not stopped:
        stopped = not await flush()
    return Ingested(
        added=run.added,
        known=run.known,
        spaces=len(run.spaces),
        stopped=stopped,
        problems=tuple(run.problems),
    )
