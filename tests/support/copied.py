"""A copy of a ledger whose events lie elsewhere, and what a memory answers about one space, without positions."""

import json
import random
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from recallog import Memory
from recallog.composition import assemble
from recallog.operations import pipeline
from recallog.operations.facade import all_operations
from recallog.operations.operation import Operation, Scope
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import Event, Position, codec
from recallog_schemas.errors import RecallogError
from recallog_streams.ledgers.ledger import Ledger
from support.events import MOMENT
from support.partitioned import PartitionedLedger

READING: Mapping[str, Operation] = {
    name: operation
    for name, operation in all_operations(Memory).items()
    if operation.read_only and operation.scope == Scope.READ and "space" in operation.parameters
}
"""The operations that ask about one space."""
_COMPUTED = ("generation", "checkpoint", "since_checkpoint", "projections")
"""The fields that say what computed an answer."""
_POSITION = re.compile(r"\d{1,10}:\d{1,19}")


class ScatteredLedger(PartitionedLedger):
    """Spaces lie in partitions by a hash of their names, and foreign spaces write before and between their events."""

    def __init__(self, partitions: int, rng: random.Random) -> None:
        super().__init__(partitions)
        self._rng, self._foreign = rng, 0

    def partition_of(self, space: str) -> int:
        return zlib.crc32(space.encode()) % len(self._parts)

    async def append(self, events: Sequence[Event], appended: Sequence[int] | None = None) -> list[Position]:
        positions = []
        for event in events:
            while self._foreign < 3 or self._rng.random() < 0.4:
                self._foreign += 1
                await super().append([self._foreign_event()])
            positions += await super().append([event])
        return positions

    def _foreign_event(self) -> Event:
        payload = {"text": f"Bread of the mill, number {self._foreign}.", "tier": "glacial"}
        space = f"foreign-{self._rng.randrange(20)}"
        return Event(space=space, agent="baker", kind="memory.retained", payload=payload)


def memory_of(ledger: Ledger) -> Memory:
    """A memory whose reads write nothing."""
    return Memory(assemble(ledger, lambda namespace: MemoryStore()), count_accesses=False)


async def answers_of(memory: Memory, space: str) -> dict[str, Any]:
    """What every operation that reads answers about a space, by the call. Positions are the ids of their events."""
    events, names = [], dict[str, str]()
    async for batch in memory.admin.records(space=space):
        for offset, data in batch.records:
            event = codec.decode(data)
            events.append(event)
            names[f"{batch.partition}:{offset}"] = f"the position of {event.id}"
    found = {}
    for name, operation in READING.items():
        for given in _arguments(operation, space, events):
            try:
                answer = json.loads(operation.to_json(await pipeline.call(memory, operation, given)))
            except RecallogError as error:
                answer = [type(error).__name__, str(error)]
            found[f"{name}({given})"] = _placeless(answer, names)
    (row,) = [row for row in (await memory.spaces()).items if row.space == space]
    return found | {"spaces": _placeless(row.model_dump(mode="json"), names)}


def _placeless(answer: Any, names: Mapping[str, str]) -> Any:
    if isinstance(answer, dict):
        if answer.keys() == {"partition", "offset"}:
            return names[f"{answer['partition']}:{answer['offset']}"]
        return {key: _placeless(value, names) for key, value in answer.items() if key not in _COMPUTED}
    if isinstance(answer, list):
        return [_placeless(each, names) for each in answer]
    if isinstance(answer, str):
        return _POSITION.sub(lambda found: names.get(found[0], found[0]), answer)
    return answer


def _arguments(operation: Operation, space: str, events: Sequence[Event]) -> list[dict[str, Any]]:
    """Calls of an operation about a space: by each agent, with ids, sessions and words of the space."""
    required = [name for name, each in operation.parameters.items() if each.default is each.empty]
    agents = sorted({event.agent for event in events})
    ids = [event.id for event in events if event.kind != "memory.consolidated"]
    values: dict[str, Sequence[Any]] = {
        "space": [space],
        "agent": agents,
        "query": ["bread of the mill"],
        "text": ["Rye costs 3."],
        "topic": ["the eggs of village"],
        "entity": ["Acme Corp"],
        "event_id": ids[:: max(1, len(ids) // 3)],
        "entry_id": ids[:: max(1, len(ids) // 3)],
        "ids": [ids[:50]],
        "since": [MOMENT],
        "session": ["morning"],
        "namespace": ["notes"],
        "key": ["tip"],
    }
    calls: list[dict[str, Any]] = [{}]
    for name in required:
        calls = [{**call, name: value} for call in calls for value in values[name]]
    return calls
