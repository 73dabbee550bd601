"""Long-term memory: entries, the results of retaining and changing them, lessons, and the audit."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal

from recallog_schemas import limits
from recallog_schemas.event import Position
from recallog_schemas.kinds.trust import AGENT, SourceClass, find_least, read_stated
from recallog_schemas.shortening import cut
from recallog_schemas.views.base import Bounded, Labelled, OfAgent, Standing, View, count_noun, one_line


class EntryView(Labelled, Standing):
    """One entry, as it is now or was at the requested moment."""

    id: str
    """Its id: that of the event that retained it."""
    text: str
    """What is kept."""
    type: str
    """Type of the entry: fact, lesson, insight, summary, strategy, info, note, experience, or another word."""
    version: int
    """The number of its texts so far, from 1."""
    status: str
    """live, retracted or archived. An entry that is not live is shown only to its owner, and only by its id."""
    owner: str
    """The agent that keeps it."""
    priority: str
    """How strongly it is preferred: pinned, critical, important, normal or low."""
    tier: str | None
    """How fast it ages: fast, medium, slow or glacial. None: it does not."""
    importance: float
    """Importance, from 0 to 1."""
    confidence: float
    """Confidence, from 0 to 1."""
    entity: str | None
    """Whom or what it is about."""
    category: str | None
    """A word that groups entries."""
    source: str | None
    """Where it comes from, as free text."""
    topic: str | None
    """The subject matter."""
    metadata: Mapping[str, Any]
    """The writer's own JSON object."""
    sources: tuple[str, ...]
    """The ids of the events and entries that it was made from."""
    subject: str | None
    """The person that it is about."""
    red_line: bool
    """Whether no plan may demote or archive it."""
    preseeded: bool
    """Whether it was seeded."""
    at: datetime
    """When it was retained, in UTC."""
    updated_at: datetime
    """When it last changed, in UTC."""
    position: Position
    """The position of the event that retained it."""
    supersedes: tuple[str, ...] = ()
    """The ids of the live entries of its owner that it supersedes, because they give the same thing another value."""
    duplicate_of: str | None = None
    """For an archived entry: the id of the entry that says the same."""

    @property
    def source_class(self) -> SourceClass:
        """The class of agents, or a less trusted one by the type or the metadata of the entry."""
        return find_least((AGENT, read_stated({"type": self.type, "metadata": self.metadata})))

    @property
    def label(self) -> str:
        """`[pinned]`, `[critical]`, `[important]` or `[low]`; "" for the priority normal. Then `source_label`, and the
        note, if any."""
        priority = "" if self.priority == "normal" else f"[{self.priority}]"
        return f"{priority}{self.source_label}{self.labels(self.id)}"

    @property
    def labelled(self) -> str:
        """The text in one line, quoted if it is data, after its label if it has one."""
        return self._label_text(one_line(self.text))

    def _label_text(self, text: str) -> str:
        return " ".join(part for part in (self.label, self.quote_data(text)) if part)

    def format(self) -> str:
        """Id, type and the beginning of the labelled text in one line: `e-1 lesson [critical] Sift the flour first.`"""
        return one_line(f"{self.id} {self.type} {self._label_text(cut(one_line(self.text), limits.PREVIEW_CHARS))}")


class EntryFound(OfAgent):
    """The entry with an id, if the agent may read it."""

    entry: EntryView | None
    """The entry. None: there is none, it is erased, or the agent may not read it."""

    @property
    def ok(self) -> bool:
        """Whether there is such an entry."""
        return self.entry is not None

    def format(self) -> str:
        """The fields of the entry, one per line; `(nothing)` if there is none."""
        return "(nothing)" if self.entry is None else View.format(self.entry)


class EntriesPage(OfAgent):
    """A page of the live entries of an agent."""

    entries: tuple[EntryView, ...]
    """The entries, in the requested order."""
    next: str | None
    """The cursor of the next page; None: there is none."""

    def format(self) -> str:
        """One line for each entry; `(nothing)` if there are none."""
        return "\n".join(entry.format() for entry in self.entries) or "(nothing)"


