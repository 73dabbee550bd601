"""The checks of the evidence. They use no code of the projector: JSON is parsed again, and the oracle is brute force.

acknowledged    every event is in the topic at the acknowledged position, and every event in the topic was published
in_order        the first records of the events of each space are in the order in which they were published
counted         each event counts once by space, agent and kind, even if it was sent twice
remembered      each log ascends and contains an event once, as in the topic; each event to remember is in a log
dead_lettered   the dead letters are exactly the planted contradictions
folded          every view equals the oracle's fold of the partition's records
answered        what agents have written are answers to triggers, one for each; no other event was not published
"""

import json
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from chaos.appends import VALUE
from chaos.events import NUMBER, PLANTED
from chaos.evidence import Dump, Evidence, TopicRecord, as_store
from chaos.history import CONTRADICTION
from recallog_projections.views import activity, episodic
from recallog_streams import dead_letters
from support import oracle
from support.folding import finish
from support.view_checking import check_views

_SHOWN_MAX = 5
"""Findings that are listed per check; the others are counted."""

_PROMISE_DUE = re.compile(r"promise\.due/[0-9a-f]{32}/[0-9a-f]{32}")
"""The triggers of the users' projection."""

Id = tuple[str, str]
"""Space and id."""


class First(NamedTuple):
    """The first record with the id of an event, which is the one that counts."""

    offset: int
    value: bytes
    fields: dict[str, Any]


