"""The payloads of long-term memory: what an agent retains, corrects, forgets, and learns about its entries."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from recallog_schemas import limits, validation
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

FIRST_RULE = 1
NEWEST_RULE = 2

Metadata = dict[str, Any]
Sources = Annotated[list[Id], Field(max_length=limits.ENTRY_SOURCES_MAX)]
Rule = Annotated[int, Field(ge=FIRST_RULE, le=NEWEST_RULE)]


class Nearest(Part):
    """The live entry of the same agent and type whose text is most similar, as the writer of the event measured it."""

    id: Id
    """The id of the entry."""
    version: Positive
    """The version of its text."""
    similarity: Annotated[Number, Field(ge=-1, le=1)]
    """The cosine of the embeddings of both texts, rounded to 6 decimals."""
    model: Annotated[str, Field(max_length=limits.MODEL_CHARS_MAX)]
    """The embedding model."""


class Retained(Payload):
    """An agent keeps a text on purpose. The id of the entry is that of the event; `subject` of the event is the person
    it is about."""

    text: Words
    """What it keeps."""
    type: EntryType = "fact"
    """What sort of entry it is: fact, lesson, insight, summary, strategy, info, note, tool_usage, or another word."""
    entity: Label | None = None
    """Whom or what it is about."""
    category: Label | None = None
    """A word that groups entries."""
    source: Annotated[str, Field(max_length=limits.SOURCE_CHARS_MAX)] | None = None
    """Where it comes from, in words."""
    topic: Label | None = None
    """The subject matter."""
    importance: Share | None = None
    """From 0 to 1: how much it weighs (0.5)."""
    confidence: Share | None = None
    """From 0 to 1: how certain it is (1)."""
    tier: Tier | None = None
    """How fast it ages (null: it does not)."""
    priority: Priority | None = None
    """How strongly it is preferred (normal)."""
    red_line: bool | None = None
    """Whether no plan may demote or archive it (false)."""
    metadata: Metadata | None = None
    """Any JSON object of the writer's."""
    sources: Sources | None = None
    """The events and entries that it was made from. If one of them is erased, it is retracted."""
    rule: Rule | None = None
    """The rule by which texts are compared (null: 1). Leave it out: publishing adds the newest one."""
    nearest: Nearest | None = None
    """The most similar entry, in events of rule 1 alone; later rules compare texts only."""
    cost: Annotated[Number, Field(ge=0)] | None = None
    """What it costs an agent with a balance (1)."""
    preseeded: bool | None = None
    """Whether it was planted at the beginning (false)."""


class Updated(Payload):
    """The owner of an entry changes it. Absent fields keep their values; null takes one back to its default."""

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
    source: Annotated[str, Field(max_length=limits.SOURCE_CHARS_MAX)] | None = None
    """Where it comes from, in words."""
    topic: Label | None = None
    """The subject matter."""
    importance: Share | None = None
    """From 0 to 1: how much it weighs."""
    confidence: Share | None = None
    """From 0 to 1: how certain it is."""
    priority: Priority | None = None
    """How strongly it is preferred."""
    red_line: bool | None = None
    """Whether no plan may demote or archive it."""
    metadata: Metadata | None = None
    """Any JSON object of the writer's; it replaces the former one."""
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
    """The owner of an entry puts it away: it is no longer needed. It stays readable by its id."""

    entry: Id
    """The id of the entry."""
    reason: Reason | None = None
    """Why."""


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
    """How many units: positive for a grant, negative for a use."""
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

    counts: Annotated[dict[Id, Positive], Field(max_length=limits.ACCESSED_IDS_MAX)] = Field(default_factory=dict)
    """How often, by the id of the entry."""
    hits: Count = 0
    """How many lookups found something."""
    misses: Count = 0
    """How many lookups found nothing."""


class OutcomeReported(Payload):
    """What came of using entries."""

    entries: Ids
    """The ids of the entries that were used."""
    predicted: Share = 0.5
    """The success that was expected."""
    actual: Share = 0.5
    """The success that there was."""
    success: bool | None = None
    """Whether it was a success."""
    confidence: Share | None = None
    """How certain the report is."""
    cause: Reason | None = None
    """Why it came so."""


class TierChanged(Payload):
    """The owner of an entry moves it to another tier."""

    entry: Id
    """The id of the entry."""
    to: Tier
    """The new tier."""
    reason: Reason | None = None
    """Why."""


class Move(Part):
    """One entry changes its tier."""

    id: Id
    """The id of the entry."""
    origin: Tier = Field(alias="from")
    """The tier that it leaves; the move counts only if the entry is still there."""
    to: Tier
    """The tier that it enters."""
    reason: Reason
    """Why."""
    changes: Count | None = None
    """As of an archived entry."""


class Archival(Part):
    """One entry is archived."""

    id: Id
    """The id of the entry."""
    reason: Reason
    """Why: `expired` or `tier_limit`."""
    changes: Count | None = None
    """How many changes and reads of the entry the planner knew; if there are others by now, the plan leaves the entry
    as it is. Required unless the plan has `seen`."""


class Consolidated(Payload):
    """One part of a plan: which entries change their tier, and which are archived."""

    seen: Count | None = None
    """Only in plans of earlier versions, which had no `changes`: the offset up to which the planner had read."""
    now: str
    """The time of the plan, ISO 8601 with its zone."""
    ordinal: Count
    """The number of the agent's plans before it."""
    part: Positive = 1
    """The number of this part."""
    parts: Positive = 1
    """How many parts the plan has."""
    constants: dict[str, Any] = Field(default_factory=dict)
    """The settings that it was computed with."""
    moves: Annotated[list[Move], Field(max_length=limits.EVENT_IDS_MAX)] = Field(default_factory=list)
    """The entries that change their tier."""
    archived: Annotated[list[Archival], Field(max_length=limits.EVENT_IDS_MAX)] = Field(default_factory=list)
    """The entries that are archived."""

    @field_validator("now")
    @classmethod
    def _is_a_time(cls, now: str) -> str:
        validation.time_of(now)
        return now

    @model_validator(mode="after")
    def _says_what_was_known(self) -> "Consolidated":
        named: dict[str, Sequence[Move | Archival]] = {"moves": self.moves, "archived": self.archived}
        for field, entries in named.items():
            for number, each in enumerate(entries):
                if self.seen is None and each.changes is None:
                    raise PydanticCustomError("missing", "is required", {"path": f"payload.{field}.{number}.changes"})
        return self


class Experience(Payload):
    """What an agent did and what came of it."""

    action_type: Label
    """What sort of action it was."""
    summary: Words
    """What was done."""
    outcome: str | None = None
    """What came of it."""
    score: Number | None = None
    """How well it went."""
    agent_role: Label | None = None
    """The role in which the agent acted."""
    model: Annotated[str, Field(max_length=limits.MODEL_CHARS_MAX)] | None = None
    """The model that it used."""
    cost: Number | None = None
    """What it cost."""
