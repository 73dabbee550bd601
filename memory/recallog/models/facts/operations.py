"""Facts that are drawn from texts, and answers that are drawn from facts: further operations on entries."""

from typing import TYPE_CHECKING, Unpack

from recallog.models import facts
from recallog.models.facts import parameters as facts_parameters
from recallog.models.long_term.operations import Entries
from recallog.models.long_term.parameters import ExtractOptions, OneType
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import GenAi, Scope
from recallog.operations.parameters import At
from recallog_schemas import limits
from recallog_schemas.models.facts import limits as facts_limits

if TYPE_CHECKING:
    from recallog_schemas.models.facts.views import EntityFound, EntityGraph
    from recallog_schemas.models.long_term.views import ExtractedFacts, Synthesis


class LongTerm(Entries):
    """Entries that agents keep on purpose, and facts that are drawn from texts: `memory.long_term`.

    An entry belongs to one agent, and only this agent changes it. Equal texts are kept once, at most 5 entries of an
    agent are pinned, and an agent that was granted units pays for what it retains. The views decide this in the order
    of the ledger, for all writers.
    """

    @operation(
        example='recallog long-term extract-facts village baker "Acme Corp prefers React." --source "a call"',
        scope=Scope.PUBLISH,
        gen_ai=GenAi.UPSERT,
        records="retained",
    )
    async def extract_facts(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        text: facts_parameters.ExtractedText,
        *,
        source: facts_parameters.FactSource = None,
        **options: Unpack[ExtractOptions],
    ) -> "ExtractedFacts":
        """Draw the facts from a text, and retain each as an entry of the agent, who is the speaker.

        By default a rule for English and Chinese draws them; if `RECALLOG_MODEL` names a model,
        the text is sent to it. If it fails, nothing is retained, and `failed` of the answer says why. With
        `agent.configured {extract_facts: true}` a reactor does this for each turn of the agent that ends.

        Raises `ModelMisconfigured`.
        """
        from recallog.models.facts.extractor import ExtractionRequest, Utterance

        request = ExtractionRequest(space, agent, [Utterance(text, agent)])
        return await facts.commands.extract(
            self.retain, self._access.asker(facts.askers.EXTRACTOR), request, source, options
        )

    @operation(
        example='recallog long-term reflect village baker "What does Acme Corp prefer?"',
        scope=Scope.PUBLISH,
        gen_ai=GenAi.SEARCH,
        records="sources",
    )
    async def reflect(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        question: parameters.RecallQuery,
        *,
        store: facts_parameters.StoreAnswer = False,
        after: parameters.After = None,
    ) -> "Synthesis":
        """Answer a question from the 10 best-matching facts and experiences that an agent may read.

        By default the answer quotes their first sentences; if `RECALLOG_MODEL` names a model,
        they are sent to it. If none matches, the answer is "No memories to reflect on." Nothing is written unless
        `store` keeps the answer as an insight that is made from them.

        Raises `ModelFailed`, and `ModelMisconfigured`.
        """

        asked = facts.commands.Question(space, agent, question, store, after)
        return await facts.commands.reflect(
            self._access.memory.recall, self.retain, self._access.asker(facts.askers.SYNTHESIZER), asked
        )

    @operation(example="recallog long-term entities village baker --min-entries 2", gen_ai=GenAi.SEARCH)
    async def entities(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        type: OneType = None,  # noqa: A002  # the name that entries and their events have
        min_entries: facts_parameters.MinEntries = 1,
        limit: facts_parameters.GraphLimit = facts_limits.GRAPH_ENTITIES_SHOWN,
        **at: Unpack[At],
    ) -> "EntityGraph":
        """The entities that an agent reads about in most entries, and the links between them.

        An entity is a quoted phrase, a run of capitalised words, or what an entry states as its entity. With `type`
        only the newest 1,000 of the agent's own entries of that type count, and only the strongest 1,000 entities.
        The strongest 1,000 links are shown. Of a graph with more than 10,000 entities, the first ones by name are
        considered.
        """
        query = facts.graph.GraphQuery(type, min_entries, limit)
        return await self._access.of_agent(space, agent, at, facts.graph.strongest, query)

    @operation(example='recallog long-term about village baker "Acme Corp"', gen_ai=GenAi.SEARCH, records="entries")
    async def about(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entity: facts_parameters.AboutEntity,
        *,
        limit: facts_parameters.AboutLimit = limits.PAGE_ITEMS,
        **at: Unpack[At],
    ) -> "EntityFound":
        """The entries that name an entity and that an agent may read, newest first, and the other entities that they
        name.

        The views retain the newest 256 entries of each entity, and its 64 strongest links.
        """
        return await self._access.of_agent(space, agent, at, facts.graph.about, entity, limit)
