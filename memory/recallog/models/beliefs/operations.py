"""Reflections that are due, the beliefs that answer them, and how beliefs relate."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Unpack

from recallog.access import FacadePart
from recallog.models import beliefs
from recallog.models.beliefs import parameters as beliefs_parameters
from recallog.operations import parameters
from recallog.operations.facade import Facade, operation
from recallog.operations.operation import GenAi
from recallog.operations.parameters import At

if TYPE_CHECKING:
    from recallog_schemas.models.beliefs.views import BeliefGraph, BeliefsView, ContradictionsView, ReflectionView


class Beliefs(FacadePart):
    """The beliefs of agents, and which beliefs support or contradict each other: `memory.beliefs`.

    `memory.beliefs(space, agent)` returns the beliefs of an agent. A belief with subjects (`about` of
    `agent.reflected`) is linked with others on the same subjects.
    """

    attribute = "beliefs"

    @operation(example="recallog beliefs village widow --reader smith", gen_ai=GenAi.SEARCH, records="beliefs")
    async def __call__(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        reader: beliefs_parameters.Reader = None,
        **at: Unpack[At],
    ) -> "BeliefsView":
        """The newest 64 beliefs of an agent, oldest first, each with the events that it is based on."""
        return await self._access.of_agent(space, agent, at, beliefs.queries.beliefs_of, reader)

    @operation(
        example="recallog beliefs village widow --graph",
        command="beliefs --graph",
        gen_ai=GenAi.SEARCH,
        records="beliefs",
    )
    async def graph(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        about: beliefs_parameters.About = None,
        **at: Unpack[At],
    ) -> "BeliefGraph":
        """The beliefs with subjects that an agent may see, of all agents, and how they relate.

        On each subject the newest 16 are linked: a belief supersedes, contradicts, disputes or supports an earlier one.
        A belief is unfounded if an event or entry that it is based on was erased, retracted or corrected. The views
        retain the newest 256 shared beliefs of a space, and 256 others that the agent may see.
        """
        return await self._access.of_agent(space, agent, at, beliefs.graph.show_graph, about)

    @operation(
        example="recallog beliefs village widow --contradictions",
        command="beliefs --contradictions",
        gen_ai=GenAi.SEARCH,
        records="contradictions",
    )
    async def contradictions(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        about: beliefs_parameters.About = None,
        **at: Unpack[At],
    ) -> "ContradictionsView":
        """The beliefs that an agent may see and that are for and against the same subject, newest first.

        Two beliefs of one agent contradict each other, and those of two agents dispute each other. Superseded beliefs
        are left out. See `beliefs.graph`.
        """
        return await self._access.of_agent(space, agent, at, beliefs.graph.list_contradictions, about)


class Reflections(FacadePart):
    """When reflections of agents are due."""

    facades: ClassVar[Mapping[str, type[Facade]]] = {Beliefs.attribute: Beliefs}

    @operation(example="recallog reflection village widow")
    async def reflection(self, space: parameters.Space, agent: parameters.Agent, **at: Unpack[At]) -> "ReflectionView":
        """Whether a reflection of an agent is due: since which position, after how many events, and on which.

        In Python `answer(belief)` of the view makes the event that answers it.
        """
        return await self._access.of_agent(space, agent, at, beliefs.queries.reflection_of)
