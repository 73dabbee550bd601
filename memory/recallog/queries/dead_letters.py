"""Dead letters: listing them, showing one with its bytes, and folding them again."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from recallog.components import Components
from recallog.queries import event_lookup
from recallog.reading.pasts import Pasts
from recallog.reading.projection_group import ProjectionGroup
from recallog.reading.query_router import QueryRouter
from recallog.reading.read_session import ReadSession
from recallog_projections.concurrency import gather_limited
from recallog_projections.tables import RowKey
from recallog_schemas import Position, codec, repeats
from recallog_schemas.errors import InvalidArgument, OutOfRange, RecallogError
from recallog_schemas.views import DeadLetter, DeadLetterDetail, FirstOfId, RetryReport
from recallog_streams import dead_letters, positions
from recallog_streams import rebuild as rebuilding
from recallog_streams.dead_letters import DeadLetterRow
from recallog_streams.ledgers.ledger import record_at
from recallog_streams.progress import Progress


async def list_dead_letters(components: Components, progress: Progress | None) -> list[DeadLetter]:
    """The dead letters of the active generations, after these have caught up with the ledger."""
    partitions = range(len(await components.ledger.ends()))
    found: list[DeadLetter] = []
    for views in components.groups():
        router = QueryRouter(components.ledger, views, progress)
        found += chain.from_iterable(await gather_limited(partial(_of_partition, router, views), partitions))
    return found


def following(letters: Sequence[DeadLetter], cursor: str | None) -> list[DeadLetter]:
    """The dead letters after a cursor, by position. Raises `InvalidArgument` for an invalid cursor."""
    last: tuple[Position, str] | None = None
    if cursor is not None:
        position, _, name = cursor.partition("/")
        try:
            last = Position.parse(position), name
        except OutOfRange:
            message = "cursor: is not the `next` of a page of dead letters"
            raise InvalidArgument(message, path="cursor", rule="cursor") from None
    by_position = sorted(letters, key=lambda letter: (letter.position, letter.views))
    return [letter for letter in by_position if last is None or (letter.position, letter.views) > last]


async def _of_partition(router: QueryRouter, views: ProjectionGroup, partition: int) -> list[DeadLetter]:
    async def letters(reading: ReadSession) -> list[DeadLetterRow]:
        return await dead_letters.all_dead_letters(reading.store, (await reading.read()).generation)

    return [_letter(views, partition, letter) for letter in await router.of_partition(partition, letters)]


async def show_dead_letter(components: Components, at: Position, progress: Progress | None) -> DeadLetterDetail:
    """The dead letter at a position, from the first group of views that has one there. Raises `OutOfRange`."""
    # Listed first, so that a ledger that has lost its end raises that error, and not that the position does not exist.
    letters = await list_dead_letters(components, progress)
    positions.check_position(await components.ledger.ends(), at.partition, at.offset, "position")
    data = await record_at(components.ledger, at.partition, at.offset)
    for letter in letters:
        if letter.position == at and data is not None:
            first = await _first_of_id(components, letter, data, progress) if letter.reason == "conflict" else None
            return DeadLetterDetail(letter=letter, content=_text(data), first=first)
    raise OutOfRange(f"the record at {at} is not a dead letter. List them: recallog dead-letters list", path="position")


async def _first_of_id(
    components: Components, letter: DeadLetter, data: bytes, progress: Progress | None
) -> FirstOfId | None:
    """The event with the id of a conflicting record; None if the views have changed meanwhile."""
    partition = letter.position.partition
    (views,) = (each for each in components.groups() if each.name == letter.views)
    router = QueryRouter(components.ledger, views, progress)
    found = await router.of_partition(
        partition, lambda read: event_lookup.find_offsets(read, letter.space, [letter.id])
    )
    offset = found.get(letter.id)
    first = None if offset is None else await record_at(components.ledger, partition, offset)
    if offset is None or first is None:
        return None
    differs_in = repeats.first_difference(codec.decode(first), codec.decode(data))
    return FirstOfId(position=Position(partition, offset), differs_in=differs_in, content=_text(first))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


async def retry_dead_letters(components: Components, progress: Progress | None) -> RetryReport:
    """Rebuild the views if that helps. Records are never applied out of order, so a retry is a rebuild from zero.

    Whether a rebuild helps is checked first, by folding the spaces of the dead letters in memory.
    """
    before = await list_dead_letters(components, progress)
    for views in components.groups():
        letters = [letter for letter in before if letter.views == views.name]
        if not any([await _would_fold(components, views, letter) for letter in letters]):
            continue
        await rebuilding.rebuild(views.name, views.builder, progress, accept=False)
    left = await list_dead_letters(components, progress)
    return RetryReport(items=tuple(left), applied=len(before) - len(left))


async def _would_fold(components: Components, views: ProjectionGroup, letter: DeadLetter) -> bool:
    data = await record_at(components.ledger, letter.position.partition, letter.position.offset)
    if data is None:
        return False
    try:
        event = codec.decode(data)
    except RecallogError:
        return False
    from_zero = replace(views, snapshot_records=0)  # snapshots contain the earlier failure
    reading = await Pasts(components.ledger).travel(from_zero, event.space, letter.position)
    key = dead_letters.key_of(letter.position.offset)
    (row,) = (await reading.read([RowKey(dead_letters.TABLE.name, "", "", key)])).rows
    return row is None


def _letter(views: ProjectionGroup, partition: int, letter: DeadLetterRow) -> DeadLetter:
    return DeadLetter(
        views=views.name,
        position=Position(partition, letter.offset),
        reason=letter.reason,
        detail=letter.detail,
        space=letter.space,
        id=letter.id,
        kind=letter.kind,
    )
