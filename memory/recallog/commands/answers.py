"""The parts of a memory that publishing an answer needs: the answer that was begun, ids that are taken, and the
ledger."""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from recallog.access import MemoryAccess
from recallog.operations.parameters import At
from recallog.queries import due, event_lookup
from recallog_projections.views.due import Work
from recallog_schemas import Event, Position
from recallog_streams.answers import Answer

if TYPE_CHECKING:
    from recallog.reading.projection_group import ProjectionGroup


class AnsweredMemory:
    """The triggers of one memory and their answers (`answering.AnswerMemory`)."""

    def __init__(self, access: MemoryAccess) -> None:
        self._access = access

    @cached_property
    def _groups(self) -> "list[ProjectionGroup]":
        """The groups of projections that make triggers due, the built-in views first."""
        return self._access.components.due_groups()

    async def standing(self, space: str, trigger: str) -> Work | None:
        """The row of `due.now` of a trigger, possibly of a user's projection; None if it is not, or no longer, due."""
        query = partial(due.standing, space=space, trigger=trigger)
        for views in self._groups:
            found = await self._access.router.of_space(space, query, views=views)
            if found is not None:
                return found
        return None

    async def begun(self, space: str, trigger: str) -> Answer | None:
        return await self._access.of_space(space, At(), due.begun, space, trigger)

    async def is_taken(self, space: str, trigger: str, id_: str) -> bool:
        ledger = self._access.components.ledger
        if not await self._access.of_space(space, At(), event_lookup.offsets_of, ledger, space, [id_]):
            return False
        # Checked afterwards: an event that has closed the trigger has then closed it in these views too.
        if await self._access.of_space(space, At(), due.still_due, [(space, trigger)]):
            return True
        own = self._groups[1:]
        for views in own:
            await self._access.catch_up(views, ledger.partition_of(space))
        return bool(own) and await self.standing(space, trigger) is not None

    async def publish(self, events: Sequence[Event], keys: Collection[str] = ()) -> Sequence[Position]:
        return await self._access.append(events, keys=keys)

    async def keys_at(self, space: str, offsets: Iterable[int]) -> Collection[str]:
        return await self._access.keys_at(space, offsets)
