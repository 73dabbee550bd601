"""The command that follows the life of one space: what is said, what falls due, and what answers it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, cast

import msgspec
import typer
from rich.text import Text

from recallog import Event, Memory, Position
from recallog_schemas import kinds, triggers
from recallog_schemas.errors import InvariantViolation
from recallog_schemas.triggers import Trigger
from recallog_schemas.views import ReflectionView
from recallog_service.cli import terminal
from recallog_service.cli.following import FOLLOW_SECONDS, Said, Start, begin_at, records_of
from recallog_service.cli.terminal import Home, Json, Space, harmless
from recallog_streams.ledgers.ledger import Batch

_PAYLOAD_CHARS_MAX = 200
_FOLDED_AGAIN_MAX = 50_000
"""Events that watching folds again at one look, to tell when something fell due that was answered before it looked.
On a small machine that takes about two seconds; beyond it only the fact is told."""

_STYLES = {
    "agent.thought": "italic yellow",
    "agent.reflected": "magenta",
    "reflection.failed": "red",
    "run.started": "green",
    "world.observed": "green",
    "user.injected": "bold cyan",
    "judge.verdict": "bold blue",
    "verdict.final": "bold blue",
}


def register(app: typer.Typer) -> None:
    app.command("watch", epilog="Example: recallog watch village")(watch_command)


def watch_command(
    space: Space,
    start: Start = None,
    once: Annotated[bool, typer.Option("--once", help="Show what is there, and end.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Follow a space live: who says and thinks what, which reflections fall due, and when they are answered.

    Addressed events show to whom. Ctrl-C ends it. With --json each line is one
    document: an "event", what is "due", or what is "answered".
    """

    async def work() -> None:
        with terminal.opened(home) as (memory, _):
            async with memory:
                await memory.pending(space)  # whatever has to be built first is built with a bar
        async with Memory.open(terminal.settings(home)) as memory:
            await _watch(memory, space, start, once, as_json)

    (terminal.run if once else terminal.run_until_stopped)(work, as_json=as_json)


async def _watch(memory: Memory, space: str, start: str | None, once: bool, as_json: bool) -> None:
    show = _print_document if as_json else _print_life
    owed, begin, first = Owed(memory, space), await begin_at(memory, start, space), True
    while True:
        # What falls due behind this end is told with the next look, when its records are shown.
        end = Position(begin.partition, max(begin.offset, (await memory.ledger_ends())[begin.partition]))
        anything = await _anything(memory, space, begin, end)
        if first or anything:
            await owed.ask(begin)
            await _show(memory, space, begin, end, owed, show)
        if first and not anything and not as_json:
            terminal.note(f"nothing was said there from {begin} on{'' if once else ' yet: waiting'}")
        if once:
            return
        begin, first = end, False
        await asyncio.sleep(FOLLOW_SECONDS)


async def _anything(memory: Memory, space: str, begin: Position, end: Position) -> bool:
    return any([bool(batch.records) async for batch in memory.records(begin, space)]) if begin < end else False


async def _show(
    memory: Memory,
    space: str,
    begin: Position,
    end: Position,
    owed: "Owed",
    show: "Callable[[Said | Due | Answered], None]",
) -> None:
    for due in owed.fallen_due(begin.offset - 1):
        show(due)
    async for batch in memory.records(begin, space):
        for said in records_of(batch):
            if said.position >= end:
                break
            show(said)
            for answered in owed.answered_by(said):
                show(answered)
            for due in owed.fallen_due(said.position.offset):
                show(due)


# What agents owe


@dataclass(frozen=True, slots=True)
class Due:
    """A reflection that fell due. Counts are None where nobody looked before it was answered."""

    space: str
    agent: str
    trigger: str
    after: int
    """The offset after which it is told."""
    events: int | None = None
    threshold: int | None = None
    since: Position | None = None
    last: Position | None = None
    last_turn: int | None = None

    def document(self) -> dict[str, Any]:
        return {
            "due": {
                "space": self.space,
                "agent": self.agent,
                "trigger": self.trigger,
                "events": self.events,
                "threshold": self.threshold,
                "since": None if self.since is None else str(self.since),
                "last": None if self.last is None else str(self.last),
            }
        }


