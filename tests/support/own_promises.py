"""A projection and a reactor of a user's own: what an agent promises is due to be kept."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from recallog.extending import Due, DueTrigger, Reactor, Record, Rows
from recallog_schemas import Event
from support.events import event


class Promises:
    """Each sentence of an agent with the word "promise" is due to be kept."""

    name: ClassVar[str] = "promises"
    version: ClassVar[int] = 1
    kinds: ClassVar[frozenset[str]] = frozenset({"agent.spoke"})
    tables = ()
    kind: ClassVar[str] = "promise.due"

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        """Keeps no rows."""

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        for number, sentence in enumerate(record.event.text.split(".")):
            if "promise" in sentence:
                yield Due(self.kind, record.event.agent, part=str(number), texts=(("said", sentence.strip()),))


class Keeping(Reactor):
    """Thinks of what was promised."""

    kinds: ClassVar[frozenset[str]] = frozenset({"promise.due"})

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        return [
            event("agent.thought", space=trigger.space, agent=trigger.agent, payload={"text": text})
            for _, text in trigger.texts
        ]


def several() -> list[Reactor]:
    return [Keeping()]


twice = [Keeping, Keeping()]
nothing = 7
