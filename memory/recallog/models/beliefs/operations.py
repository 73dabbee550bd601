"""Reflections that are due, and the beliefs that answer them."""

from typing import TYPE_CHECKING, Unpack

from recallog.access import FacadePart
from recallog.models import beliefs
from recallog.models.beliefs import parameters as beliefs_parameters
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import GenAi
from recallog.operations.parameters import At

if TYPE_CHECKING:
    from recallog_schemas.models.beliefs.views import BeliefsView, ReflectionView


class Beliefs(FacadePart):
    """What agents have come to believe, and when a reflection is due."""

    @operation(example="recallog reflection village widow")
    async def reflection(self, space: parameters.Space, agent: parameters.Agent, **at: Unpack[At]) -> "ReflectionView":
        """Whether a reflection of an agent is due: since which position, after how many events, and on which.

        In Python `answer(belief)` of the view makes the event that answers it.
        """
        return await self._access.of_agent(space, agent, at, beliefs.queries.reflection_of)

    @operation(example="recallog beliefs village widow --reader smith", gen_ai=GenAi.SEARCH, records="beliefs")
    async def beliefs(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        reader: beliefs_parameters.Reader = None,
        **at: Unpack[At],
    ) -> "BeliefsView":
        """The newest 64 beliefs of an agent, oldest first, each with the events that it is based on."""
        return await self._access.of_agent(space, agent, at, beliefs.queries.beliefs_of, reader)
