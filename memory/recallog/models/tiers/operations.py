"""Tiers: how fast entries age, which of them answer a question, and the plans that move and archive them."""

from typing import TYPE_CHECKING, Unpack

from recallog.access import FacadePart
from recallog.models import tiers as model
from recallog.models.long_term import parameters as long_term_parameters
from recallog.models.tiers import parameters as tiers_parameters
from recallog.models.tiers.parameters import OutcomeOptions
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import GenAi, Scope
from recallog.operations.parameters import At
from recallog_schemas.models.tiers import limits as tiers_limits

if TYPE_CHECKING:
    from recallog_schemas.models.long_term.views import EntriesChange
    from recallog_schemas.models.tiers.views import Consolidation, TierEntryFound, TierHits, TierPressure, TierStats


class Tiers(FacadePart):
    """Entries that age: `memory.tiers`.

    An entry that is retained with a tier (fast, medium, slow or glacial) loses importance with time. A plan promotes it
    when it is read often, surprises or succeeds, demotes it when it is not read or has lost its importance, and in the
    end archives it. An entry without a tier does not age. `agent.configured {tiers}` has the thresholds.
    """

    attribute = "tiers"

    @operation(
        example='recallog tiers retrieve village baker "what does the miller want" --strategy fast_first',
        uses_index=True,
        starts_index=("query",),
        gen_ai=GenAi.SEARCH,
        records="hits",
    )
    async def retrieve(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        query: parameters.RecallQuery,
        *,
        tiers: parameters.SomeTiers = None,
        limit: tiers_parameters.RetrievedLimit = tiers_limits.RETRIEVED,
        min_similarity: tiers_parameters.RetrievedSimilarity = tiers_limits.RETRIEVED_SIMILARITY,
        strategy: tiers_parameters.TierStrategy = "weighted",
        now: tiers_parameters.QueryTime = None,
        filter: parameters.MemoryFilter = None,  # noqa: A002
        **at: Unpack[At],
    ) -> "TierHits":
        """The entries that an agent may read and that match a question.

        The strategy "weighted" ranks by the similarity times a weight of the tier, "fast_first" shows entries of faster
        tiers before those of slower ones, and "comprehensive" ranks by similarity alone. Entries without a tier rank
        with those of SLOW; they are left out if `tiers` is given. The entries that it shows count as read. While the
        index is off, starting or down, the words of the newest 1,000 entries are compared instead; `relevance_by` of
        the answer says which.
        """
        when, has_fields = parameters.moment(now), await self._access.passes(space, filter, at)
        asked = model.queries.TierQuery(query, tiers, limit, min_similarity, strategy, when, has_fields)
        return await self._access.of_agent(space, agent, at, model.queries.retrieve, asked)

    @operation(example="recallog tiers entry village baker l-7", gen_ai=GenAi.SEARCH, records="found")
    async def entry(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entry_id: long_term_parameters.EntryId,
        *,
        now: tiers_parameters.QueryTime = None,
        **at: Unpack[At],
    ) -> "TierEntryFound":
        """An entry that carries a tier: its current importance, and the values by which a plan will judge it."""
        when = parameters.moment(now)
        return await self._access.of_agent(space, agent, at, model.queries.entry, entry_id, when)

    @operation(
        example="recallog tiers change village baker l-7 slow",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.UPDATE,
        records="ids",
    )
    async def change(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entry_id: long_term_parameters.EntryId,
        tier: tiers_parameters.NewTier,
        *,
        reason: long_term_parameters.ChangeReason = None,
        event_id: parameters.NewEventId = None,
    ) -> "EntriesChange":
        """Move an entry of the agent to another tier, or give it one. An archived entry is restored in this tier.

        If it is in the tier already, nothing is written, and `changed` of the answer is false.

        Raises `Refused` as `long_term.restore` does; nothing has changed then.
        """
        payload = {"entry": entry_id, "to": tier, "reason": reason}
        return await model.commands.change(self._access, space, agent, payload, event_id)

    @operation(
        example='recallog tiers report-outcome village baker l-7 --success --cause "the dough rose"',
        scope=Scope.PUBLISH,
        tool="report_outcome",
        gen_ai=GenAi.UPDATE,
        records="ids",
    )
    async def report_outcome(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entry_ids: long_term_parameters.EntryIds,
        *,
        event_id: parameters.NewEventId = None,
        **options: Unpack[OutcomeOptions],
    ) -> "EntriesChange":
        """Report the outcome of using entries that the agent may read. Plans promote entries that succeed or surprise.

        An entry without a tier, or that the agent may not read, is left out and named in `refused`.

        Raises `Refused` if no entry is left; nothing has changed then.
        """
        return await model.commands.report_outcome(self._access, space, agent, entry_ids, event_id, options)

    @operation(
        example="recallog tiers consolidate village baker",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.UPDATE,
        records="moves",
    )
    async def consolidate(
        self, space: parameters.Space, agent: parameters.Agent, *, now: tiers_parameters.PlanTime = None
    ) -> "Consolidation":
        """Move and archive the entries of an agent that carry a tier, and keep a summary of the archived ones.

        An entry moves by one tier at most. Entries that another process changes meanwhile are left unchanged. If a plan
        was interrupted, it is completed first. If nothing has to be changed, nothing is written.
        """
        return await model.commands.consolidate(self._access, space, agent, parameters.moment(now))

    @operation(example="recallog tiers stats village baker")
    async def stats(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        now: tiers_parameters.QueryTime = None,
        **at: Unpack[At],
    ) -> "TierStats":
        """How many entries of an agent are in each tier, how they have moved, and how often it finds what it seeks."""
        when = parameters.moment(now)
        return await self._access.of_agent(space, agent, at, model.queries.stats, when)

    @operation(example="recallog tiers pressure village baker")
    async def pressure(self, space: parameters.Space, agent: parameters.Agent, **at: Unpack[At]) -> "TierPressure":
        """How full the tiers of an agent are. A plan archives the entries of a tier beyond its limit."""
        return await self._access.of_agent(space, agent, at, model.queries.pressure)
