"""The prompt of an agent, and why it shows an event or not."""

from typing import TYPE_CHECKING, Unpack

from recallog.access import FacadePart
from recallog.models import prompt
from recallog.models.prompt import parameters as prompt_parameters
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import RELEVANCE, TOKENS, GenAi
from recallog.operations.parameters import SalienceOptions
from recallog_schemas.errors import InvalidArgument

if TYPE_CHECKING:
    from recallog_schemas.models.prompt.views import ContextView, Explanation


class Prompts(FacadePart):
    """Prompts of agents, composed of what they remember."""

    @operation(
        example="recallog context village baker --budget-tokens 2000 > prompt.txt",
        uses_index=True,
        starts_index=("query", "scene"),
        asks=frozenset({RELEVANCE, TOKENS}),
        gen_ai=GenAi.SEARCH,
        records="entries",
    )
    async def context(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        scene: prompt_parameters.SceneText = None,
        query: prompt_parameters.MemoryQuery = None,
        components: prompt_parameters.Components = (),
        extra: prompt_parameters.Extra = None,
        step: prompt_parameters.Step = None,
        output_format: prompt_parameters.OutputFormat = None,
        budget_tokens: prompt_parameters.BudgetTokens = None,
        session: prompt_parameters.RecallSession = None,
        beside_messages: prompt_parameters.BesideMessages = False,
        **options: Unpack[SalienceOptions],
    ) -> "ContextView":
        """The prompt of an agent for a model, and whether a reflection is due.

        Memory is the agent's window or, with `use_salience`, the events salient for `query`. Other memories and entries
        related to `query` are recalled, as the agent's setting `rag` says; if the index is off, their words are
        compared. With the agent's setting `auto_recall`, what the user said last in `session` is the query instead, and
        documents are searched too. With `beside_messages`, no section repeats what `conversation.messages` returns of
        `session`. Erased events are left out. `components`, `extra`, `step` and `output_format` come last. When a
        reflection is due, the prompt asks for it. The prompt never exceeds `budget_tokens`: long lines are cut at a
        word, then lines are left out, the least important first; the memories recalled for a `query` stay longest.
        Tokens are estimated by script, unless the memory was opened with `count_tokens`.

        Raises `InvalidArgument`, which names the least budget, if the identity, the working memory, `components`,
        `step`, `output_format` and the beginning of a visitor's newest message do not fit: these are never left out.
        It is also raised for `beside_messages` without `session`: an agent may have several conversations at once.
        """
        if beside_messages and session is None:
            raise InvalidArgument("session: name one, for beside_messages", path="session", rule="missing")
        access, as_of = self._access, parameters.past_moment(options.get("as_of"))
        at = parameters.state(options)
        sections = [await section(access, space, agent, at) for section in access.sections]
        request = prompt.queries.ContextRequest(
            scene,
            query,
            extra,
            output_format,
            budget_tokens,
            options.get("turn"),
            as_of,
            step=step,
            components=prompt_parameters.add_headings(components),
            session=session,
            beside_messages=beside_messages,
            sections=[each for each in sections if each is not None],
        )
        return await access.of_agent(space, agent, options, prompt.queries.context, request, access.count_tokens)

    @operation(
        example='recallog explain village baker e-17 --query "who owes the miller?"',
        uses_index=True,
        starts_index=("query",),
        asks=frozenset({RELEVANCE}),
    )
    async def explain(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        event_id: parameters.EventId,
        *,
        query: prompt_parameters.MemoryQuery = None,
        top_k: parameters.SalientTopK = None,
        **options: Unpack[SalienceOptions],
    ) -> "Explanation":
        """Whether the prompt of an agent shows an event, where, and why: the terms of its salience, its rank, its age.

        The answer agrees with `context` without a budget, at the same checkpoint and with the same `query`, `turn` and
        `top_k`. If the views have dropped the event, the space is folded up to it, to count the newer events. The
        content of an event that the agent may not see is not returned.
        """
        self._access.check_events("top_k", top_k)
        as_of = parameters.past_moment(options.get("as_of"))
        request = prompt.queries.ContextRequest(query=query, turn=options.get("turn"), as_of=as_of, top_k=top_k)
        return await self._access.of_agent(space, agent, options, prompt.explain.explain, event_id, request)