@dataclass(frozen=True, slots=True)
class Answered:
    """A reflection that is due no more, and the event that answered it."""

    due: Due
    event: Event
    position: Position

    def document(self) -> dict[str, Any]:
        names = {"space": self.due.space, "agent": self.due.agent, "trigger": self.due.trigger}
        return {
            "answered": {**names, "kind": self.event.kind, "id": self.event.id, "position": str(self.position)},
        }


class Owed:
    """What the agents of a space owe, in the order of the ledger. Every trigger falls due once."""

    def __init__(self, memory: Memory, space: str) -> None:
        self._memory = memory
        self._space = space
        self._untold: list[Due] = []
        self._translated_error: dict[str, int] = {}
        """By agent the ordinal of the newest trigger that was told."""
        self._open: dict[str, Due] = {}
        """By agent what was told and is not answered."""

    async def ask(self, begin: Position) -> None:
        """Learn what has fallen due up to now; `begin` is the first record that is not shown yet."""
        for pending in await self._memory.pending(self._space):
            if self._is_new(pending.agent, pending.trigger):
                view = await self._memory.reflection(self._space, pending.agent)
                if view.trigger == pending.trigger:
                    self._untold.append(await self._due(view))
        # Read after that, these are the answers of all that was due and does not stand any more.
        await self._ask_for_the_past(await self._answers(begin))
        self._untold.sort(key=lambda due: due.after)

    async def _answers(self, begin: Position) -> list[Said]:
        kinds_written = [kind.encode() for kind in triggers.ANSWERS]
        found: list[Said] = []
        async for batch in self._memory.records(begin, self._space):
            # Few records answer something, and only they need to be decoded.
            few = [record for record in batch.records if any(kind in record[1] for kind in kinds_written)]
            found += records_of(msgspec.structs.replace(batch, records=few))
        return [said for said in found if said.event is not None and said.event.kind in triggers.ANSWERS]

    async def _ask_for_the_past(self, answers: Sequence[Said]) -> None:
        """Learn what was due and answered before anybody looked, as with a reactor that is quick."""
        missed = await self._unasked(answers)
        if not missed:
            return
        space = (await self._memory.space(self._space)).space
        affordable = len(missed) * (space.events if space else 0) <= _FOLDED_AGAIN_MAX
        for one, named in missed:
            before = Position(one.position.partition, one.position.offset - 1)
            if affordable:
                view = await self._memory.reflection(self._space, one.agent, as_of=before)
                if view.trigger is not None and self._is_new(one.agent, view.trigger):
                    self._untold.append(await self._due(view))
            elif named is not None and self._is_new(one.agent, named.id):
                self._untold.append(Due(self._space, one.agent, named.id, before.offset))

    async def _unasked(self, answers: Sequence[Said]) -> list[tuple[Said, Trigger | None]]:
        """The answers whose triggers may not be known yet, with the triggers that they name."""
        known, found = set(self._open), []
        for one in answers:
            named = triggers.named_by(one.event) if one.event is not None else None
            if one.agent in known:
                known.discard(one.agent)
            elif one.position.offset > 0 and (named is None or self._is_new(one.agent, named.id)):
                found.append((one, named))
        # Agents without a threshold reflect as they please, and owe nothing.
        free = {one.agent for one, named in found if named is None}
        free = {agent for agent in free if (await self._memory.reflection(self._space, agent)).threshold is None}
        return [(one, named) for one, named in found if named is not None or one.agent not in free]

    def _is_new(self, agent: str, trigger: str) -> bool:
        return _ordinal(trigger) > self._translated_error.get(agent, -1) and all(
            due.trigger != trigger for due in self._untold
        )

    async def _due(self, view: ReflectionView) -> Due:
        if view.trigger is None:
            raise InvariantViolation(f"{view.agent!r} owes nothing")
        since = -1 if view.since is None else view.since.offset
        newer = sum(shown.position.offset > since for shown in view.on)
        return Due(
            view.space,
            view.agent,
            view.trigger,
            after=since,
            # As it was then: whoever looks later sees more events. Where there are too many of these, what made it due.
            events=view.events - newer if newer < len(view.on) else view.threshold,
            threshold=view.threshold,
            since=view.since,
            last=view.last,
            last_turn=None if view.last is None else await self._turn_at(view.last),
        )

    async def _turn_at(self, position: Position) -> int | None:
        batches = cast(AsyncGenerator[Batch], self._memory.records(position, self._space))
        async with aclosing(batches):
            async for batch in batches:
                for said in records_of(batch):
                    return said.event.turn if said.event is not None else None
        return None

    def fallen_due(self, offset: int) -> list[Due]:
        """What was due after the record at `offset` and is not told yet."""
        told = [due for due in self._untold if due.after <= offset]
        self._untold = [due for due in self._untold if due.after > offset]
        for due in told:
            self._translated_error[due.agent] = _ordinal(due.trigger)
            self._open[due.agent] = due
        return told

    def answered_by(self, said: Said) -> list[Answered]:
        """What of it this record answers: at most one."""
        event = said.event
        if event is None or event.kind not in triggers.ANSWERS or event.agent not in self._open:
            return []
        # A reflection that names no trigger answers too; only one that names an older one is a mere belief.
        named = triggers.named_by(event)
        if named is not None and named.ordinal < _ordinal(self._open[event.agent].trigger):
            return []
        return [Answered(self._open.pop(event.agent), event, said.position)]


