"""The stream of an agent: its own memories, its insights, and summaries of a span of time."""

from typing import TYPE_CHECKING, Unpack

from recallog.access import FacadePart
from recallog.models import stream
from recallog.models.long_term import parameters as long_term_parameters
from recallog.models.stream import parameters as stream_parameters
from recallog.models.tiers import parameters as tiers_parameters
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import GenAi, Scope
from recallog.operations.parameters import At
from recallog_schemas.models.stream import limits as stream_limits

if TYPE_CHECKING:
    from recallog_schemas.models.stream.views import InsightsView, StreamRecall, StreamSummary

_SUMMARY = "summary"
_SOURCE = "stream"


class Stream(FacadePart):
    """What happened to an agent in particular: `memory.stream`.

    The stream of an agent has the newest of its own events, and of the events addressed to it, that the views retain.
    Reflections count more than observations, and insights count most. A reflection marks an insight by a line that
    begins with `INSIGHT:`, or lists it in `insights`.
    """

    attribute = "stream"

    @operation(
        example='recallog stream recall village baker "nine sacks"',
        gen_ai=GenAi.SEARCH,
        records="memories",
    )
    async def recall(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        query: stream_parameters.StreamQuery = None,
        *,
        limit: stream_parameters.StreamLimit = stream_limits.STREAM_MEMORIES,
        now: tiers_parameters.QueryTime = None,
        **at: Unpack[At],
    ) -> "StreamRecall":
        """The memories of an agent's stream that score best, best first.

        The score is 0.3 recency (halved every 24 hours), 0.3 class (observation 0.5, reflection 0.7, insight 0.9) and
        0.4 relevance, the share of the distinct words of `query` that a memory has; 0.5 without `query`.
        """
        when = parameters.moment(now)
        return await self._access.of_agent(space, agent, at, stream.queries.recall, query, limit, when)

    @operation(
        example="recallog stream insights village baker",
        gen_ai=GenAi.SEARCH,
        records="insights",
    )
    async def insights(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        limit: stream_parameters.InsightsLimit = stream_limits.INSIGHTS_KEPT,
        **at: Unpack[At],
    ) -> "InsightsView":
        """The newest insights of an agent, oldest first. The views retain 64."""
        return await self._access.of_agent(space, agent, at, stream.queries.newest_insights, limit)

    @operation(
        example="recallog stream summarize village baker 2026-03-01T00:00:00Z 2026-03-02T00:00:00Z",
        scope=Scope.PUBLISH,
        gen_ai=GenAi.SEARCH,
        records="sources",
    )
    async def summarize(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        since: stream_parameters.SpanStart = None,
        until: stream_parameters.SpanEnd = None,
        *,
        store: stream_parameters.StoreSummary = False,
        entry_id: long_term_parameters.NewEntryId = None,
        after: parameters.After = None,
    ) -> "StreamSummary":
        """Summarise what happened to an agent in a span of time, from `since` on and before `until`.

        The summary is made without a model: how many memories there are, and the first sentences of the three most
        important ones, by the importance of their kinds; of equally important ones, those that say most. Nothing is
        written unless `store` keeps it as an entry of the type summary, which names the events as its sources and the
        span as `range` in its metadata. That entry is visible only to the agent, even if the space shares its entries.
        """
        first, end = parameters.moment(since), parameters.moment(until)
        found = await self._access.of_agent(space, agent, At(after=after), stream.queries.summarize, first, end)
        if not store or not found.memories:
            return found
        span = {
            name: None if moment is None else moment.isoformat() for name, moment in (("since", first), ("until", end))
        }
        stored = await self._access.memory.long_term.retain(
            space,
            agent,
            found.text,
            type=_SUMMARY,
            entry_id=entry_id,
            source=_SOURCE,
            based_on=found.sources,
            audience=(agent,),
            metadata={"range": span, "memories": found.memories},
        )
        return found.model_copy(update={"stored": stored})
