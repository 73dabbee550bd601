"""The payloads of long-term memory: what an agent retains, corrects, forgets, and learns about its entries."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from recallog_schemas.kinds.payload import (
    AgentName,
    Count,
    EntryType,
    Id,
    Ids,
    Label,
    Number,
    Part,
    Payload,
    Positive,
    Priority,
    Reason,
    Share,
    Tier,
    Words,
)
from recallog_schemas.models.long_term import limits as long_term_limits

NEWEST_RULE = 3
"""The newest rule by which texts are compared (`recallog_projections.models.long_term.texts`)."""

Metadata = dict[str, Any]
Sources = Annotated[list[Id], Field(max_length=long_term_limits.ENTRY_SOURCES_MAX)]
Dedup = Literal["off", "exact", "normalised"]
Rule = Annotated[int, Field(ge=1, le=NEWEST_RULE)]


class Nearest(Part):
    """The live entry of the same agent and type whose text is most similar, as the writer of the event measured it."""

    id: Id
    """The id of the entry."""
    version: Positive
    """The version of its text."""
    similarity: Annotated[Number, Field(ge=-1, le=1)]
    """The cosine of the embeddings of both texts, rounded to 6 decimals."""
    model: Annotated[str, Field(max_length=long_term_limits.MODEL_CHARS_MAX)]
    """The embedding model."""


class EntryRetained(Payload):
    """An agent keeps a text on purpose. The id of the entry is that of the event; `subject` of the event is the person
    it is about."""

    text: Words
    """What it keeps."""
    type: EntryType = "fact"
    """Type of the entry: fact, lesson, insight, summary, strategy, info, note, tool_usage, or another word."""
    entity: Label | None = None
    """Whom or what it is about."""
    category: Label | None = None
    """A word that groups entries."""
    source: Annotated[str, Field(max_length=long_term_limits.SOURCE_CHARS_MAX)] | None = None
    """Where it comes from, as free text."""
    topic: Label | None = None
    """The subject matter."""
    importance: Share | None = None
    """Importance, from 0 to 1 (0.5)."""
    confidence: Share | None = None
    """Confidence, from 0 to 1 (1)."""
    tier: Tier | None = None
    """How fast it ages (null: it does not)."""
    priority: Priority | None = None
    """How strongly it is preferred (normal)."""
    red_line: bool | None = None
    """Whether no plan may demote or archive it (false)."""
    metadata: Metadata | None = None
    """Any JSON object of the writer."""
    sources: Sources | None = None
    """The events and entries that it was made from. If one of them is erased, it is retracted."""
    dedup: Dedup | None = None
    """How equal texts are recognised from rule 3 on (normalised for facts and lessons, exact for other types). Entries
    of the types tool_usage, summary and experience are never compared."""
    rule: Rule | None = None
    """The rule by which texts are compared (null: 1). Leave it out: publishing adds the newest one."""
    nearest: Nearest | None = None
    """The most similar entry, only in events of rule 1; later rules compare texts."""
    cost: Annotated[Number, Field(ge=0)] | None = None
    """What it costs an agent with a balance (1)."""
    preseeded: bool | None = None
    """Whether it was seeded (false)."""


class Updated(Payload):
    """The owner of an entry changes it. Absent fields keep their values; null resets one to its default."""

    entry: Id
    """The id of the entry."""
    text: Words | None = None
    """Its new text; it becomes the next version."""
    type: EntryType | None = None
    """Its type."""
    entity: Label | None = None
    """Whom or what it is about."""
    category: Label | None = None
    """A word that groups entries."""
    source: Annotated[str, Field(max_length=long_term_limits.SOURCE_CHARS_MAX)] | None = None
    """Where it comes from, as free text."""
    topic: Label | None = None
    """The subject matter."""
    importance: Share | None = None
    """Importance, from 0 to 1."""
    confidence: Share | None = None
    """Confidence, from 0 to 1."""
    priority: Priority | None = None
    """How strongly it is preferred."""
    red_line: bool | None = None
    """Whether no plan may demote or archive it."""
    metadata: Metadata | None = None
    """Any JSON object of the writer; it replaces the former one."""
    rule: Rule | None = None
    """The rule by which texts are compared (null: 1). Leave it out: publishing adds the newest one."""

    @model_validator(mode="after")
    def _changes_something(self) -> "Updated":
        if not self.model_fields_set - {"entry", "rule"}:
            raise PydanticCustomError("nothing_given", "give at least one field to change")
        return self


class Retracted(Payload):
    """The owner of an entry takes it back: it was wrong. It stays readable by its id."""

    entry: Id
    """The id of the entry."""
    reason: Reason | None = None
    """Why."""


class Archived(Payload):
    """The owner of an entry puts it away: it is no longer needed. It stays readable by its id, and can be restored."""

    entry: Id
    """The id of the entry."""
    duplicate_of: Id | None = None
    """The id of the entry that says the same."""
    reason: Reason | None = None
    """Why."""


class Restored(Payload):
    """The owner of an archived entry takes it back into use, in the form that it had."""

    entry: Id
    """The id of the entry."""
    reason: Reason | None = None
    """Why."""
    rule: Rule | None = None
    """The rule by which texts are compared (null: 1). Leave it out: publishing adds the newest one."""


class Erased(Payload):
    """The owner of entries forgets them: the views delete their content."""

    entries: Ids
    """The ids of the entries."""
    reason: Reason | None = None
    """Why."""


class Transferred(Payload):
    """The owner of entries gives them to another agent."""

    entries: Ids
    """The ids of the entries."""
    to: AgentName
    """The new owner."""
    rule: Rule | None = None
    """The rule by which texts are compared (null: 1). Leave it out: publishing adds the newest one."""


class Metered(Payload):
    """Units are granted to an agent, or used by it. `units` or `eur` is required."""

    units: Number | None = None
    """Number of units: positive for a grant, negative for a use."""
    eur: Number | None = None
    """The same in euros."""
    reason: Reason | None = None
    """What for."""

    @model_validator(mode="after")
    def _counts_something(self) -> "Metered":
        if self.units is None and self.eur is None:
            raise PydanticCustomError("nothing_given", "give units (or eur)")
        return self


class Accessed(Payload):
    """Entries were read in a way that counts; one event for many reads."""

    counts: Annotated[dict[Id, Positive], Field(max_length=long_term_limits.ACCESSED_IDS_MAX)] = Field(
        default_factory=dict
    )
    """How often, by the id of the entry."""
    hits: Count = 0
    """How many lookups found something."""
    misses: Count = 0
    """How many lookups found nothing."""


class Experience(Payload):
    """What an agent did, and the outcome."""

    action_type: Label
    """Type of the action."""
    summary: Words
    """What was done."""
    outcome: str | None = None
    """The outcome."""
    score: Number | None = None
    """How well it went."""
    agent_role: Label | None = None
    """The role in which the agent acted."""
    model: Annotated[str, Field(max_length=long_term_limits.MODEL_CHARS_MAX)] | None = None
    """The model that it used."""
    cost: Number | None = None
    """What it cost."""
