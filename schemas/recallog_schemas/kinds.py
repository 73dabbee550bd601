"""The catalogue of kinds: for each known kind its payload, its text, its importance, and who sees it.

Kinds are an open set. An unknown kind carries any JSON object, has importance 0.5, is private to its agent, and its
text is the first of `text`, `belief`, `summary`, `goal` that its payload has. Importances are those of the ledger-view
memory document; rows in the order of the memory model's table.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from recallog_schemas import limits

KIND_PATTERN = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"

KindName = Annotated[str, Field(pattern=KIND_PATTERN, max_length=limits.KIND_CHARS_MAX)]
KindNames = Annotated[list[KindName], Field(max_length=limits.SHARED_KINDS_MAX)]


class Payload(BaseModel):
    """Fields that a kind knows; others are allowed and kept."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


class RunStarted(Payload):
    goal: str | None = None
    shared_kinds: KindNames | None = None


class Text(Payload):
    text: str


class Verdict(Text):
    winner: str | None = None
    score: Any = None


class Reflected(Payload):
    """What an agent has come to believe. `based_on` are the ids of the events it rests on."""

    belief: str | None = None
    text: str | None = None
    based_on: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _says_something(self) -> "Reflected":
        if self.belief is None and self.text is None:
            raise PydanticCustomError("missing", "give belief (or text)")
        return self


class ReflectionFailed(Payload):
    trigger: str
    reason: str


class SalienceWeights(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    relevance: Annotated[float, Field(ge=0, le=limits.WEIGHT_MAX)] = 0.30
    recency: Annotated[float, Field(ge=0, le=limits.WEIGHT_MAX)] = 0.40
    importance: Annotated[float, Field(ge=0, le=limits.WEIGHT_MAX)] = 0.30


class AgentConfigured(Payload):
    """Settings of one agent. A field that is absent keeps its value; null takes it back to the default."""

    window: Annotated[int, Field(ge=1, le=limits.LOG_EVENTS_KEPT)] | None = None
    use_salience: bool | None = None
    salience_weights: SalienceWeights | None = None
    salience_top_k: Annotated[int, Field(ge=1, le=limits.LOG_EVENTS_KEPT)] | None = None
    reflection_threshold: Annotated[int, Field(ge=1, le=limits.INTEGER_MAX)] | None = None
    persona: str | None = None
    goal: str | None = None


class SpaceConfigured(Payload):
    """Settings of the space. `shared_kinds` replaces the set of kinds that all its agents see, from then on."""

    shared_kinds: KindNames | None = None
    scene_kinds: KindNames | None = None


class ToolUsed(Payload):
    tool: str
    arguments: Any = None
    result: Any = None
    ok: bool | None = None


class SessionStarted(Payload):
    title: str | None = None


class SessionEnded(Payload):
    outcome: str | None = None
    reward: float | None = None

    @field_validator("reward", mode="before")
    @classmethod
    def _whole_rewards_too(cls, reward: object) -> object:
        return float(reward) if type(reward) is int else reward


def _first(*fields: str) -> Callable[[Mapping[str, Any]], str]:
    def text(payload: Mapping[str, Any]) -> str:
        for field in fields:
            value = payload.get(field)
            if isinstance(value, str):
                return value
        return ""

    text.__name__ = "first:" + ",".join(fields)
    return text


def _tool_text(payload: Mapping[str, Any]) -> str:
    result = payload.get("result")
    if result is None:
        return str(payload["tool"])[: limits.TOOL_TEXT_CHARS_MAX]
    words = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return f"{payload['tool']}: {words}"[: limits.TOOL_TEXT_CHARS_MAX]


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known about one kind of event."""

    name: str
    payload: type[Payload]
    text: Callable[[Mapping[str, Any]], str]
    importance: float
    """From 0 to 1: how much the event weighs in salience."""
    shared: bool = False
    """Seen by every agent of its space, unless the space says otherwise."""
    bookkeeping: bool = False
    """Folded, but nobody's memory."""
    schema_version: int = 1


_ANY_TEXT = _first("text", "belief", "summary", "goal")
_UNKNOWN = Kind("", Payload, _ANY_TEXT, 0.5)
_TEXT = _first("text")
_NONE = _first()

CATALOGUE: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("run.started", RunStarted, _first("goal"), 0.30, shared=True),
        Kind("world.observed", Text, _TEXT, 0.70, shared=True),
        Kind("agent.spoke", Text, _TEXT, 0.50),
        Kind("agent.thought", Text, _TEXT, 0.40),
        Kind("oracle.spoke", Text, _TEXT, 0.50),
        Kind("hypothesis.proposed", Text, _TEXT, 0.75),
        Kind("clue.found", Text, _TEXT, 0.80),
        Kind("user.injected", Text, _TEXT, 0.95, shared=True),
        Kind("judge.verdict", Verdict, _TEXT, 0.90, shared=True),
        Kind("verdict.final", Verdict, _TEXT, 1.00),
        Kind("agent.reflected", Reflected, _first("belief", "text"), 0.85, shared=True),
        Kind("reflection.failed", ReflectionFailed, _NONE, 0.0, bookkeeping=True),
        Kind("agent.configured", AgentConfigured, _NONE, 0.0, bookkeeping=True),
        Kind("space.configured", SpaceConfigured, _NONE, 0.0, bookkeeping=True),
        Kind("tool.used", ToolUsed, _tool_text, 0.40),
        Kind("session.started", SessionStarted, _first("title"), 0.30),
        Kind("session.ended", SessionEnded, _first("outcome"), 0.30),
        Kind("clock.ticked", Payload, _NONE, 0.0, bookkeeping=True),
    )
}

CATALOGUE_VERSION = 2
"""Raised whenever `digest` changes: of two versions of Recallog on one folder the older one then gives way."""

DEFAULT_SHARED_KINDS = frozenset(name for name, kind in CATALOGUE.items() if kind.shared)
"""World, verdicts, visitors, run starts and reflections: the five that the ledger-view memory document names."""

_VALIDATE = {name: kind.payload.__pydantic_validator__.validate_python for name, kind in CATALOGUE.items()}


def kind_of(name: str) -> Kind:
    """The catalogue's row for `name`; for an unknown kind the row of all unknown ones."""
    return CATALOGUE.get(name, _UNKNOWN)


def check(name: str, payload: Mapping[str, Any]) -> None:
    """Raise pydantic's `ValidationError` where `payload` is not one of the kind `name`."""
    validate = _VALIDATE.get(name)
    if validate is not None:
        validate(payload)


def _asks_for_more_than_a_text(kind: Kind) -> bool:
    try:
        kind.payload.model_validate({"text": ""})
    except ValidationError:
        return True
    return False


MORE_THAN_A_TEXT = frozenset(kind.name for kind in CATALOGUE.values() if _asks_for_more_than_a_text(kind))
"""The kinds that a payload of one text does not satisfy. Nearly all events have just that."""


def text_of(name: str, payload: Mapping[str, Any]) -> str:
    """The event in words, "" where it has none. Never the raw payload."""
    return kind_of(name).text(payload)


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
            kind.schema_version,
        ]
        for kind in (*CATALOGUE.values(), _UNKNOWN)
    ]
    return hashlib.blake2b(json.dumps(rows, sort_keys=True).encode(), digest_size=8).hexdigest()