class NearestEntry(View):
    """The most similar live entry of the same agent, type, readers and person."""

    id: str
    """The id of the entry."""
    version: int
    """The version of its text."""
    similarity: float
    """The cosine of both texts, rounded to 6 decimals."""
    model: str
    """The embedding model."""

    def format(self) -> str:
        """Id and similarity in one line."""
        return one_line(f"{self.id} (similarity {self.similarity:g})")


_NOT_RETAINED = {
    "balance": "the agent has too few units; an event memory.metered grants some",
    "source_erased": "one of the entries that it is based on is erased",
    "dependents": "too many entries are based on one of its sources",
    "too_large": "keep it in parts",
    "action": "the quality gate of the agent rejects action logs: state the lesson instead",
    "min_terms": "the quality gate of the agent asks for more content words",
}
"""The meaning of each reason why a text was not retained, or what to do."""


class Retained(View):
    """The outcome of retaining a text."""

    id: str | None
    """The id of the entry that has the text now: a new one, or the one that it duplicates. None: there is none."""
    outcome: Literal["stored", "unpinned", "updated", "skipped", "refused", "rejected"]
    """"stored": it is a new entry. "unpinned": it is a new entry with priority normal, since others were pinned at the
    same moment, and the agent may pin no more. "skipped": an entry already has the text. "refused": a rule of entries
    does not allow it. "rejected": the agent's quality gate rejects it. "updated": a fact that was nearly
    equal has taken the text; only for events of earlier versions."""
    similarity: float | None
    """The cosine to the nearest entry of the agent and type; 1 for an equal text. None: it was not measured."""
    reason: str | None
    """The reason. For "skipped": "equal", or "similar" in events of earlier versions. For "refused":
    "balance", "source_erased", "dependents" or "too_large". For "rejected": "action" or "min_terms".
    For "unpinned": "pins". None otherwise."""
    position: Position | None
    """The position of the event. None: nothing was written."""
    nearest: NearestEntry | None = None
    """The entry that is most similar to a stored one, which may say the same or differ in one detail. None: there is
    none, or it was not measured."""
    supersedes: tuple[str, ...] = ()
    """The ids of the entries that are past from now on, because the stored one supersedes them."""

    @property
    def ok(self) -> bool:
        """Whether an entry has the text now."""
        return self.id is not None

    @property
    def explanation(self) -> str:
        """Why no entry has the text, or what to do, in words; "" if one has."""
        return "" if self.ok else _NOT_RETAINED.get(self.reason or "", self.reason or "")

    def format(self) -> str:
        """Outcome, id and reason in one line: `duplicate of e-1 (equal)`, or `stored e-2, supersedes e-1`."""
        return _format_outcome(self)


class Comparison(View):
    """The outcome if a text were retained now."""

    outcome: Literal["stored", "updated", "skipped", "refused", "rejected"]
    """As in `Retained`."""
    id: str | None
    """The id of the entry that already has the text. None: there is none."""
    reason: str | None
    """The reason, as in `Retained`. None if there is none."""
    nearest: NearestEntry | None
    """The most similar entry. None: there is none, another rule decides before it, or no index answers."""

    supersedes: tuple[str, ...] = ()
    """The ids of the entries that would be past."""

    def format(self) -> str:
        """Outcome, id, reason and the nearest entry in one line: `stored, nearest e-1 (similarity 0.8)`."""
        return _format_outcome(self)


def _format_outcome(view: Retained | Comparison) -> str:
    outcome = "duplicate of" if view.outcome == "skipped" else view.outcome
    shown = " ".join(part for part in (outcome, view.id, view.reason and f"({view.reason})") if part)
    if view.supersedes:
        shown += f", supersedes {', '.join(view.supersedes)}"
    return one_line(shown if view.nearest is None else f"{shown}, nearest {view.nearest.format()}")


