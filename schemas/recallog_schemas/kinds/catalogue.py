"""The rows of the catalogue of kinds, and what a space declares beside them.

Importances are those of the ledger-view memory document; rows in the order of the memory model's table.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from recallog_schemas import limits, text_rules
from recallog_schemas.kinds import reactions
from recallog_schemas.kinds.episodes import (
    KindName,
    KindNames,
    Reflected,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Text,
    ToolUsed,
    Verdict,
)
from recallog_schemas.kinds.kind import ACTION, BOOKKEEPING, DEFAULT_IMPORTANCE, ENTRY, VISITOR, EpisodeRole, Kind
from recallog_schemas.kinds.payload import Part, Payload
from recallog_schemas.kinds.settings import AgentConfigured
from recallog_schemas.models.consensus import payloads as consensus
from recallog_schemas.models.conversations import payloads as conversation
from recallog_schemas.models.items import payloads as items
from recallog_schemas.models.long_term import payloads as entries
from recallog_schemas.text_rules import TextRule, first_of


class DeclaredKind(Part):
    """What a space declares about a kind that the catalogue does not know. Absent or null: the default.

    `text` is the name of a payload field or a template such as "{customer} ordered {order.item}".
    """

    importance: Annotated[float, Field(ge=0, le=1)] | None = None
    """How much an event weighs in salience (0.5)."""
    shared: bool | None = None
    """Whether all agents of the space see its events (false)."""
    text: Annotated[str, Field(max_length=limits.TEXT_RULE_CHARS_MAX)] | None = None
    """How the text of an event is made (the first of `text`, `belief`, `summary` and `goal`)."""
    role: EpisodeRole | None = None
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


_ANY_TEXT = first_of("text", "belief", "summary", "goal")
_UNKNOWN = Kind("", "", Payload, _ANY_TEXT, DEFAULT_IMPORTANCE)
_TEXT = first_of("text")
_NONE = first_of()


def _episode(
    name: str,
    description: str,
    payload: type[Payload],
    text: TextRule,
    importance: float,
    content: str = "text",
    **properties: Any,
) -> Kind:
    return Kind(name, description, payload, text, importance, content=frozenset(content.split()), **properties)


def _entry(
    name: str, description: str, payload: type[Payload], text: TextRule, content: str, *, recalled: bool = True
) -> Kind:
    importance = DEFAULT_IMPORTANCE if recalled else 0.0
    words = frozenset(content.split())
    return Kind(name, description, payload, text, importance, recalled=recalled, role=ENTRY, content=words)


def _bookkeeping(name: str, description: str, payload: type[Payload], content: str = "") -> Kind:
    words = frozenset(content.split())
    return Kind(name, description, payload, _NONE, 0.0, recalled=False, role=BOOKKEEPING, content=words)


CATALOGUE: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        _episode(
            "run.started", "A run begins, with a shared goal.", RunStarted, first_of("goal"), 0.30, "goal", shared=True
        ),
        _episode("world.observed", "Something happened that all agents perceive.", Text, _TEXT, 0.70, shared=True),
        _episode("agent.spoke", "An agent said or wrote something.", Text, _TEXT, 0.50),
        _episode("agent.thought", "An agent thought something and did not say it.", Text, _TEXT, 0.40),
        _episode("oracle.spoke", "A source of knowledge outside the agents answered.", Text, _TEXT, 0.50),
        _episode("hypothesis.proposed", "An agent proposed an explanation.", Text, _TEXT, 0.75),
        _episode("clue.found", "An agent found evidence.", Text, _TEXT, 0.80),
        _episode(
            "user.injected", "A person said something, such as a user.", Text, _TEXT, 0.95, shared=True, role=VISITOR
        ),
        _episode("judge.verdict", "A judge decided.", Verdict, _TEXT, 0.90, "text winner score", shared=True),
        _episode("verdict.final", "The last decision of a run.", Verdict, _TEXT, 1.00, "text winner score"),
        _episode(
            "agent.reflected",
            "An agent came to a belief.",
            Reflected,
            first_of("belief", "text"),
            0.85,
            "belief text insights",
            shared=True,
        ),
        _bookkeeping("reflection.failed", "A due reflection was not written.", reactions.ReflectionFailed, "reason"),
        _bookkeeping("agent.configured", "Settings of its agent.", AgentConfigured, "persona goal"),
        _bookkeeping("space.configured", "Settings of its space.", SpaceConfigured),
        _episode(
            "tool.used",
            "An agent called a tool.",
            ToolUsed,
            text_rules.tool_text,
            0.40,
            "arguments result error",
            role=ACTION,
            details=text_rules.tool_details,
        ),
        _episode(
            "session.started", "A session begins.", SessionStarted, first_of("title"), 0.30, "title", recalled=False
        ),
        _episode(
            "session.ended", "A session ends.", SessionEnded, first_of("outcome"), 0.30, "outcome", recalled=False
        ),
        _bookkeeping("clock.ticked", "Time passed: the turn of the space moves.", Payload),
        _episode(
            "consensus.recorded",
            "Agents agreed on a conclusion.",
            consensus.ConsensusRecorded,
            text_rules.declared("{topic}: {conclusion}"),
            0.90,
            "topic conclusion key_claims cruxes domain tags",
            shared=True,
        ),
        _episode(
            "dissent.recorded",
            "An agent objected to a conclusion.",
            consensus.DissentRecorded,
            first_of("content"),
            0.60,
            "topic content reasoning rebuttal",
            shared=True,
        ),
        _bookkeeping("consensus.superseded", "A consensus was replaced.", consensus.ConsensusSuperseded),
        _entry(
            "memory.retained",
            "An agent keeps a text on purpose.",
            entries.Retained,
            _TEXT,
            "text entity category source topic metadata",
        ),
        _entry(
            "experience.recorded",
            "An agent keeps what it did and what came of it.",
            entries.Experience,
            text_rules.experience_text,
            "action_type summary outcome agent_role",
        ),
        _bookkeeping(
            "memory.updated",
            "An entry was changed by its owner.",
            entries.Updated,
            "text entity category source topic metadata",
        ),
        _bookkeeping("memory.retracted", "An entry was taken back by its owner.", entries.Retracted, "reason"),
        _bookkeeping("memory.archived", "An entry was put away by its owner.", entries.Archived, "reason"),
        _bookkeeping("memory.erased", "Entries were forgotten by their owner.", entries.Erased, "reason"),
        _bookkeeping("memory.transferred", "Entries were given to another agent.", entries.Transferred),
        _bookkeeping("memory.metered", "Units were granted to an agent or used by it.", entries.Metered, "reason"),
        _bookkeeping("memory.accessed", "Entries were read in a way that counts.", entries.Accessed),
        _bookkeeping("memory.outcome_reported", "What came of using entries.", entries.OutcomeReported, "cause"),
        _bookkeeping("memory.tier_changed", "An entry was moved to another tier.", entries.TierChanged, "reason"),
        _bookkeeping("memory.consolidated", "A plan that moves and archives entries.", entries.Consolidated),
        _entry("item.put", "An item got a value.", items.ItemPut, _NONE, "value", recalled=False),
        _entry("item.appended", "A text was added to an item.", items.ItemAppended, _NONE, "text", recalled=False),
        _entry("item.deleted", "An item was deleted.", items.ItemDeleted, _NONE, "", recalled=False),
        _entry("item.moved", "An item got another key.", items.ItemMoved, _NONE, "", recalled=False),
        _entry("item.drained", "The values of a queue were taken.", items.ItemDrained, _NONE, "", recalled=False),
        _bookkeeping(
            "message.added", "A message of a conversation that is no episode.", conversation.MessageAdded, "message"
        ),
        _bookkeeping("message.part", "A part of a large message.", conversation.MessagePart, "data"),
        _bookkeeping(
            "conversation.compacted",
            "The beginning of a session is replaced by a summary.",
            conversation.ConversationCompacted,
            "summary",
        ),
        _bookkeeping("message.removed", "A message was taken out of its conversation.", conversation.MessageRemoved),
        _bookkeeping("turn.ended", "An agent has finished a turn of a session.", conversation.TurnEnded),
        _bookkeeping("reaction.done", "A trigger was answered.", reactions.ReactionDone),
        _bookkeeping("reaction.failed", "A trigger was not answered.", reactions.ReactionFailed, "reason"),
    )
}

RETAINED = "memory.retained"
"""The kind of the events that stand for entries in answers."""

ENTRIES = frozenset(name for name, kind in CATALOGUE.items() if kind.role == ENTRY)
"""The kinds whose events an agent keeps on purpose."""

CATALOGUE_VERSION = 9
"""Raised whenever `digest` changes: of two versions of Recallog on one folder the older one then gives way."""

DEFAULT_SHARED_KINDS = frozenset(name for name, kind in CATALOGUE.items() if kind.shared)
"""World, verdicts, visitors, run starts and reflections, which the ledger-view memory document names; consensus and
dissent."""


def kind_of(name: str) -> Kind:
    """The kind `name` of the catalogue, or the kind that stands for all unknown ones."""
    return CATALOGUE.get(name, _UNKNOWN)


@lru_cache(maxsize=1024)
def declared(name: str, importance: float, shared: bool, text: str | None, role: EpisodeRole) -> Kind:
    """The kind `name` as a space declares it."""
    rule = _ANY_TEXT if text is None else text_rules.declared(text)
    return Kind(name, "", Payload, rule, importance, shared=shared, role=role)


def check(name: str, payload: Mapping[str, Any]) -> None:
    """Raise pydantic's `ValidationError` if `payload` does not fit the kind `name`."""
    kind = CATALOGUE.get(name)
    if kind is not None:
        kind.payload.__pydantic_validator__.validate_python(payload)


def fields_beside(name: str, path: Sequence[str]) -> Sequence[str]:
    """The fields of the object in a payload of the kind `name` in which the last field of `path` is."""
    model: type[BaseModel] = kind_of(name).payload
    for step in path[:-1]:
        if step in model.model_fields:
            model = next(_models_in(model.model_fields[step].annotation), model)
    return [field.alias or own for own, field in model.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _models_in(each)


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
            kind.recalled,
            kind.schema_version,
            kind.role,
            kind.details.__name__ if kind.details is not None else "",
            None if kind.content is None else sorted(kind.content),
        ]
        for kind in (*CATALOGUE.values(), _UNKNOWN)
    ]
    return hashlib.blake2b(json.dumps(rows, sort_keys=True).encode(), digest_size=8).hexdigest()