@dataclass
class Partition:
    """The evidence of one partition."""

    number: int
    records: list[TopicRecord]
    dump: Dump
    fields: list[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.fields = [json.loads(record.value) for record in self.records]

    @cached_property
    def first(self) -> dict[Id, First]:
        """The first record of each event, in the order of the topic."""
        found: dict[Id, First] = {}
        for record, fields in zip(self.records, self.fields, strict=True):
            found.setdefault((fields["space"], fields["id"]), First(record.offset, record.value, fields))
        return found

    def is_answer(self, first: First) -> bool:
        """Whether a reactor has written it: it has neither a number nor a value."""
        return first.fields["payload"].keys().isdisjoint({NUMBER, VALUE})

    def is_produced(self, first: First) -> bool:
        """Whether a producer has written it."""
        return NUMBER in first.fields["payload"]

    @property
    def planted(self) -> list[int]:
        """The offsets of the contradictions."""
        marked = zip(self.records, self.fields, strict=True)
        return [record.offset for record, fields in marked if fields.get("payload", {}).get(PLANTED)]


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures of the topic and the views."""

    records: int
    events: int
    """Distinct ids."""
    duplicates: int
    """Records that repeat an earlier one, sent on purpose or because the first outcome was unknown."""
    dead_letters: int
    spaces: int
    answers: int
    """Answers of agents that count."""


def check(evidence: Evidence, events_by_space: Mapping[str, int]) -> tuple[Facts, list[str]]:
    """The figures, and the findings: empty if every guarantee held."""
    partitions = [
        Partition(number, records, evidence.dumps[number]) for number, records in sorted(evidence.topic.items())
    ]
    findings = [*_some("acknowledged", acknowledged_events_exist(evidence, partitions, events_by_space))]
    checks: tuple[Callable[[Partition], Iterator[str]], ...] = (
        in_order,
        counted,
        remembered,
        dead_lettered,
        folded,
        answered,
    )
    for partition in partitions:
        for one in checks:
            findings += _some(f"{one.__name__}, partition {partition.number}", one(partition))
    firsts = [first for partition in partitions for first in partition.first]
    values = [record.value for partition in partitions for record in partition.records]
    letters = sum(len(part.dump.rows[dead_letters.TABLE.name]) for part in partitions)
    spaces = len({space for space, _ in firsts})
    answers = sum(part.is_answer(first) for part in partitions for first in part.first.values())
    return Facts(len(values), len(firsts), len(values) - len(set(values)), letters, spaces, answers), findings


def _some(name: str, findings: Iterator[str]) -> Iterator[str]:
    for finding in islice(findings, _SHOWN_MAX):
        yield f"{name}: {finding}"
    if more := sum(1 for _ in findings):
        yield f"{name}: and {more:,} more"


def acknowledged_events_exist(
    evidence: Evidence, partitions: list[Partition], events_by_space: Mapping[str, int]
) -> Iterator[str]:
    """Nothing is lost, and nothing is there that was not published."""
    records = {
        (part.number, record.offset): fields
        for part in partitions
        for record, fields in zip(part.records, part.fields, strict=True)
    }
    numbers: dict[str, set[int]] = {space: set() for space in events_by_space}
    for one in evidence.acknowledged:
        numbers[one.space].add(one.number)
        found = records.get((one.partition, one.offset))
        at = f"{one.space} {one.id} was acknowledged at {one.partition}:{one.offset}"
        if found is None:
            yield f"lost: {at}, which has no record"
        elif (found["space"], found["id"], found["payload"][NUMBER]) != (one.space, one.id, one.number):
            yield f"lost: {at}, which has {found['space']} {found['id']}"
        elif (one.why == CONTRADICTION) != bool(found["payload"].get(PLANTED)):
            yield f"lost: {at}, which has another event with its id"
    for space, count in events_by_space.items():
        if missing := sorted(set(range(count)) - numbers[space]):
            yield f"never acknowledged: {len(missing):,} events of {space}, the first is number {missing[0]}"
    known = {(one.space, one.id) for one in evidence.acknowledged}
    for part in partitions:
        for (space, id_), first in part.first.items():
            if (space, id_) not in known and part.is_produced(first):
                yield f"never published: {space} {id_}"


def in_order(partition: Partition) -> Iterator[str]:
    """Events are in the order of publishing, in the partition of their space, without a gap between offsets."""
    newest: dict[str, int] = {}
    for offset, (record, fields) in enumerate(zip(partition.records, partition.fields, strict=True)):
        if record.offset != offset:
            yield f"offset {record.offset} follows {offset - 1}: records are missing"
            return
        if record.key != fields["space"].encode():
            yield f"the record at {offset} has the key {record.key!r}"
    for (space, id_), first in partition.first.items():
        if not partition.is_produced(first):
            continue
        number = first.fields["payload"][NUMBER]
        if number <= newest.get(space, -1):
            yield f"{space} {id_} at {first.offset} is number {number} and comes after {newest[space]}"
        newest[space] = number


def counted(partition: Partition) -> Iterator[str]:
    """The counts of the views by space, agent and kind equal the numbers of distinct ids."""
    expected: dict[str, Counter[tuple[str, str]]] = {"spaces": Counter(), "agents": Counter(), "kinds": Counter()}
    for (space, _), first in partition.first.items():
        expected["spaces"][space, ""] += 1
        if first.fields["kind"] != "clock.ticked":
            expected["agents"][space, first.fields["agent"]] += 1
        expected["kinds"][space, first.fields["kind"]] += 1
    for what, table in (("spaces", activity.SPACES), ("agents", activity.AGENTS), ("kinds", activity.KINDS)):
        rows = partition.dump.rows[table.name]
        found = {address[:2]: table.decode(data).events for address, data in rows.items()}
        for address in sorted(found.keys() | expected[what].keys()):
            if found.get(address, 0) != expected[what][address]:
                counts = f"{expected[what][address]:,} events, the view counts {found.get(address, 0):,}"
                yield f"{what}: {address} has {counts}"


def remembered(partition: Partition) -> Iterator[str]:
    """Every event to remember is in a log, at most once in each, with the bytes of the topic."""
    at = {first.offset: (address, first) for address, first in partition.first.items()}
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
            address, first = at.get(memory.offset, (("", ""), None))
            if first is None or address[0] != space or first.value != memory.data:
                yield f"{log.name} {space} {owner}: {memory.offset} is not the first record of an event of {space}"
            somewhere.add(memory.offset)
    for offset, ((space, id_), first) in at.items():
        if first.fields["kind"] not in oracle.BOOKKEEPING and offset not in somewhere:
            yield f"no log contains {space} {id_} at {offset}"


def dead_lettered(partition: Partition) -> Iterator[str]:
    """The dead letters are the contradictions."""
    rows = partition.dump.rows[dead_letters.TABLE.name].values()
    letters, planted = {dead_letters.TABLE.decode(data).offset for data in rows}, set(partition.planted)
    yield from (f"the record at {offset} is a dead letter" for offset in sorted(letters - planted))
    yield from (f"the contradiction at {offset} is not a dead letter" for offset in sorted(planted - letters))


def answered(partition: Partition) -> Iterator[str]:
    """Each event that agents have written answers a trigger of its agent, under the id that follows from it."""
    for (space, id_), first in partition.first.items():
        if partition.is_answer(first):
            cause, agent = first.fields.get("causation_id") or "", first.fields["agent"]
            ordinal = cause.rpartition("/")[2]
            is_reflection = ordinal.isdecimal() and cause == oracle.trigger_of(space, agent, int(ordinal))
            if not is_reflection and not _PROMISE_DUE.fullmatch(cause):
                yield f"{space} {id_} at {first.offset} answers {cause!r}, which is no trigger of {agent}"
            elif not id_.startswith(f"{cause}/answer"):
                yield f"{space} {id_} at {first.offset} does not have the id of an answer to {cause}"


def folded(partition: Partition) -> Iterator[str]:
    """All tables and logs, read as queries read them, equal the oracle's."""
    if partition.dump.checkpoint.offset != len(partition.records) - 1:
        yield f"{partition.dump.checkpoint.offset} is processed, and the last record is {len(partition.records) - 1}"
        return
    expected = oracle.expect([record.value for record in partition.records], unique_ids=False)
    store, generation = finish(as_store(partition.dump))
    try:
        check_views(store, generation, expected)
    except AssertionError as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        yield f"not the oracle's fold: {where.name}, {where.line} {' '.join(map(str, error.args))[:300]}".strip()
