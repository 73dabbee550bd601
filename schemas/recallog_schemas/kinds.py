"""The catalogue of kinds: for each known kind its payload, its text, its importance, and who sees it.

Kinds are an open set. An unknown kind carries any JSON object, has importance 0.5, is private to its agent, and its
text is the first of `text`, `belief`, `summary`, `goal` that its payload has. A space declares otherwise for kinds of
its own with `space.configured`. Importances are those of the ledger-view memory document; rows in the order of the
memory model's table.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from recallog_schemas import limits, text_rules
from recallog_schemas.text_rules import TextRule, first_of

KIND_PATTERN = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"

KindName = Annotated[str, Field(pattern=KIND_PATTERN, max_length=limits.KIND_CHARS_MAX)]
KindNames = Annotated[list[KindName], Field(max_length=limits.SHARED_KINDS_MAX)]

Role = Literal["memory", "action", "visitor"]
"""Where a prompt shows events of a kind besides an agent's memory: nowhere, as the agent's own actions under ACTION
HISTORY, or as words of visitors under VISITOR."""
MEMORY: Role = "memory"
ACTION: Role = "action"
VISITOR: Role = "visitor"

Dates = Literal["automatic", "always", "never"]
"""Whether the lines of events carry dates: where one answer spans more than 24 hours, in every answer, or in none."""
AUTOMATIC: Dates = "automatic"
ALWAYS: Dates = "always"
NEVER: Dates = "never"

DEFAULT_IMPORTANCE = 0.5
"""The importance of every kind for which neither the catalogue nor its space sets another one."""


class Payload(BaseModel):
    """The payload fields that a kind defines; others are allowed and stored."""

    # Built when it is first used: most commands validate few kinds, and building all takes a fifth of their start.
    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)


class RunStarted(Payload):
    goal: str | None = None
    """What all agents of the space try to reach."""
    shared_kinds: KindNames | None = None
    """The kinds that all agents of the space see, as in `space.configured`."""


class Text(Payload):
    text: str
    """The text."""


class Verdict(Text):
    winner: str | None = None
    """Who won."""
    score: Any = None
    """The score, as any JSON."""


class Reflected(Payload):
    """What an agent has come to believe. `belief` or `text` is required."""

    belief: str | None = None
    """What the agent believes."""
    text: str | None = None
    """The same, if there is no `belief`."""
    based_on: list[str] = Field(default_factory=list)
    """The ids of the events that the belief rests on."""

    @model_validator(mode="after")
    def _says_something(self) -> "Reflected":
        if self.belief is None and self.text is None:
            raise PydanticCustomError("missing", "give belief (or text)")
        return self


class ReflectionFailed(Payload):
    trigger: str
    """The trigger that was not answered."""
    reason: str
    """Why the reflector failed."""


class SalienceWeights(BaseModel):
    """The weights of the three terms of salience."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    relevance: Annotated[float, Field(ge=0, le=limits.WEIGHT_MAX)] = 0.30
    """The weight of the relevance to a query."""
    recency: Annotated[float, Field(ge=0, le=limits.WEIGHT_MAX)] = 0.40
    """The weight of the recency in turns."""
    importance: Annotated[float, Field(ge=0, le=limits.WEIGHT_MAX)] = 0.30
    """The weight of the importance of the kind."""


class AgentConfigured(Payload):
    """Settings of one agent. A field that is absent keeps its value; null takes it back to the default."""

    window: Annotated[int, Field(ge=1, le=limits.LOG_EVENTS_KEPT)] | None = None
    """How many of the newest events the agent's memory shows (8)."""
    use_salience: bool | None = None
    """Whether prompts select memories by salience instead of the window (false)."""
    salience_weights: SalienceWeights | None = None
    """The weights of relevance, recency and importance (0.30, 0.40, 0.30)."""
    salience_top_k: Annotated[int, Field(ge=1, le=limits.LOG_EVENTS_KEPT)] | None = None
    """How many events are selected by salience (8)."""
    reflection_threshold: Annotated[int, Field(ge=1, le=limits.INTEGER_MAX)] | None = None
    """After how many visible events a reflection is due (never)."""
    persona: str | None = None
    """Who the agent is: the beginning of its prompts."""
    goal: str | None = None
    """The agent's own goal, shown after the persona."""
    dates: Dates | None = None
    """Whether lines carry dates: "always", "never", or where one answer spans more than 24 hours ("automatic")."""


