"""Takes over the rows of a store: new ones become events, changed entries are updated, and the rest is reported."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from recallog import Event, Memory, RecallogError
from recallog_formats.stores.store import Destination, StoreFormat, StoreRow
from recallog_schemas import kinds
from recallog_schemas.kinds.trust import SourceClass, is_untrusted
from recallog_service.formats import Item, fit_item
from recallog_service.ingest import BATCH_EVENTS, ingest, with_class

ENTRY = "memory.retained"
ORIGIN = "imported"
"""The field of the metadata of an entry that says which row it is from, and in which form the row was imported."""
_UPDATED = ("text", "type", "entity", "category", "source", "topic", "importance", "confidence")
_DIRECTING = ("priority", "red_line")
_PAGE = 1_000
"""Entries that are listed at once."""
_DIRECTED = "documents and blocks of working memory"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How rows are taken over."""

    trust: SourceClass = "import"
    """The source class that the events state."""
    tiers: bool = True
    """Whether entries keep their tiers, by which they age."""
    dry_run: bool = False
    """Whether nothing is written."""

    @property
    def is_trusted(self) -> bool:
        """Whether rows may direct an agent: blocks, documents, pins."""
        return not is_untrusted(self.trust)


@dataclass(frozen=True, slots=True)
class Remark:
    """What happened to a row, or to several: a problem, or why it was left out."""

    place: str
    why: str
    count: int = 1


@dataclass(slots=True)
class ImportResult:
    """What an import did, or would do."""

    added: int = 0
    changed: int = 0
    """Entries whose row has changed since it was imported."""
    unchanged: int = 0
    left_out: list[Remark] = field(default_factory=list)
    weakened: list[Remark] = field(default_factory=list)
    """Rows that were taken over without a field."""
    problems: list[Remark] = field(default_factory=list)
    tiered: int = 0
    """Added entries with a tier."""
    classes: dict[str, int] = field(default_factory=dict)
    """Number of added events by their source class."""
    scrubbed: dict[str, int] = field(default_factory=dict)
    """Number of secrets and personal data that were replaced in added events, by their sort."""


