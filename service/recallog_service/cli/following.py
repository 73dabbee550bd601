"""Following the ledger, and the command that shows its records as they are."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from recallog import Event, Memory, Position
from recallog_schemas import codec
from recallog_schemas.errors import InvalidEvent, OutOfRange
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Home, Json
from recallog_streams.ledgers.ledger import Batch

FOLLOW_SECONDS = 0.1
_NEWEST_RECORDS = 20
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Start = Annotated[str | None, typer.Option("--from", help="Position to begin at; default: the last 20.")]


def register(app: typer.Typer) -> None:
    app.command("tail", epilog="Example: recallog tail --space village --follow")(tail_command)


def tail_command(
    space: Annotated[str | None, typer.Option(help="Only this space.")] = None,
    start: Start = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is appended.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """The ledger's records as they are, in order."""

    async def work() -> None:
        with terminal.opened(home) as (memory, _):
            async with memory:
                begins = await begin_all(memory, start, space)
                async for batch in following(memory, begins, space, once=not follow):
                    for said in records_of(batch):
                        if as_json:
                            terminal.print_json_line(said.document())
                        else:
                            terminal.print_lines(said.line())

    (terminal.run_until_stopped if follow else terminal.run)(work, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Said:
    """One record of the ledger: an event, or why it is none."""

    position: Position
    event: Event | None
    problem: str = ""

    @property
    def agent(self) -> str:
        return "" if self.event is None else self.event.agent

    def document(self) -> dict[str, Any]:
        if self.event is None:
            return {"position": str(self.position), "error": self.problem}
        return {"position": str(self.position), "event": json.loads(codec.encode(self.event))}

    def line(self) -> str:
        event = self.event
        if event is None:
            return f"{self.position}  (not an event: {self.problem})"
        return (
            f"{self.position}  {event.at:%Y-%m-%d %H:%M:%S}  {event.space}  {event.agent}  {event.kind}  {event.text}"
        )


async def following(
    memory: Memory, begins: Mapping[int, int], space: str | None, *, once: bool = False
) -> AsyncGenerator[Batch]:
    """The ledger's batches, of each partition from its offset in `begins` on, of one space or of all.

    Of what will be appended too, unless `once`.
    """
    following = dict(begins)
    while True:
        for partition, begin in begins.items() if once else [*following.items()]:
            async for batch in memory.records(Position(partition, begin), space):
                yield batch
                following[partition] = batch.next
        if once:
            return
        await asyncio.sleep(FOLLOW_SECONDS)


async def begin_all(memory: Memory, start: str | None, space: str | None) -> dict[int, int]:
    """By partition, where to begin: there, else where the newest records do, of one space or of all."""
    if start is not None or space is not None:
        begin = await begin_at(memory, start, space)
        return {begin.partition: begin.offset}
    ends = await memory.ledger_ends()
    begins = [Position(partition, max(0, end - _NEWEST_RECORDS)) for partition, end in enumerate(ends)]
    newest = [
        (said.event.at if said.event is not None else _LONG_AGO, said.position)
        for begin in begins
        async for batch in memory.records(begin)
        for said in records_of(batch)
    ]
    shown = [position for _, position in sorted(newest)[-_NEWEST_RECORDS:]]
    return {
        partition: min([position.offset for position in shown if position.partition == partition], default=end)
        for partition, end in enumerate(ends)
    }


async def begin_at(memory: Memory, start: str | None, space: str | None) -> Position:
    """Where to begin in one partition: there, else where the newest records of `space` do."""
    if start is not None:
        begin, ends = Position.parse(start), await memory.ledger_ends()
        if begin.partition >= len(ends):
            raise OutOfRange(f"there is no partition {begin.partition}: the ledger has {len(ends)}, the first is 0")
        return begin
    first = Position(0 if space is None else await memory.partition_of(space), 0)
    newest = deque([first], maxlen=_NEWEST_RECORDS)
    async for batch in memory.records(first, space):
        newest.extend(Position(batch.partition, offset) for offset, _ in batch.records)
    return newest[0]


def records_of(batch: Batch) -> list[Said]:
    return [_record(Position(batch.partition, offset), data) for offset, data in batch.records]


def _record(position: Position, data: bytes) -> Said:
    try:
        event = codec.decode(data)
        codec.encode(event)  # one of an old envelope may have become too long to be shown
    except InvalidEvent as error:
        return Said(position, None, str(error))
    return Said(position, event)
