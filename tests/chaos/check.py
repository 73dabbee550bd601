"""What is wrong with the evidence. No code of the projector judges: JSON is read anew, the oracle is brute force.

acknowledged   every event is in the topic where its acknowledgement says, and nothing is there that nobody has said
order          of each space the first records of its events are in the order in which they were said
counted        each event counts once, by space, agent and kind, whatever was sent twice
remembered     each log ascends, holds an event once, as the topic has it; what is memorable is in some log
parked         the dead letters are the planted contradictions, and no others
folded         every view is the oracle's fold of the partition's records
"""

import json
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from chaos.events import NUMBER, PLANTED
from chaos.evidence import Dump, Evidence, Said, as_store
from chaos.fold import OfSpaces
from chaos.history import CONTRADICTION
from recallog_projections.views import activity, episodic
from recallog_streams import dead_letters
from support import oracle
from support.folding import check_views, finish

_SHOWN_MAX = 5
"""Findings of one check; the rest are counted."""

Id = tuple[str, str]
"""Space and id."""


class First(NamedTuple):
    """The record of an event that counts: the first one with its id."""

    offset: int
    value: bytes
    fields: dict[str, Any]


@dataclass
class Partition:
    """One partition as the checks look at it."""

    number: int
    records: list[Said]
    dump: Dump
    fields: list[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.fields = [json.loads(record.value) for record in self.records]

    @cached_property
    def first(self) -> dict[Id, First]:
        """By event, in the order of the log."""
        found: dict[Id, First] = {}
        for record, fields in zip(self.records, self.fields, strict=True):
            found.setdefault((fields["space"], fields["id"]), First(record.offset, record.value, fields))
        return found

    @property
    def planted(self) -> list[int]:
        """Where the contradictions lie."""
        marked = zip(self.records, self.fields, strict=True)
        return [record.offset for record, fields in marked if fields.get("payload", {}).get(PLANTED)]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is not wrong, and worth knowing."""

    records: int
    events: int
    """Different ids."""
    duplicates: int
    """Records that repeat one before, sent twice on purpose or because the first outcome was unknown."""
    dead_letters: int
    spaces: int


def check(evidence: Evidence, events_by_space: Mapping[str, int]) -> tuple[Facts, list[str]]:
    """The facts, and all findings; none where everything is as it was promised."""
    partitions = [
        Partition(number, records, evidence.dumps[number]) for number, records in sorted(evidence.topic.items())
    ]
    findings = [*_some("acknowledged", acknowledged_where_it_says(evidence, partitions, events_by_space))]
    checks: tuple[Callable[[Partition], Iterator[str]], ...] = (in_order, counted, remembered, parked, folded)
    for partition in partitions:
        for one in checks:
            findings += _some(f"{one.__name__}, partition {partition.number}", one(partition))
    firsts = [first for partition in partitions for first in partition.first]
    values = [record.value for partition in partitions for record in partition.records]
    letters = sum(len(part.dump.rows[dead_letters.TABLE.name]) for part in partitions)
    spaces = len({space for space, _ in firsts})
    return Facts(len(values), len(firsts), len(values) - len(set(values)), letters, spaces), findings


def _some(name: str, findings: Iterator[str]) -> Iterator[str]:
    for finding in islice(findings, _SHOWN_MAX):
        yield f"{name}: {finding}"
    if more := sum(1 for _ in findings):
        yield f"{name}: and {more:,} more"


def acknowledged_where_it_says(
    evidence: Evidence, partitions: list[Partition], events_by_space: Mapping[str, int]
) -> Iterator[str]:
    """Nothing lost, nothing that nobody knows of."""
    held = {
        (part.number, record.offset): fields
        for part in partitions
        for record, fields in zip(part.records, part.fields, strict=True)
    }
    said: dict[str, set[int]] = {space: set() for space in events_by_space}
    for one in evidence.acknowledged:
        said[one.space].add(one.number)
        found = held.get((one.partition, one.offset))
        at = f"{one.space} {one.id} was acknowledged at {one.partition}:{one.offset}"
        if found is None:
            yield f"lost: {at}, where nothing is"
        elif (found["space"], found["id"], found["payload"][NUMBER]) != (one.space, one.id, one.number):
            yield f"lost: {at}, where {found['space']} {found['id']} is"
        elif (one.why == CONTRADICTION) != bool(found["payload"].get(PLANTED)):
            yield f"lost: {at}, where something else has its id"
    for space, count in events_by_space.items():
        if missing := sorted(set(range(count)) - said[space]):
            yield f"never acknowledged: {len(missing):,} events of {space}, the first is number {missing[0]}"
    known = {(one.space, one.id) for one in evidence.acknowledged}
    for part in partitions:
        yield from (f"nobody has said {space} {id_}" for space, id_ in part.first if (space, id_) not in known)


def in_order(partition: Partition) -> Iterator[str]:
    """As they were said, in the one partition of their space, without a gap between offsets."""
    newest: dict[str, int] = {}
    for offset, (record, fields) in enumerate(zip(partition.records, partition.fields, strict=True)):
        if record.offset != offset:
            yield f"offset {record.offset} follows {offset - 1}: something is missing"
            return
        if record.key != fields["space"].encode():
            yield f"the record at {offset} has the key {record.key!r}"
    for (space, id_), first in partition.first.items():
        number = first.fields["payload"][NUMBER]
        if number <= newest.get(space, -1):
            yield f"{space} {id_} at {first.offset} is number {number} and comes after {newest[space]}"
        newest[space] = number


def counted(partition: Partition) -> Iterator[str]:
    """Of distinct ids, which the history has; by space, by agent and by kind."""
    expected: dict[str, Counter[tuple[str, str]]] = {"spaces": Counter(), "agents": Counter(), "kinds": Counter()}
    for (space, _), first in partition.first.items():
        expected["spaces"][space, ""] += 1
        expected["agents"][space, first.fields["agent"]] += 1
        expected["kinds"][space, first.fields["kind"]] += 1
    for what, table in (("spaces", activity.SPACES), ("agents", activity.AGENTS), ("kinds", activity.KINDS)):
        rows = partition.dump.rows[table.name]
        found = {place[:2]: table.decode(data).events for place, data in rows.items()}
        for place in sorted(found.keys() | expected[what].keys()):
            if found.get(place, 0) != expected[what][place]:
                yield f"{what}: {place} has {expected[what][place]:,} events, the view counts {found.get(place, 0):,}"


def remembered(partition: Partition) -> Iterator[str]:
    """Every memorable event in somebody's log, once in each, and as it was written."""
    at = {first.offset: (place, first) for place, first in partition.first.items()}
    somewhere = set()
    for log in (episodic.OWN, episodic.SHARED):
        newest: dict[tuple[str, str], tuple[int, int]] = {}
        for (space, owner, ordinal), data in sorted(partition.dump.logs[log.name].items()):
            memory = log.decode(data)
            before, offset = newest.get((space, owner), (-1, -1))
            newest[space, owner] = (int(ordinal), memory.offset)
            if int(ordinal) != before + 1:
                yield f"{log.name} {space} {owner}: entry {int(ordinal)} follows {before}"
            if memory.offset <= offset:
                yield f"{log.name} {space} {owner}: offset {memory.offset} follows {offset}"
            place, first = at.get(memory.offset, (("", ""), None))
            if first is None or place[0] != space or first.value != memory.data:
                yield f"{log.name} {space} {owner}: {memory.offset} is not the first record of an event of {space}"
            somewhere.add(memory.offset)
    for offset, ((space, id_), first) in at.items():
        if first.fields["kind"] not in oracle.BOOKKEEPING and offset not in somewhere:
            yield f"nobody remembers {space} {id_} at {offset}"


def parked(partition: Partition) -> Iterator[str]:
    """Contradictions, and nothing else."""
    rows = partition.dump.rows[dead_letters.TABLE.name].values()
    letters, planted = {dead_letters.TABLE.decode(data).offset for data in rows}, set(partition.planted)
    yield from (f"the record at {offset} is a dead letter" for offset in sorted(letters - planted))
    yield from (f"the contradiction at {offset} is no dead letter" for offset in sorted(planted - letters))


def folded(partition: Partition) -> Iterator[str]:
    """All tables and logs, asked as readers ask."""
    if partition.dump.processed != len(partition.records) - 1:
        yield f"{partition.dump.processed} is decided, and the last record is {len(partition.records) - 1}"
        return
    expected = oracle.expect([record.value for record in partition.records], unique_ids=False)
    store, generation = finish(as_store(partition.dump))
    try:
        check_views(store, generation, OfSpaces(expected))
    except AssertionError as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        yield f"not the oracle's fold: {where.name}, {where.line} {' '.join(map(str, error.args))[:300]}".strip()