def _ordinal(trigger: str) -> int:
    parsed = triggers.parse(trigger)
    if parsed is None:
        raise InvariantViolation(f"{trigger!r} is no trigger")
    return parsed.ordinal


# Showing


def _print_document(shown: Said | Due | Answered) -> None:
    terminal.print_json_line(shown.document())


def _print_life(shown: Said | Due | Answered) -> None:
    match shown:
        case Said():
            terminal.out.print(_life(shown))
        case Due(agent=agent, events=None):
            terminal.print_lines(f"· {agent} owed a reflection", "bold red")
        case Due():
            since = "so far" if shown.last_turn is None else f"since turn {shown.last_turn}"
            terminal.print_lines(f"· {shown.agent} owes a reflection: {shown.events:,} events {since}", "bold red")
        case Answered():
            failed = shown.event.kind == "reflection.failed"
            terminal.print_lines(f"· {shown.due.agent} {'could not reflect' if failed else 'has reflected'}", "bold")


def _life(said: Said) -> Text:
    event = said.event
    if event is None:
        return Text(harmless(said.line()), "dim")
    line = Text()
    line.append(f"{said.position}  turn {event.turn:03d}  ", "dim")
    line.append(event.agent, "bold")
    if event.audience is not None:
        line.append(f" → {', '.join(event.audience) or 'nobody'}")
    line.append(f"  {event.kind}  ", "dim")
    # A text of several lines stays one event to the eye.
    words = harmless(_words(event)).replace("\n", "\n    ")
    line.append(words, _STYLES.get(event.kind, "dim" if kinds.kind_of(event.kind).bookkeeping else ""))
    return line


def _words(event: Event) -> str:
    """What the event says; for one without words what it holds, cut."""
    if event.text or not event.payload:
        return event.text
    held = str(event.payload.get("reason") or json.dumps(event.payload, ensure_ascii=False))
    return held if len(held) <= _PAYLOAD_CHARS_MAX else held[: _PAYLOAD_CHARS_MAX - 1] + "…"