class DeclaredKind(BaseModel):
    """What a space declares about a kind that the catalogue does not know. Absent or null: the default.

    `text` is the name of a payload field or a template such as "{customer} ordered {order.item}".
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    importance: Annotated[float, Field(ge=0, le=1)] | None = None
    """How much an event weighs in salience (0.5)."""
    shared: bool | None = None
    """Whether all agents of the space see its events (false)."""
    text: Annotated[str, Field(max_length=limits.TEXT_RULE_CHARS_MAX)] | None = None
    """How the text of an event is made (the first of `text`, `belief`, `summary` and `goal`)."""
    role: Role | None = None
    """Where a prompt shows it besides memory ("memory": nowhere)."""

    @field_validator("text")
    @classmethod
    def _readable(cls, text: str | None) -> str | None:
        try:
            text_rules.declared(text if text is not None else "text")
        except ValueError as error:
            raise PydanticCustomError(
                "text_rule",
                "{why}; write the name of a payload field, or a text with placeholders such as {{customer}} or "
                "{{order.item}}, and literal braces twice",
                {"why": str(error)},
            ) from None
        return text


class SpaceConfigured(Payload):
    """Settings of the space. A field that is absent keeps its value; null takes it back to the default.

    `shared_kinds` replaces the set of kinds that all its agents see, from then on. `kinds` declares kinds that the
    catalogue does not know, at most 64 in a space: it changes those that it names, each as a whole, and null takes one
    back. A declaration holds for later events; earlier ones keep their text, importance, readers and role.
    """

    shared_kinds: KindNames | None = None
    """The kinds that all agents of the space see."""
    scene_kinds: KindNames | None = None
    """The kinds whose newest shared events are the scene of prompts (`world.observed`, `run.started`)."""
    kinds: Annotated[dict[KindName, DeclaredKind | None], Field(max_length=limits.DECLARED_KINDS_MAX)] | None = None
    """Declarations of kinds of the space's own, by name."""

    @field_validator("kinds")
    @classmethod
    def _unknown(cls, declared: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        for name in declared or ():
            if name in CATALOGUE:
                raise PydanticCustomError(
                    "known_kind",
                    "{kind} is a kind of the catalogue, which no space declares; choose another name",
                    {"kind": name, "path": f"payload.kinds.{name}"},
                )
        return declared


class ToolUsed(Payload):
    """A call of a tool. It failed if `ok` is false, or absent while there is an `error`."""

    tool: str
    """The name of the tool."""
    arguments: Any = None
    """What it was called with, as JSON or as JSON in a string."""
    result: Any = None
    """What it answered, as any JSON."""
    ok: bool | None = None
    """Whether it succeeded."""
    error: Any = None
    """Why it failed, as any JSON."""


class SessionStarted(Payload):
    title: str | None = None
    """The title of the session."""


class SessionEnded(Payload):
    outcome: str | None = None
    """What came of the session."""
    reward: float | None = None
    """A number that rates it, for example of a benchmark."""

    @field_validator("reward", mode="before")
    @classmethod
    def _whole_rewards_too(cls, reward: object) -> object:
        return float(reward) if type(reward) is int else reward


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties of one kind of event."""

    name: str
    description: str
    """What an event of the kind says, in a sentence; "" for kinds that the catalogue does not know."""
    payload: type[Payload]
    text: TextRule
    importance: float
    """From 0 to 1: how much the event weighs in salience."""
    shared: bool = False
    """Whether every agent of the space sees its events, unless the space sets it differently."""
    bookkeeping: bool = False
    """Whether its events are folded without becoming memories of any agent."""
    recalled: bool = True
    """Whether recall and search find its events. False for texts that only name or close a session."""
    schema_version: int = 1
    role: Role = MEMORY
    details: TextRule | None = None
    """A longer form of the text, whose exact strings, such as paths and errors, recall finds too; None: the text."""


_ANY_TEXT = first_of("text", "belief", "summary", "goal")
_UNKNOWN = Kind("", "", Payload, _ANY_TEXT, DEFAULT_IMPORTANCE)
_TEXT = first_of("text")
_NONE = first_of()

CATALOGUE: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("run.started", "A run begins, with a shared goal.", RunStarted, first_of("goal"), 0.30, shared=True),
        Kind("world.observed", "Something happened that all agents perceive.", Text, _TEXT, 0.70, shared=True),
        Kind("agent.spoke", "An agent said or wrote something.", Text, _TEXT, 0.50),
        Kind("agent.thought", "An agent thought something and did not say it.", Text, _TEXT, 0.40),
        Kind("oracle.spoke", "A source of knowledge outside the agents answered.", Text, _TEXT, 0.50),
        Kind("hypothesis.proposed", "An agent proposed an explanation.", Text, _TEXT, 0.75),
        Kind("clue.found", "An agent found evidence.", Text, _TEXT, 0.80),
        Kind("user.injected", "A person said something, such as a user.", Text, _TEXT, 0.95, shared=True, role=VISITOR),
        Kind("judge.verdict", "A judge decided.", Verdict, _TEXT, 0.90, shared=True),
        Kind("verdict.final", "The last decision of a run.", Verdict, _TEXT, 1.00),
        Kind("agent.reflected", "An agent came to a belief.", Reflected, first_of("belief", "text"), 0.85, shared=True),
        Kind("reflection.failed", "A due reflection was not written.", ReflectionFailed, _NONE, 0.0, bookkeeping=True),
        Kind("agent.configured", "Settings of its agent.", AgentConfigured, _NONE, 0.0, bookkeeping=True),
        Kind("space.configured", "Settings of its space.", SpaceConfigured, _NONE, 0.0, bookkeeping=True),
        Kind(
            "tool.used",
            "An agent called a tool.",
            ToolUsed,
            text_rules.tool_text,
            0.40,
            role=ACTION,
            details=text_rules.tool_details,
        ),
        Kind("session.started", "A session begins.", SessionStarted, first_of("title"), 0.30, recalled=False),
        Kind("session.ended", "A session ends.", SessionEnded, first_of("outcome"), 0.30, recalled=False),
        Kind("clock.ticked", "Time passed: the turn of the space moves.", Payload, _NONE, 0.0, bookkeeping=True),
    )
}

CATALOGUE_VERSION = 5
"""Raised whenever `digest` changes: of two versions of Recallog on one folder the older one then gives way."""

DEFAULT_SHARED_KINDS = frozenset(name for name, kind in CATALOGUE.items() if kind.shared)
"""World, verdicts, visitors, run starts and reflections: the five that the ledger-view memory document names."""


def kind_of(name: str) -> Kind:
    """The kind `name` of the catalogue, or the kind that stands for all unknown ones."""
    return CATALOGUE.get(name, _UNKNOWN)


@lru_cache(maxsize=1024)
def declared(name: str, importance: float, shared: bool, text: str | None, role: Role) -> Kind:
    """The kind `name` as a space declares it."""
    rule = _ANY_TEXT if text is None else text_rules.declared(text)
    return Kind(name, "", Payload, rule, importance, shared=shared, role=role)


def check(name: str, payload: Mapping[str, Any]) -> None:
    """Raise pydantic's `ValidationError` if `payload` does not fit the kind `name`."""
    kind = CATALOGUE.get(name)
    if kind is not None:
        kind.payload.__pydantic_validator__.validate_python(payload)


@lru_cache(maxsize=1024)
def allows_only_a_text(name: str) -> bool:
    """Whether the payload of a kind may be a single text, as nearly all payloads are."""
    try:
        check(name, {"text": ""})
    except ValidationError:
        return False
    return True


def text_of(name: str, payload: Mapping[str, Any]) -> str:
    """The text of an event by the catalogue; "" if it has none. It is never the raw payload."""
    return kind_of(name).text(payload)


@cache
def digest() -> str:
    """16 hex digits that change whenever a row of the catalogue does; generations of views record it.

    Of its own facts only, the same with every version of Python and pydantic. A payload is its fields' names: a change
    of their bounds raises `CATALOGUE_VERSION` alone.
    """
    rows = [
        [
            kind.name,
            sorted(kind.payload.model_fields),
            kind.text.__name__,
            kind.importance,
            kind.shared,
            kind.bookkeeping,
            kind.recalled,
            kind.schema_version,
            kind.role,
            kind.details.__name__ if kind.details is not None else "",
        ]
        for kind in (*CATALOGUE.values(), _UNKNOWN)
    ]
    return hashlib.blake2b(json.dumps(rows, sort_keys=True).encode(), digest_size=8).hexdigest()