class ExtractedFacts(View):
    """The facts that were drawn from a text."""

    ids: tuple[str, ...]
    """The ids of the entries that have the facts now, each once: new entries and existing ones."""
    retained: tuple[Retained, ...]
    """The outcome of each fact, in the order of the text."""
    failed: str | None
    """Why the extractor failed. None: it did not."""

    @property
    def ok(self) -> bool:
        """Whether the extractor has answered."""
        return self.failed is None

    def format(self) -> str:
        """One line for each fact; `(nothing)` if there are none, or why the extractor failed."""
        if self.failed is not None:
            return f"failed: {one_line(self.failed)}"
        return "\n".join(each.format() for each in self.retained) or "(nothing)"


class Synthesis(OfAgent):
    """An answer from what an agent keeps."""

    question: str
    """The question."""
    answer: str
    """The answer; "No memories to reflect on." if no fact or experience was found."""
    sources: tuple[str, ...]
    """The ids of the entries that it was made from, best first."""
    degraded: str | None
    """Why the entries may not be the best ones; None: they are."""
    stored: Retained | None
    """The outcome of keeping the answer as an insight. None: that was not requested, or there was no answer."""

    def format(self) -> str:
        """The answer, and the outcome of keeping it."""
        return "\n".join([self.answer, *([] if self.stored is None else [self.stored.format()])])


class EntriesChange(View):
    """What a change did to entries."""

    changed: bool
    """Whether any entry was changed. False: nothing was written."""
    ids: tuple[str, ...]
    """The ids of the entries that were changed."""
    refused: Mapping[str, str]
    """By id: why an entry was not changed, such as the state that it is in: "retracted", "archived" or "erased"."""
    position: Position | None
    """The position of the last event. None: nothing was written."""
    supersedes: tuple[str, ...] = ()
    """The ids of the entries that are past, because a changed or restored entry
    supersedes them."""

    @property
    def count(self) -> int:
        """How many entries were changed."""
        return len(self.ids)

    @property
    def ok(self) -> bool:
        """Whether any entry was changed."""
        return self.changed

    def format(self) -> str:
        """The number of entries with their ids, those that are past now, and those that were not changed."""
        changed = f"{self.count} changed: {', '.join(self.ids)}" if self.changed else "nothing changed"
        past = [one_line(f"supersedes {', '.join(self.supersedes)}")] if self.supersedes else []
        lines = [cut(one_line(changed), limits.PREVIEW_CHARS), *past]
        return "\n".join([*lines, *(one_line(f"{id_}: {reason}") for id_, reason in self.refused.items())])


class Lesson(View):
    """One lesson with its rank."""

    entry: EntryView
    """The lesson."""
    score: float
    """Its similarity and the boost of its priority."""
    similarity: float | None
    """Its cosine to the query, or, if words were compared, the share of the query's words that it has. None: a pinned
    lesson that was not among the most similar ones."""

    def format(self) -> str:
        """The labelled text in one line: `[critical] Sift the flour first.`"""
        return self.entry.labelled


class LessonsView(OfAgent, Bounded):
    """The lessons that an agent may read and that match a question."""

    list_field: ClassVar[str] = "lessons"

    lessons: tuple[Lesson, ...]
    """Pinned ones first, then by score; equal ones newest first."""
    relevance_by: Literal["semantic", "words"]
    """Whether meanings were compared, or, where the index could not answer, words."""

    def format(self) -> str:
        """One line for each lesson; `(nothing)` if there are none."""
        return "\n".join(f"- {lesson.format()}" for lesson in self.lessons) or "(nothing)"


class EntryStats(OfAgent):
    """How many entries an agent keeps, and what it may spend on further ones."""

    fact_count: int
    """Live entries of the type fact."""
    experience_count: int
    """Live entries of the type experience."""
    lesson_count: int
    """Live entries of the type lesson."""
    types: Mapping[str, int]
    """Live entries by type, of the first 1,000 types by name."""
    pinned: tuple[str, ...]
    """The ids of the pinned entries, at most 5."""
    working_block_count: int
    """Blocks of working memory."""
    entity_link_count: int
    """Pairs of entities that entries name together, in the agent's own graph and in that of the shared entries."""
    balance: float | None
    """The units that the agent may still spend. None: it was never granted any, and pays nothing."""
    spent: float
    """The units that it has spent."""
    eur: float
    """The sum of what was metered in euros: negative for uses."""


