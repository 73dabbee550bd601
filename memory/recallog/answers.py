"""How a question gets its answer: from the live views, brought up to the ledger's end first, or from the past."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from recallog.reading import Reading
from recallog.time_travel import AsOf, check_size, travel
from recallog.views import Views
from recallog.wiring import Parts
from recallog_projections import activity
from recallog_projections.projection import Need
from recallog_schemas import Position, codec
from recallog_schemas.errors import InvariantViolation, Parked, Rebuilding
from recallog_streams import dead_letters, generations
from recallog_streams.projector import Progress

Answer = TypeVar("Answer")

_READ_TRIES = 5


class Answers:
    """Finds the views to answer from. A question is a function of one `Reading`, live and past alike."""

    def __init__(self, parts: Parts, progress: Progress | None) -> None:
        self._parts = parts
        self._progress = progress

    async def of_space(
        self,
        space: str,
        question: Callable[[Reading], Awaitable[Answer]],
        after: Position | None = None,
        as_of: AsOf | None = None,
        views: Views | None = None,
    ) -> Answer:
        """The answer of `views` (default: the built-in ones), with `after` decided, or as of a moment of the past."""
        codec.check_name(space)
        await self._parts.ledger.open()
        partition = self._parts.ledger.partition_of(space)
        if as_of is not None:
            return await question(await self._travel(space, as_of))
        if after is not None:
            generations.check_position(await self._parts.ledger.ends(), after.partition, after.offset)

        async def checked(reading: Reading) -> Answer:
            if after is not None:
                await _refuse_parked(reading, after)
            return await question(reading)

        return await self.of_partition(partition, checked, views, after)

    async def of_partition(
        self,
        partition: int,
        question: Callable[[Reading], Awaitable[Answer]],
        views: Views | None = None,
        after: Position | None = None,
    ) -> Answer:
        """The answer of the active generation; again, where a cutover took it away in between."""
        views = views or self._parts.views
        for tries_left in reversed(range(_READ_TRIES)):
            reading = await views.serving.reading(partition, after, self._progress)
            try:
                return await question(reading)
            except Rebuilding as error:
                if not tries_left:
                    raise await views.serving.unavailable(partition, error) from error
        raise InvariantViolation("the last try neither answered nor raised")

    async def of_all(self, question: Callable[[Reading], Awaitable[list[Answer]]]) -> list[Answer]:
        """The answers of all partitions, one after the other."""
        partitions = range(len(await self._parts.ledger.ends()))
        return [item for partition in partitions for item in await self.of_partition(partition, question)]

    async def _travel(self, space: str, as_of: AsOf) -> Reading:
        ledger, views = self._parts.ledger, self._parts.views

        async def events(reading: Reading) -> int:
            row = (await reading.look([Need(activity.SPACES.name, space)])).row(activity.SPACES, space)
            return row.events if row else 0

        known = await self.of_partition(ledger.partition_of(space), events)
        check_size(space, known)
        return await travel(ledger, views.projections, space, as_of, self._progress)


async def _refuse_parked(reading: Reading, after: Position) -> None:
    key = dead_letters.key_of(after.offset)
    look = await reading.look([Need(dead_letters.TABLE.name, "", "", key)])
    letter = look.row(dead_letters.TABLE, "", "", key)
    if letter is not None:
        raise Parked(
            f"the record at {after} is a dead letter ({letter.reason}: {letter.detail}) and will show in no view. "
            f"See it: recallog dead-letters show {after}"
        )