class StoreImport:
    """Writes the rows of one store to a memory."""

    def __init__(self, memory: Memory, store: StoreFormat, options: ImportOptions) -> None:
        self._memory = memory
        self._store = store
        self._options = options
        self._live: dict[tuple[str, str], Mapping[str, object]] = {}
        self._ended: set[str] = set()
        """The places of sequences with a refused row, whose rest is not added."""
        self.result = ImportResult()

    async def run(self, path: Path, into: Destination, progress: Callable[[int, int], None]) -> ImportResult:
        """Take over all rows, in durable batches. Running it again adds nothing.

        Raises `InvalidArgument` if there is no store of the system at `path`.
        """
        rows = self._store.read(path, into)
        done = 0
        while batch := list(islice(rows, BATCH_EVENTS)):
            await self._write(batch)
            done += len(batch)
            progress(done, done)
        return self.result

    async def _write(self, batch: Sequence[StoreRow]) -> None:
        new: list[StoreRow] = []
        for row, event in self._prepare(batch):
            if event.kind == ENTRY and event.id in (live := await self._find_live(event.space, event.agent)):
                await self._compare(row.place, event, live[event.id], "live")
            else:
                new.append(replace(row, event=event))
        await self._add(new)

    async def _find_live(self, space: str, agent: str) -> Mapping[str, object]:
        """By the id of a live entry that an agent had before the import, its origin; None without one."""
        if (space, agent) not in self._live:
            found: dict[str, object] = {}
            page = await self._memory.long_term.list(space, agent, limit=_PAGE)
            while True:
                found |= {each.id: each.metadata.get(ORIGIN) for each in page.entries}
                if page.next is None:
                    break
                page = await self._memory.long_term.list(space, agent, limit=_PAGE, cursor=page.next)
            self._live[space, agent] = found
        return self._live[space, agent]

    def _prepare(self, batch: Iterable[StoreRow]) -> Iterator[tuple[StoreRow, Event]]:
        """The rows of a batch with their events: what their source class may not do is left out, and entries have their
        origin."""
        for row in batch:
            if row.in_sequence and row.place in self._ended:
                continue
            if row.error is not None:
                self.result.problems.append(Remark(row.place, str(row.error)))
            elif row.event is None:
                self.result.left_out.append(Remark(row.place, str(row.left_out), row.count))
            elif (event := self._permitted(row.place, row.event)) is not None:
                yield from self._fit(row, self._with_origin(row.place, event) if event.kind == ENTRY else event)

    def _fit(self, row: StoreRow, event: Event) -> Iterator[tuple[StoreRow, Event]]:
        """The row with its event, whose texts are cut if its origin and source class make it too large; nothing if
        cutting does not help."""
        item = fit_item(Item(0, event=event, cut=row.cut), with_class(event, self._options.trust), "session")
        if item.cut is not None:
            self.result.weakened.append(_remark_cut(row.place, item.cut))
        if item.event is not None:
            yield row, item.event
            return
        if row.in_sequence:
            self._ended.add(row.place)
        self.result.problems.append(Remark(row.place, _without_number(str(item.error))))

    def _permitted(self, place: str, event: Event) -> Event | None:
        """The event without the fields that direct the memory; None if all of it does."""
        kind = kinds.kind_of(event.kind)
        if self._options.is_trusted or kind.is_memory(event.payload):
            return event
        weaker = {name: value for name, value in event.payload.items() if name not in (kind.directs or ())}
        if not kind.is_memory(weaker):
            what = _DIRECTED if event.kind == "item.put" else f"events of the kind {event.kind}"
            self.result.left_out.append(Remark(place, f"imports may not direct an agent: {what} need --trust agent"))
            return None
        lost = ", ".join(sorted(event.payload.keys() - weaker.keys()))
        self.result.weakened.append(Remark(place, f"taken over without {lost}, which needs --trust agent"))
        return event.model_copy(update={"payload": weaker})

    def _with_origin(self, place: str, event: Event) -> Event:
        payload = dict(event.payload)
        tier = payload.pop("tier", None)
        row = f"{self._store.name} {place}"
        digest = blake2b(json.dumps(payload, sort_keys=True).encode(), digest_size=8).hexdigest()
        payload["metadata"] = {**payload.get("metadata", {}), ORIGIN: {"row": row, "digest": digest}}
        if tier is not None and self._options.tiers:
            payload["tier"] = tier
        return event.model_copy(update={"payload": payload})

    async def _compare(self, place: str, event: Event, before: object, status: str) -> None:
        """Update an entry whose row has changed since it was imported. What was changed here stays otherwise."""
        origin = event.payload["metadata"][ORIGIN]
        if not isinstance(before, Mapping) or before.get("row") != origin["row"]:
            why = f"the space has another entry with the id {event.id}; import into a space of its own"
            self.result.problems.append(Remark(place, why))
        elif before.get("digest") == origin["digest"]:
            self.result.unchanged += 1
        elif status != "live":
            self.result.left_out.append(Remark(place, f"it has changed there, and is {status} here"))
        else:
            await self._update(place, event)

    async def _compare_ended(self, place: str, event: Event) -> None:
        """As `_compare`, for an entry that is not live, or whose id another event has."""
        entry = (await self._memory.long_term.get(event.space, event.agent, event.id)).entry
        if entry is None:
            why = f"the id {event.id} is that of another event, or of an entry that was forgotten here or given away"
            self.result.left_out.append(Remark(place, why))
        else:
            await self._compare(place, event, entry.metadata.get(ORIGIN), entry.status)

    async def _update(self, place: str, event: Event) -> None:
        fields = (*_UPDATED, *(_DIRECTING if self._options.is_trusted else ()))
        changes: dict[str, Any] = {name: event.payload.get(name) for name in fields}  # None resets a field
        changes["type"] = event.payload.get("type", "fact")
        try:
            if not self._options.dry_run:
                await self._memory.long_term.update(
                    event.space, event.agent, event.id, metadata=event.payload["metadata"], **changes
                )
            self.result.changed += 1
        except RecallogError as error:
            if error.exit_code > 2:  # the ledger cannot be written
                raise
            self.result.problems.append(Remark(place, str(error)))

    async def _add(self, new: Sequence[StoreRow]) -> None:
        tiered = sum("tier" in row.event.payload for row in new if row.event is not None)
        if self._options.dry_run:
            self.result.added += len(new)
            self.result.tiered += tiered
            return
        items = list(_items_of(new))
        done = await ingest(
            self._memory, items, unit="session", batch=BATCH_EVENTS, keep_going=True, trust=self._options.trust
        )
        self.result.added += done.added
        self.result.unchanged += done.known
        self.result.tiered += min(tiered, done.added)
        for counts, more in ((self.result.classes, done.classes), (self.result.scrubbed, done.scrubbed)):
            for name, count in more.items():
                counts[name] = counts.get(name, 0) + count
        self.result.weakened += [_remark_cut(new[each.number].place, each.message) for each in done.cut]
        for problem in done.problems:
            row = new[problem.number]
            if row.event is not None and row.event.kind == ENTRY:
                await self._compare_ended(row.place, row.event)
                continue
            if row.in_sequence:
                self._ended.add(row.place)
            self.result.problems.append(Remark(row.place, _without_number(problem.message)))
        for kind, count in done.left_out.items():
            self.result.left_out.append(Remark(kind, "it names a trigger of the memory", count))


def _remark_cut(place: str, message: str) -> Remark:
    return Remark(place, f"too long for an event: {_without_number(message)}")


def _without_number(message: str) -> str:
    """The message about an item without the number of its session, because its place is known."""
    return message.partition(": ")[2]


def _items_of(rows: Sequence[StoreRow]) -> Iterator[Item]:
    """The items of rows, whose number is the index of the row; in a sequence, that of its first row."""
    first: dict[str, int] = {}
    for index, row in enumerate(rows):
        number = first.setdefault(row.place, index) if row.in_sequence else index
        yield Item(number, event=row.event, opens=row.opens, in_sequence=row.in_sequence, is_copied=row.is_copied)
