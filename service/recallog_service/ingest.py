"""Appends the items of a file to the ledger, in durable batches that can be repeated."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple, Self

from pydantic import Field

from recallog import Event, Memory, Position
from recallog_projections import notices
from recallog_projections.views.trust import SourceClasses
from recallog_schemas import codec, kinds, limits, triggers
from recallog_schemas.errors import IdConflict, InvalidInput, Rebuilding, RecallogError, StorageError, UnknownOutcome
from recallog_schemas.event import ahead_of
from recallog_schemas.kinds.trust import CLASSES, TRUST, SourceClass, is_untrusted
from recallog_schemas.repeats import compared_payload, first_difference
from recallog_schemas.timestamps import micros
from recallog_schemas.views import View
from recallog_service.formats import Format, Item, Options, derived_id
from recallog_service.formats.cutting import fit_item
from recallog_service.input_files import InputFile, input_files
from recallog_streams.ledgers.ledger import spans_of

BATCH_EVENTS = 500
"""Events per durable write."""
DEFAULT_OPTIONS = Options()
SHARED = frozenset({"agent.spoke", "agent.thought", "tool.used"})
"""Kinds that the agents of a person share, besides the kinds that every space shares."""
_OTHER_TIMES_SHOWN = 5
_CLASSES = SourceClasses()


class Problem(View):
    """An item that was refused or cut: the number of its line (or conversation), and a message that says where and
    why."""

    number: int
    message: str


class OtherTime(View):
    """An event whose time in the file differs from its time in the ledger. The ledger's time is used. `number` is the
    number of its line (or conversation)."""

    number: int
    id: str
    at: datetime
    position: Position
    at_in_ledger: datetime


class Ingested(View):
    """The result of an ingest. `known` counts the events that were already in the ledger.

    `ahead` counts the added events that are dated more than a day ahead; they do not set the clock.

    `other_times` of the known ones have another time in the ledger: usually a file that was exported again with other
    times. The first few are `first_other_times`. `left_out` counts the parts of the file that no event holds, by their
    type. `cut` lists the events whose texts were cut to the limit of an event. `scrubbed` counts what was replaced in
    the added ones, by its sort. `classes` counts the added ones by the source class of their kind, or a less trusted
    one that they state; their space may say more.
    """

    added: int = 0
    known: int = 0
    ahead: int = 0
    other_times: int = 0
    first_other_times: tuple[OtherTime, ...] = ()
    spaces: int = 0
    stopped: bool = False
    problems: tuple[Problem, ...] = Field(default=())
    left_out: dict[str, int] = Field(default_factory=dict)
    cut: tuple[Problem, ...] = Field(default=())
    scrubbed: dict[str, int] = Field(default_factory=dict)
    classes: dict[SourceClass, int] = Field(default_factory=dict)


class IngestedFile(Ingested):
    """The result of the ingest of one file: its name, the name of its format, and which spaces were chosen and why."""

    file: str
    read_as: str | None
    """None: the file could not be read."""
    chosen: str | None = None

    @property
    def kept_nothing(self) -> bool:
        """Whether the file has records but none of them is in the ledger as an event."""
        return not self.added + self.known and bool(self.left_out or self.problems)


class IngestedFiles(View):
    """The result of the ingest of several files, or of a folder.

    `unrecognised` are files of folders in unknown formats; they were not read. `blank` files have no records.
    """

    added: int
    known: int
    refused: int
    files: tuple[IngestedFile, ...]
    unrecognised: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()

    @classmethod
    def of(cls, files: Sequence[IngestedFile], unrecognised: Sequence[str], blank: Sequence[str]) -> Self:
        return cls(
            added=sum(each.added for each in files),
            known=sum(each.known for each in files),
            refused=sum(len(each.problems) for each in files),
            files=tuple(files),
            unrecognised=tuple(unrecognised),
            blank=tuple(blank),
        )


class _Waiting(NamedTuple):
    number: int
    event: Event
    appended: int | None
    """As in `Item`."""
    is_copied: bool = False
    scrubbed: Mapping[str, int] = MappingProxyType({})


class _Run:
    def __init__(
        self, memory: Memory, unit: str, acknowledged: Callable[[str, str], None] | None, *, shared: bool
    ) -> None:
        self._memory = memory
        self._unit = unit
        self._shared = shared
        self._acknowledged = acknowledged
        self.added = 0
        self.known = 0
        self.scrubbed: Counter[str] = Counter()
        self.classes: Counter[SourceClass] = Counter()
        self.ahead = self.other_times = 0
        self._views_readable = True
        self.first_other_times: list[OtherTime] = []
        self.spaces: set[str] = set()
        self.problems: list[Problem] = []
        self.openings: set[str] = set()
        """Ids of events that belong to the opening of their conversation."""
        self.in_sequence: set[int] = set()
        """Conversations whose rest is not added if one of their events is refused."""
        self.refused: set[int] = set()
        """The conversations among them with a refused event."""

    async def write(self, items: list[_Waiting]) -> bool:
        """Append events; False if one was refused. Events before it are in the ledger, events after it are not."""
        try:
            await self._append(items)
        except IdConflict:
            while items:
                together = self._first_together(items)
                number = items[0].number
                try:
                    await self._append(together)
                except IdConflict as error:
                    rest = await self._rest_of(items[0], error) if len(together) == 1 else None
                    if rest is not None:
                        self.known += 1
                        items[:1] = rest
                        continue
                    message = f"{self._unit} {number}: {error}"
                    if number in self.in_sequence:
                        self.refused.add(number)
                        message += f". The rest of this {self._unit} is not added. "
                        message += "If it is a different one, give it its own id"
                    self.problems.append(Problem(number=number, message=message))
                    items[:] = [item for item in items[len(together) :] if item.number not in self.refused]
                    return False
                del items[: len(together)]
        items.clear()
        return True

    def _first_together(self, items: list[_Waiting]) -> list[_Waiting]:
        """The first event, or the whole opening of a conversation that begins with it."""
        number = items[0].number
        opening = takewhile(lambda item: item.number == number and item.event.id in self.openings, items)
        return list(opening) or items[:1]

    async def _rest_of(self, item: _Waiting, error: IdConflict) -> list[_Waiting] | None:
        """The missing parts of an event that the ledger has; None if the ledger's event with this id is a different
        one."""
        if not error.position:
            return None
        position = Position.parse(error.position)
        first = codec.decode((await self._read_stored([position]))[position])
        first, _ = await self._memory.admin.scrub_event(first)
        rest = rest_of(first, item.event, is_copied=item.is_copied)
        return None if rest is None else [item._replace(event=each) for each in rest]

    async def _append(self, items: Sequence[_Waiting]) -> None:
        now = micros(datetime.now(UTC)) // 1_000
        events = [each.event for each in items]
        appended = [now if each.appended is None else each.appended for each in items]
        try:
            ends = await self._memory.admin.ledger_ends()
            before = await self._known_before(events)
            await self._check_copies(items, before)
            for space in {event.space for event in events} - self.spaces if self._shared else ():
                await share_space(self._memory, space)
            with notices.collect_notices():  # the report contains the number of times that are ahead
                positions = await self._memory.admin.restore_events(events, appended)
        except (StorageError, UnknownOutcome) as error:
            done = self.added + self.known
            raise type(error)(
                f"{error}. {done:,} earlier events are in the ledger; run the same ingest again for the rest"
            ) from None
        known: list[tuple[Position, int, Event]] = []
        added: dict[tuple[str, str], Position] = {}
        for position, item in zip(positions, items, strict=True):
            event = item.event
            key = event.space, event.id
            first = before.get(key) or added.get(key, position)
            if key in before or key in added or first.offset < ends[first.partition]:
                known.append((first, item.number, event))
            else:
                added[key] = first
                self.scrubbed.update(item.scrubbed)
                self.classes[_CLASSES.class_of(event)] += 1
                self.ahead += event.at > ahead_of(min(item.appended or now, now))
        self.added += len(added)
        self.known += len(known)
        self.spaces.update(event.space for event in events)
        await self._compare_times(known)
        if self._acknowledged is not None:
            for position, event in zip(positions, events, strict=True):
                self._acknowledged(str(position), event.id)

    async def _check_copies(self, items: Sequence[_Waiting], before: Mapping[tuple[str, str], Position]) -> None:
        """Raise `IdConflict` for a copy that differs from its first event: a ledger that stores repeats would take
        both."""
        copies = [(before.get((each.event.space, each.event.id)), each.event) for each in items if each.is_copied]
        stored = await self._read_stored({position for position, _ in copies if position is not None})
        for position, event in copies:
            if position is not None and (path := first_difference(codec.decode(stored[position]), event)):
                raise IdConflict("a copy has other content", path=path, position=str(position))

    async def _known_before(self, events: Sequence[Event]) -> dict[tuple[str, str], Position]:
        """`Admin.known_positions`; empty if the views cannot be read, because an ingest does not need them."""
        if not self._views_readable:
            return {}
        try:
            return await self._memory.admin.known_positions(events)
        except Rebuilding:
            return {}
        except RecallogError:
            self._views_readable = False
            return {}

    async def _compare_times(self, known: Sequence[tuple[Position, int, Event]]) -> None:
        """Count the events with another time in the ledger. Conflicts in a ledger that stores repeats are not counted
        here."""
        stored = await self._read_stored({position for position, _, _ in known})
        for position, number, event in known:
            data = stored[position]
            if data == codec.encode(event):
                continue
            first = codec.decode(data)
            if first.at == event.at or first_difference(first, event):
                continue
            self.other_times += 1
            if len(self.first_other_times) < _OTHER_TIMES_SHOWN:
                self.first_other_times.append(
                    OtherTime(number=number, id=event.id, at=event.at, position=position, at_in_ledger=first.at)
                )

    async def _read_stored(self, positions: Collection[Position]) -> dict[Position, bytes]:
        """The records at `positions`, and the records between them."""
        offsets = defaultdict[int, list[int]](list)
        for position in positions:
            offsets[position.partition].append(position.offset)
        found: dict[Position, bytes] = {}
        for partition, of_partition in offsets.items():
            for first, end in spans_of(of_partition):
                until = Position(partition, end)
                async for batch in self._memory.admin.records(Position(partition, first), until=until):
                    found |= {Position(partition, offset): data for offset, data in batch.records}
        return found


async def ingest(
    memory: Memory,
    items: Iterable[Item],
    *,
    unit: str = "line",
    batch: int,
    keep_going: bool = False,
    shared: bool = False,
    trust: SourceClass | None = None,
    seen: set[bytes] | None = None,
    progress: Callable[[int, int], None] | None = None,
    acknowledged: Callable[[str, str], None] | None = None,
) -> Ingested:
    """Append all events of `items`. Without `keep_going` it stops at the first refused item, after appending earlier
    ones.

    `unit` names what `Item.number` counts, for messages. `shared`: as `share_space`, before the first event of a space.
    `trust` is the source class that the events state, by default that of their items. From tools and imports only
    memories are taken (`Kind.is_memory`), and no answers to triggers. `seen` are the digests of events that an earlier
    ingest has written, which are known; it gets those of this one. `acknowledged` is called with the position and the
    id of each event once it is durable.
    """
    run = _Run(memory, unit, acknowledged, shared=shared)
    digests: list[bytes] = []
    # The other half is room for an opening that crosses the end of the batch.
    batch = min(batch, limits.APPEND_EVENTS_MAX // 2)
    waiting: list[_Waiting] = []
    left_out: Counter[str] = Counter()
    cut: list[Problem] = []
    stopped = False

    async def flush() -> bool:
        while waiting:
            if not await run.write(waiting) and not keep_going:
                return False
            if progress is not None:
                progress(run.added + run.known, run.added + run.known)
        return True

    for item in items:
        if item.number in run.refused:
            continue
        if item.left_out is not None:
            left_out[item.left_out] += 1
            continue
        if item.event is not None:
            event, counts = await memory.admin.scrub_event(item.event)
            if (stated := trust or item.trust) is not None:
                if is_untrusted(stated) and not _is_memory(event):
                    left_out[event.kind] += 1
                    continue
                event = with_class(event, stated)
            item = fit_item(item, event, unit)
        if item.cut is not None:
            cut.append(Problem(number=item.number, message=item.cut))
        if item.event is not None:
            if seen is not None:
                digests.append(blake2b(codec.encode(item.event), digest_size=16).digest())
                if digests[-1] in seen:
                    run.known += 1
                    continue
            waiting.append(_Waiting(item.number, item.event, item.appended, item.is_copied, counts))
            if item.opens:
                run.openings.add(item.event.id)
            if item.in_sequence:
                run.in_sequence.add(item.number)
            if len(waiting) < (limits.APPEND_EVENTS_MAX if item.opens else batch):
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
    if seen is not None and not stopped:
        seen.update(digests)
    return Ingested(
        added=run.added,
        known=run.known,
        ahead=run.ahead,
        other_times=run.other_times,
        first_other_times=tuple(run.first_other_times),
        spaces=len(run.spaces),
        stopped=stopped,
        problems=tuple(run.problems),
        left_out=dict(left_out.most_common()),
        cut=tuple(cut),
        scrubbed=dict(run.scrubbed),
        classes={name: run.classes[name] for name in CLASSES if name in run.classes},
    )


def with_class(event: Event, trust: SourceClass) -> Event:
    """The event with its source class, unless its kind has a field of this name, as a space has."""
    if TRUST in kinds.kind_of(event.kind).payload.model_fields:
        return event
    return event.model_copy(update={"payload": {**event.payload, TRUST: trust}})


def _is_memory(event: Event) -> bool:
    """Whether an event only says what happened or is known, and does not claim to be made by work of the memory."""
    return kinds.kind_of(event.kind).is_memory(event.payload) and not triggers.claims_answer(event)


def rest_of(first: Event, event: Event, *, is_copied: bool) -> list[Event] | None:
    """The missing parts of an event whose id is already in the ledger, for `first`; None if that is a different event.

    A copy may have another session and other readers, and its text may be longer: the additional text becomes an event
    of its own.
    """
    if not first_difference(first, event):
        return []
    known, text = first.payload.get("text"), event.payload.get("text")
    is_same = compared_payload(first) | {"text": text} == compared_payload(event) | {"text": text}
    if not is_copied or first.kind != event.kind or not is_same:
        return None
    if known == text:
        return []
    if not isinstance(known, str) or not isinstance(text, str):
        return None
    if known.startswith(text) or (text.startswith(known) and not text[len(known) :].strip()):
        return []
    if not text.startswith(known):
        return None
    id_ = derived_id(event.space, None, [event.id, len(known)])
    return [event.model_copy(update={"id": id_, "payload": {**event.payload, "text": text[len(known) :]}})]


async def share_space(memory: Memory, space: str, kinds: Set[str] = SHARED, *, event_id: str | None = None) -> None:
    """Let all agents of a space see each other's events of `kinds` from now on.

    With an `event_id` this is done once, so that later settings of the space are not overridden. Raises `IdConflict` if
    it was done with other `kinds`.
    """
    shared = {each.name for each in (await memory.kinds(space)).kinds if each.shared}
    if not shared >= kinds:
        await memory.configure_space(space, event_id=event_id, shared_kinds=sorted(shared | kinds))


async def ingest_paths(
    memory: Memory, paths: Sequence[str], options: Options = DEFAULT_OPTIONS, *, shared: bool = False
) -> IngestedFiles:
    """Read files, folders and archives into a memory, as `recallog ingest` does for several files.

    Malformed parts, files that cannot be read, and unfinished last lines are left out and reported: the next call adds
    what has been completed since. Raises `InvalidArgument` for a path that does not exist.
    """
    inputs = input_files(paths)
    results = [unreadable_file(name, None, error) for name, error in inputs.refused.items()]
    for file in inputs.files:
        try:
            results.append(await ingest_file(memory, file, options, batch=BATCH_EVENTS, keep_going=True, shared=shared))
        except InvalidInput as error:
            results.append(unreadable_file(file.name, file.format, error))
    return IngestedFiles.of(results, inputs.unrecognised, inputs.blank)


def unreadable_file(name: str, known: Format | None, error: InvalidInput) -> IngestedFile:
    """The result of a file among others that cannot be read."""
    problem = Problem(number=0, message=str(error))
    return IngestedFile(file=name, read_as=known and known.name, problems=(problem,), stopped=True)


async def ingest_file(
    memory: Memory,
    file: InputFile,
    options: Options,
    *,
    batch: int,
    keep_going: bool = False,
    shared: bool = False,
    trust: SourceClass | None = None,
    seen: set[bytes] | None = None,
    note: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    acknowledged: Callable[[str, str], None] | None = None,
) -> IngestedFile:
    """`ingest` of one file. Raises `InvalidEvent` for a file that its format cannot read.

    `note` is called with the chosen spaces, and the reason, before the first event is written.
    """
    reading = file.format.read(file.source(), options)
    if reading.note is not None and note is not None:
        note(reading.note)
    result = await ingest(
        memory,
        reading,
        unit=reading.unit,
        batch=batch,
        keep_going=keep_going,
        shared=shared,
        trust=trust,
        seen=seen,
        progress=progress,
        acknowledged=acknowledged,
    )
    return IngestedFile(file=file.name, read_as=file.format.name, chosen=reading.note, **result.model_dump())
