"""What agents agreed on, and who disagreed."""

from typing import TYPE_CHECKING, Unpack

from recallog.access import FacadePart
from recallog.models import consensus
from recallog.models.consensus.parameters import (
    Agreeing,
    Certainty,
    Conclusion,
    ConsensusId,
    ConsensusLimit,
    ConsensusOptions,
    DissentLimit,
    DissentOptions,
    DissentType,
    HashedTopic,
    MinConfidence,
    Objection,
    OneDissentType,
    Participating,
    Successor,
    Topic,
)
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import GenAi, Scope
from recallog.operations.parameters import At
from recallog_schemas import limits
from recallog_schemas.models.consensus import limits as consensus_limits

if TYPE_CHECKING:
    from recallog_schemas.models.consensus.views import (
        ConsensusFound,
        ConsensusPage,
        ConsensusView,
        DissentsView,
        DissentView,
    )


class Consensus(FacadePart):
    """What agents agreed on, and their dissents: `memory.consensus`.

    Both are events that all agents of the space see, unless they have an audience. Topics are compared by their words:
    topics with the same words, in any order and case, are one topic.
    """

    attribute = "consensus"

    @operation(
        example='recallog consensus record village baker "rate limiter design" "Use a token bucket." '
        "--participating baker --participating miller --agreeing baker --confidence 0.8",
        scope=Scope.PUBLISH,
        gen_ai=GenAi.CREATE,
        records="id",
    )
    async def record(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        topic: Topic,
        conclusion: Conclusion,
        *,
        confidence: Certainty,
        participating: Participating = (),
        agreeing: Agreeing = (),
        event_id: parameters.NewEventId = None,
        **options: Unpack[ConsensusOptions],
    ) -> "ConsensusView":
        """Record the conclusion of a debate, and return the consensus once the views have it.

        Unless `strength` is given, it follows from the share of the participating agents that agree: all unanimous,
        more than 80 % strong, 60 % moderate, 50 % weak, fewer split. If another consensus supersedes the one in
        `supersedes` at the same moment, this one is recorded without that link.

        Raises `Refused` if the agent sees no such consensus, if it is already superseded, or if some agents that see
        it would not see this one; nothing has changed then.
        """
        given = {
            "topic": topic,
            "conclusion": conclusion,
            "participating": participating,
            "agreeing": agreeing,
            "confidence": confidence,
            **options,
        }
        return await consensus.commands.record(self._access, space, agent, given, event_id)

    @operation(
        example='recallog consensus dissent village miller "It ignores bursts." --type risk_warning '
        '--topic "rate limiter design" --confidence 0.7',
        scope=Scope.PUBLISH,
        gen_ai=GenAi.CREATE,
        records="id",
    )
    async def dissent(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        content: Objection,
        *,
        type: DissentType,  # noqa: A002  # the name that its events have
        confidence: Certainty,
        event_id: parameters.NewEventId = None,
        **options: Unpack[DissentOptions],
    ) -> "DissentView":
        """Record an objection to a consensus, or to the one on a topic, whether or not there is one yet.

        Raises `Refused` if the agent sees no consensus with the id; nothing has changed then.
        """
        named = {("consensus" if name == "consensus_id" else name): value for name, value in options.items()}
        given = {"content": content, "type": type, "confidence": confidence, **named}
        return await consensus.commands.dissent(self._access, space, agent, given, event_id)

    @operation(
        example="recallog consensus supersede village baker c-1 c-2",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.UPDATE,
        records="id",
    )
    async def supersede(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        consensus_id: ConsensusId,
        by: Successor,
    ) -> "ConsensusView":
        """Let a consensus replace another one, and return the replaced one. Both stay, linked both ways.

        Raises `Refused` if the agent does not see both, if one of them is already superseded, or if some agents
        that see the first do not see the second; nothing has changed then.
        """
        return await consensus.commands.supersede(self._access, space, agent, consensus_id, by)

    @operation(
        example='recallog consensus find-similar village baker "rate limiter testing"',
        gen_ai=GenAi.SEARCH,
        records="found",
    )
    async def find_similar(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        topic: Topic,
        *,
        limit: ConsensusLimit = consensus_limits.SIMILAR_CONSENSUSES,
        min_confidence: MinConfidence = 0.0,
        **at: Unpack[At],
    ) -> "ConsensusFound":
        """The consensuses that an agent may see on similar topics, most similar first.

        The similarity is the share of common words among all words of both topics. It is above 0.1, and 1 for a topic
        with the same words. Superseded ones are found too: `superseded_by` names their successors.
        """
        return await self._access.of_agent(
            space, agent, at, consensus.queries.find_similar, topic, limit, min_confidence
        )

    @operation(example="recallog consensus list village baker", gen_ai=GenAi.SEARCH, records="consensuses")
    async def list(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        limit: parameters.ListLimit = limits.PAGE_ITEMS,
        cursor: parameters.Cursor = None,
        **at: Unpack[At],
    ) -> "ConsensusPage":
        """A page of the consensuses that an agent may see, by their ids: newest first, unless you chose the ids.

        `cursor` takes the `next` of a page and selects the page after it.
        """
        return await self._access.of_agent(space, agent, at, consensus.queries.page, limit, cursor)

    @operation(
        example='recallog consensus dissents village baker "rate limiter design" --type risk_warning',
        gen_ai=GenAi.SEARCH,
        records="dissents",
    )
    async def dissents(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        topic: HashedTopic,
        *,
        type: OneDissentType = None,  # noqa: A002  # the name that their events have
        limit: DissentLimit = limits.PAGE_ITEMS,
        **at: Unpack[At],
    ) -> "DissentsView":
        """The dissents on a topic that an agent may see, highest confidence first.

        These are the dissents that name the topic, or a consensus on it which the agent may see.
        """
        return await self._access.of_agent(space, agent, at, consensus.queries.dissents, topic, type, limit)