class EntryAudit(View):
    """One change of one entry, without content."""

    operation: str
    """retained, updated, retracted, archived, restored, erased, transferred (by the former owner) or received (by the
    new)."""
    id: str
    """The id of the entry."""
    at: datetime
    """When, in UTC."""
    actor: str
    """The agent whose event it was."""
    reason: str | None
    """Why, in the words of the event."""

    def format(self) -> str:
        """The fields in one line."""
        reason = "" if self.reason is None else f" ({self.reason})"
        return one_line(f"{self.at.isoformat()} {self.operation} {self.id} by {self.actor}{reason}")


class AuditView(OfAgent, Bounded):
    """The newest changes of the entries of an agent."""

    list_field: ClassVar[str] = "changes"
    kept: ClassVar[Literal["first", "last"]] = "last"

    changes: tuple[EntryAudit, ...]
    """The changes, oldest first."""

    def format(self) -> str:
        """One line for each change; `(nothing)` if there are none."""
        return "\n".join(change.format() for change in self.changes) or "(nothing)"


class EntryErasure(View):
    """The erasure of one entry."""

    id: str
    """The id of the entry."""
    at: datetime
    """When, in UTC."""
    actor: str
    """The agent whose event it was."""
    reason: str | None
    """Why, in the words of the event."""

    def format(self) -> str:
        """The fields in one line."""
        reason = "" if self.reason is None else f" ({self.reason})"
        return one_line(f"{self.at.isoformat()} erased {self.id} by {self.actor}{reason}")


class ErasuresPage(OfAgent):
    """A page of the erasures of the entries of an agent."""

    erasures: tuple[EntryErasure, ...]
    """The erasures, by the id of the entry."""
    next: str | None
    """The cursor of the next page; None: there is none."""

    def format(self) -> str:
        """One line for each erasure; `(nothing)` if there are none."""
        return "\n".join(erasure.format() for erasure in self.erasures) or "(nothing)"


class Seeded(View):
    """The entries with which an agent begins."""

    ids: tuple[str, ...]
    """The ids of their events, in the order of the texts."""
    written: int
    """How many of them this call wrote: 0 if all existed."""
    position: Position | None
    """The position of the last event. None: nothing was written."""

    def format(self) -> str:
        """How many there are, and how many were written."""
        return f"{count_noun(len(self.ids), 'entry', 'entries')}, {self.written} written"


class NearDuplicate(View):
    """Two entries that may say the same. At most one of them is archived."""

    kept: str
    """The id of the entry that stays."""
    archived: str
    """The id of the entry to archive."""
    similarity: float | None
    """The cosine of their texts. None: the model cannot read them, and their words are the same."""
    kept_text: str
    """The text of the entry that stays."""
    archived_text: str
    """The text of the entry to archive."""

    def format(self) -> str:
        """Both entries, one per line."""
        archived, kept = one_line(self.archived), one_line(self.kept)
        similarity = "same words" if self.similarity is None else f"similarity {self.similarity:g}"
        return (
            f"{archived} duplicates {kept} ({similarity})\n"
            f"  {archived}: {cut(one_line(self.archived_text), limits.PREVIEW_CHARS)}\n"
            f"  {kept}: {cut(one_line(self.kept_text), limits.PREVIEW_CHARS)}"
        )


class Deduplicated(Bounded):
    """The near-duplicates among the entries of an agent."""

    list_field: ClassVar[str] = "proposed"
    rest: ClassVar[str] = "archive some, and ask again"

    proposed: tuple[NearDuplicate, ...]
    """What may be merged, in the order in which it was found."""
    merged: tuple[str, ...]
    """The ids of the entries that were archived: none unless the proposals were applied."""
    compared: int
    """How many entries were compared."""
    position: Position | None
    """The position of the last event. None: nothing was written."""

    def format(self) -> str:
        """The proposals, then how many there are, and how many were merged."""
        counts = f"{self.compared} compared, {len(self.proposed)} proposed, {len(self.merged)} archived"
        return "\n".join([*(each.format() for each in self.proposed), counts])
