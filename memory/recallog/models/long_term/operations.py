"""The entries of long-term memory, which agents keep on purpose."""

from typing import TYPE_CHECKING, Unpack

from recallog.access import FacadePart
from recallog.models import long_term
from recallog.models.long_term import parameters as long_term_parameters
from recallog.models.long_term.parameters import ExperienceOptions, RetainOptions, UpdateOptions
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import GenAi, Scope
from recallog.operations.parameters import At
from recallog_schemas import limits
from recallog_schemas.models.long_term import limits as long_term_limits

if TYPE_CHECKING:
    from recallog_schemas.models.long_term.views import (
        AuditView,
        Comparison,
        Deduplicated,
        EntriesChange,
        EntriesPage,
        EntryFound,
        EntryStats,
        ErasuresPage,
        LessonsView,
        Retained,
        Seeded,
    )


class Entries(FacadePart):
    """Entries that agents keep on purpose: `memory.long_term`.

    An entry belongs to one agent, and only this agent changes it. Equal texts are kept once, at most 5 entries of an
    agent are pinned, and an agent that was granted units pays for what it retains. The views decide this in the order
    of the ledger, for all writers.
    """

    attribute = "long_term"

    @operation(
        example='recallog long-term retain village baker "Sift the flour first." --type lesson --priority important',
        scope=Scope.PUBLISH,
        uses_index=True,
        starts_index=("text",),
        gen_ai=GenAi.UPSERT,
        records="id",
    )
    async def retain(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        text: long_term_parameters.KeptText,
        *,
        type: long_term_parameters.Type = "fact",  # noqa: A002  # the name that entries and their events have
        entry_id: long_term_parameters.NewEntryId = None,
        **options: Unpack[RetainOptions],
    ) -> "Retained":
        """Keep a text as an entry of an agent, and return the outcome once the views have it.

        If an entry of the same type, readers and person already has the text, it is skipped, at no cost, and the answer
        names that entry. `dedup` says which texts are the same. By default facts and lessons may differ in white space,
        capitals, articles, and forms of numbers, dates and units. Any other text is stored, however similar it is;
        `nearest` of the answer names the most similar entry, if the index is served. If the agent has an entry with
        another value of the same fact, such as "Ann lives in Rome" when it retains "Ann lives in Oslo", the new entry
        supersedes it: it is kept, and marked as past. `at` is the time of what the text says: of two values the later
        one counts, and a past `at` does not set the time of the agent back. An entry has at most the source class of
        what `based_on` names, as known at the time of the call; an id of no event yet does not lower it.

        Raises `Refused` for a sixth pinned entry, and `IdConflict` if `entry_id` names another event; nothing has
        changed then.
        """
        event = long_term.commands.entry_event(space, agent, text, type, entry_id, options)
        return await long_term.commands.retain(self._access, event)

    @operation(
        example='recallog long-term compare village baker "Sift the flour first." --type lesson',
        uses_index=True,
        starts_index=("text",),
        gen_ai=GenAi.SEARCH,
        records="nearest",
    )
    async def compare(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        text: long_term_parameters.KeptText,
        *,
        type: long_term_parameters.Type = "fact",  # noqa: A002  # the name that entries and their events have
        **options: Unpack[RetainOptions],
    ) -> "Comparison":
        """What `retain` would answer now, without writing, and the nearest entry of the agent.

        Raises `Refused` for a sixth pinned entry.
        """
        return await long_term.commands.compare(self._access, space, agent, text, type, options)

    @operation(
        example='recallog long-term record-experience village baker deploy "Deployed the shop" --outcome "it crashed"',
        scope=Scope.PUBLISH,
        gen_ai=GenAi.UPSERT,
        records="id",
    )
    async def record_experience(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        action_type: long_term_parameters.ActionType,
        summary: long_term_parameters.ExperienceSummary,
        *,
        entry_id: long_term_parameters.NewEntryId = None,
        **options: Unpack[ExperienceOptions],
    ) -> "Retained":
        """Keep what an agent did and what came of it, as an entry of the type experience: "summary → outcome".

        It costs the agent nothing. The same experience may be kept twice, since it may happen twice.
        """
        event = long_term.commands.experience_event(space, agent, action_type, summary, entry_id, options)
        return await long_term.commands.record_experience(self._access, event)

    @operation(
        example="recallog long-term update village baker l-7 --priority pinned",
        scope=Scope.PUBLISH,
        gen_ai=GenAi.UPDATE,
        records="ids",
    )
    async def update(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entry_id: long_term_parameters.EntryId,
        *,
        event_id: parameters.NewEventId = None,
        **fields: Unpack[UpdateOptions],
    ) -> "EntriesChange":
        """Change fields of an entry of the agent. A new text makes a new version.

        Raises `Refused` if the agent owns no such entry, if the entry is not live any more, for a sixth pinned entry,
        and for a text that another entry has; nothing has changed then.
        """
        return await long_term.commands.update(self._access, space, agent, entry_id, event_id, fields)

    @operation(
        example='recallog long-term forget village baker l-7 --reason "asked to"',
        scope=Scope.FORGET,
        idempotent=True,
        destructive=True,
        gen_ai=GenAi.DELETE,
        records="ids",
    )
    async def forget(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entry_ids: long_term_parameters.ForgottenIds = None,
        *,
        subject: long_term_parameters.ForgottenSubject = None,
        reason: long_term_parameters.ChangeReason = None,
    ) -> "EntriesChange":
        """Forget entries of the agent: the views, the index and the past views no longer have their texts.

        Entries that were made from them are retracted. Entries that are already erased are left out; if no entry is
        left, nothing is written, and `changed` of the answer is false. The events that retained the texts stay in the
        ledger; `erase` makes these unreadable too.

        Raises `Refused` if the agent does not own one of the entries; nothing has changed then.
        """
        return await long_term.commands.forget(self._access, space, agent, entry_ids, subject, reason)

    @operation(
        example='recallog long-term retract village baker l-7 --reason "it was rye"',
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.UPDATE,
        records="ids",
    )
    async def retract(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entry_id: long_term_parameters.EntryId,
        *,
        reason: long_term_parameters.ChangeReason = None,
    ) -> "EntriesChange":
        """Take back an entry of the agent that was wrong. It is no longer found, and its owner can read it by its id.

        If it is no longer live, nothing is written, and `changed` of the answer is false.

        Raises `Refused` if the agent owns no such entry.
        """
        return await long_term.commands.retract(self._access, space, agent, entry_id, reason)

    @operation(
        example='recallog long-term archive village baker l-7 --reason "the season is over"',
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.UPDATE,
        records="ids",
    )
    async def archive(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entry_id: long_term_parameters.EntryId,
        *,
        reason: long_term_parameters.ChangeReason = None,
        event_id: parameters.NewEventId = None,
    ) -> "EntriesChange":
        """Put away an entry of the agent that is not needed now. It is no longer found, and `restore` brings it back.

        If it is already archived, nothing is written, and `changed` of the answer is false.

        Raises `Refused` if the agent owns no such entry, or if it is retracted or erased.
        """
        payload = {"entry": entry_id, "reason": reason}
        return await long_term.commands.change_one(self._access, space, agent, "archived", payload, event_id)

    @operation(
        example="recallog long-term restore village baker l-7",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.UPDATE,
        records="ids",
    )
    async def restore(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entry_id: long_term_parameters.EntryId,
        *,
        reason: long_term_parameters.ChangeReason = None,
        event_id: parameters.NewEventId = None,
    ) -> "EntriesChange":
        """Bring back an archived entry of the agent in its former form and tier. It ages from now on.

        If it is already live, nothing is written, and `changed` of the answer is false.

        Raises `Refused` if the agent owns no such entry, if it is retracted or erased, if one of its sources is erased,
        for a text that another entry has now, and for a sixth pinned entry; nothing has changed then.
        """
        payload = {"entry": entry_id, "reason": reason}
        return await long_term.commands.change_one(self._access, space, agent, "restored", payload, event_id)

    @operation(
        example='recallog long-term grant village baker 100 --reason "December"',
        scope=Scope.OPERATE,
    )
    async def grant(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        units: long_term_parameters.Units,
        *,
        reason: long_term_parameters.ChangeReason = None,
        event_id: parameters.NewEventId = None,
    ) -> "EntryStats":
        """Give an agent units that it may spend on entries, and return its numbers with the new balance.

        From the first grant on, the agent pays for the entries that it retains. A negative number takes units away.
        """
        return await long_term.commands.grant(self._access, space, agent, units, reason, event_id)

    @operation(
        example="recallog long-term transfer village baker miller l-7",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.UPDATE,
        records="ids",
    )
    async def transfer(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        to: long_term_parameters.Receiver,
        entry_ids: long_term_parameters.EntryIds,
    ) -> "EntriesChange":
        """Give entries of the agent to another one. They get the priority normal, and lose their other readers.

        An entry that is not live, or whose text the receiver already has, is left out and named in `refused`.

        Raises `Refused` if the agent does not own one of the entries; nothing has changed then.
        """
        return await long_term.commands.transfer(self._access, space, agent, entry_ids, to)

    @operation(
        example="recallog long-term get village baker l-7",
        gen_ai=GenAi.SEARCH,
        records="entry",
    )
    async def get(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entry_id: long_term_parameters.EntryId,
        **at: Unpack[At],
    ) -> "EntryFound":
        """The entry with an id, if the agent may read it. A retracted or archived entry is readable only to its
        owner."""
        return await self._access.of_agent(space, agent, at, long_term.queries.get, entry_id)

    @operation(
        example="recallog long-term list village baker --order priority --type lesson",
        gen_ai=GenAi.SEARCH,
        records="entries",
    )
    async def list(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        order: long_term_parameters.EntryOrder = "newest",
        type: long_term_parameters.OneType = None,  # noqa: A002  # the name that entries and their events have
        tier: long_term_parameters.OneTier = None,
        limit: long_term_parameters.EntriesLimit = limits.PAGE_ITEMS,
        cursor: parameters.Cursor = None,
        filter: parameters.MemoryFilter = None,  # noqa: A002
        **at: Unpack[At],
    ) -> "EntriesPage":
        """A page of the live entries of an agent, newest first or by priority.

        `cursor` takes the `next` of a page and selects the page after it. Entries that are retained meanwhile are not
        on any of the pages. By priority, the newest 1,000 entries with the given `type`, `tier` and fields of `filter`
        are ranked: pinned ones first, then by age and priority.
        """
        page = long_term.queries.newest if order == "newest" else long_term.queries.by_priority
        wanted = long_term.live_entries.WantedEntries(type, tier, await self._access.passes(space, filter, at))
        return await self._access.of_agent(space, agent, at, page, long_term.queries.ListQuery(wanted, limit, cursor))

    @operation(
        example='recallog long-term lessons village baker "the dough does not rise"',
        uses_index=True,
        starts_index=("query",),
        gen_ai=GenAi.SEARCH,
        records="lessons",
    )
    async def lessons(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        query: parameters.RecallQuery,
        *,
        limit: long_term_parameters.LessonsLimit = long_term_limits.LESSONS,
        **at: Unpack[At],
    ) -> "LessonsView":
        """The lessons that an agent may read and that match a question: its pinned ones first, then the most similar.

        The similarity is the cosine of both texts. The priority critical adds 0.3, important adds 0.15, and low
        subtracts 0.1. While the index is off, starting or down, words are compared instead; `relevance_by` of the
        answer says which.
        """
        return await self._access.of_agent(space, agent, at, long_term.queries.lessons, query, limit)

    @operation(
        example="recallog long-term seed village baker",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.UPSERT,
        records="ids",
    )
    async def seed(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        texts: long_term_parameters.SeedTexts = None,
        *,
        type: long_term_parameters.Type = "lesson",  # noqa: A002  # the name that entries and their events have
    ) -> "Seeded":
        """Give an agent initial entries, which cost nothing. Their ids depend on the texts, so that repeating it adds
        nothing."""
        return await long_term.commands.seed(self._access, space, agent, texts, type)

    @operation(example="recallog long-term stats village baker")
    async def stats(self, space: parameters.Space, agent: parameters.Agent, **at: Unpack[At]) -> "EntryStats":
        """How many entries an agent keeps, by type, which are pinned, and how many units it can still spend."""
        return await self._access.of_agent(space, agent, at, long_term.queries.stats)

    @operation(example="recallog long-term audit village baker --limit 20")
    async def audit(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        entry_id: long_term_parameters.OneEntryId = None,
        *,
        limit: long_term_parameters.AuditLimit = limits.PAGE_ITEMS,
        **at: Unpack[At],
    ) -> "AuditView":
        """The newest changes of the entries of an agent, without their content, from the 2,000 that are on record."""
        return await self._access.of_agent(space, agent, at, long_term.queries.audit, entry_id, limit)

    @operation(example="recallog long-term erasures village baker")
    async def erasures(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        limit: long_term_parameters.ErasuresLimit = limits.PAGE_ITEMS,
        cursor: parameters.Cursor = None,
        **at: Unpack[At],
    ) -> "ErasuresPage":
        """A page of all erasures of the entries of an agent, without their content: when, by whom and why.

        `cursor` takes the `next` of a page and selects the page after it.
        """
        return await self._access.of_agent(space, agent, at, long_term.queries.erasures, limit, cursor)

    @operation(
        example="recallog long-term deduplicate village baker --apply --only l-7",
        scope=Scope.PUBLISH,
        idempotent=True,
        uses_index=True,
        starts_index=("agent",),
        gen_ai=GenAi.UPDATE,
        records="merged",
    )
    async def deduplicate(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        *,
        of: long_term_parameters.ComparedIds = None,
        apply: long_term_parameters.ApplyProposals = False,
        only: long_term_parameters.OnlyProposed = None,
        progress: parameters.Report = None,
    ) -> "Deduplicated":
        """Propose which near-duplicates among the entries of an agent to archive; archive them with `apply`.

        Two entries are near-duplicates if they are similar, facts with a cosine above 0.92 and others above 0.85, and
        if they state the same in other words or in another order: numbers, dates, identifiers, names, negations,
        comparatives and tenses agree. Texts that the model cannot read are compared by their words alone. Of two facts
        the newer stays, and of other entries the older. The entry that stays gets the stronger priority of both. An
        archived entry is no longer found; its owner can read it by its id, with the id of the entry that stays, and
        `restore` it. With `agent.configured {quality: {deduplicate: true}}` a reactor does this for each new text of
        the agent.

        Raises `SettingsError` if the index is off, and `IndexUnavailable`. `progress` is called with entries
        (compared, to compare).
        """
        from recallog.models.long_term import deduplication

        chosen = deduplication.Chosen(of, apply, only)
        return await deduplication.deduplicate(self._access, space, agent, chosen, progress)
