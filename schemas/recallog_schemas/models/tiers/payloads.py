"""The payloads of tiers: outcomes of using entries, and moves between tiers."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from recallog_schemas import limits, validation
from recallog_schemas.kinds.payload import Count, Id, Ids, Part, Payload, Positive, Reason, Share, Tier
from recallog_schemas.models.long_term.payloads import Rule


class OutcomeReported(Payload):
    """Outcomes of using entries."""

    entries: Ids
    """The ids of the entries that were used."""
    predicted: Share = 0.5
    """The expected success."""
    actual: Share = 0.5
    """The actual success."""
    success: bool | None = None
    """Whether it was a success."""
    confidence: Share | None = None
    """How certain the report is."""
    cause: Reason | None = None
    """Cause of the outcome."""


class TierChanged(Payload):
    """The owner of an entry moves it to another tier. By rules from 2 on, an archived entry is restored
    in this tier."""

    entry: Id
    """The id of the entry."""
    to: Tier
    """The new tier."""
    reason: Reason | None = None
    """Why."""
    rule: Rule | None = None
    """The rule by which the texts of entries are compared (null: 1, which restores nothing). Leave it out: publishing
    adds the newest one."""


class Move(Part):
    """One entry changes its tier."""

    id: Id
    """The id of the entry."""
    origin: Tier = Field(alias="from")
    """The tier that it leaves; the move counts only if the entry is still in it."""
    to: Tier
    """The tier that it enters."""
    reason: Reason
    """Why."""
    changes: Count | None = None
    """As in `Archival`."""


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
