"""The catalogue of kinds: kinds of the kernel, of the built-in models, and registered ones; and the kinds
that a space declares.

Importances are those of the ledger-view memory document.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ParamSpec, TypeVar, cast, get_args

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from recallog_schemas import limits, models, names, text_rules
from recallog_schemas.errors import SettingsError
from recallog_schemas.kinds.episodes import (
    KindName,
    KindNames,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Text,
    ToolUsed,
    VerdictText,
)
from recallog_schemas.kinds.erasures import UnitErased
from recallog_schemas.kinds.kind import (
    ACTION,
    DEFAULT_IMPORTANCE,
    VISITOR,
    EpisodeRole,
    Kind,
    bookkeeping,
    episode,
)
from recallog_schemas.kinds.payload import Part, Payload
from recallog_schemas.kinds.reactions import ReactionDone, ReactionFailed
from recallog_schemas.kinds.settings import AgentConfigured, SpaceTiers
from recallog_schemas.kinds.trust import TrustSettings
from recallog_schemas.text_rules import first_of
from recallog_schemas.validation import KIND_PATTERN, NOT_A_KIND

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


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
            text_rules.make_rule(text if text is not None else "text")
        except ValueError as error:
            raise PydanticCustomError(
                "text_rule",
                "{why}; write the name of a payload field, or a text with placeholders such as {{customer}} or "
                "{{order.item}}, and literal braces twice",
                {"why": str(error)},
            ) from None
        return text


class SpaceConfigured(Payload):
    """Settings of the space. An absent field keeps its value; null resets it to the default.

    `shared_kinds` replaces the set of kinds that all its agents see, from then on. `kinds` declares kinds that are not
    built in, at most 64 in a space: it replaces the declarations that it names, and null removes one. A
    declaration applies to later events; earlier ones keep their text, importance, readers and role.
    """

    shared_kinds: KindNames | None = None
    """The kinds that all agents of the space see."""
    scene_kinds: KindNames | None = None
    """The kinds whose newest shared events are the scene of prompts (`world.observed`, `run.started`)."""
    kinds: Annotated[dict[KindName, DeclaredKind | None], Field(max_length=limits.DECLARED_KINDS_MAX)] | None = None
    """Declarations of the space's own kinds, by name."""
    scene_notes: (
        Annotated[
            dict[KindName, Annotated[int, Field(ge=1, le=limits.SCENE_NOTES_MAX)]],
            Field(max_length=limits.SCENE_KINDS_MAX),
        ]
        | None
    ) = None
    """How many of the newest shared events of further kinds are in the scene, such as 8 of `agent.spoke` and 5 of
    `judge.verdict` (none). It is replaced as a whole."""
    trust: TrustSettings | None = None
    """Which sources are trusted, and for what. It is replaced as a whole."""
    tiers: SpaceTiers | None = None
    """The tiers of its entries. It is replaced as a whole."""

    @field_validator("kinds")
    @classmethod
    def _unknown(cls, declared: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        for name in declared or ():
            # Not in the whole catalogue: what is registered in a process must not make an old event invalid.
            if name in BUILT_IN_KINDS:
                raise PydanticCustomError(
                    "known_kind",
                    "{kind} is a built-in kind, which no space declares; choose another name",
                    {"kind": name, "path": f"payload.kinds.{name}"},
                )
        return declared


_ANY_TEXT = first_of("text", "belief", "summary", "goal")
_UNKNOWN = Kind("", "", Payload, _ANY_TEXT, DEFAULT_IMPORTANCE)
_TEXT = first_of("text")

_OF_THE_KERNEL = (
    episode(
        "run.started",
        "A run begins, with a shared goal.",
        RunStarted,
        first_of("goal"),
        0.30,
        "goal",
        shared=True,
        directs=frozenset({"shared_kinds"}),
    ),
    episode("world.observed", "Something happened that all agents perceive.", Text, _TEXT, 0.70, shared=True),
    episode("agent.spoke", "An agent said or wrote something.", Text, _TEXT, 0.50),
    episode("agent.thought", "An agent thought something and did not say it.", Text, _TEXT, 0.40),
    episode("oracle.spoke", "A source of knowledge outside the agents answered.", Text, _TEXT, 0.50),
    episode("hypothesis.proposed", "An agent proposed an explanation.", Text, _TEXT, 0.75),
    episode("clue.found", "An agent found evidence.", Text, _TEXT, 0.80),
    episode("user.injected", "A person said something, such as a user.", Text, _TEXT, 0.95, shared=True, role=VISITOR),
    episode("judge.verdict", "A judge decided.", VerdictText, _TEXT, 0.90, "text winner score", shared=True),
    episode("verdict.final", "The last decision of a run.", VerdictText, _TEXT, 1.00, "text winner score"),
    bookkeeping("agent.configured", "Settings of its agent.", AgentConfigured, "persona goal", version=4),
    bookkeeping("space.configured", "Settings of its space.", SpaceConfigured, needs="operate", version=3),
    episode(
        "tool.used",
        "An agent called a tool.",
        ToolUsed,
        text_rules.tool_text,
        0.40,
        "arguments result error",
        role=ACTION,
        details=text_rules.tool_details,
    ),
    episode("session.started", "A session begins.", SessionStarted, first_of("title"), 0.30, "title", recalled=False),
    episode(
        "session.ended",
        "A session ends.",
        SessionEnded,
        first_of("outcome"),
        0.30,
        "outcome",
        recalled=False,
        directs=None,
    ),
    bookkeeping("clock.ticked", "Time passed: the turn of the space moves.", Payload),
    bookkeeping("reaction.done", "A trigger was answered.", ReactionDone),
    bookkeeping("reaction.failed", "A trigger was not answered.", ReactionFailed, "reason"),
    # Its keys may belong to any space: a program that publishes it can erase everything.
    bookkeeping("unit.erased", "What a unit contained is erased.", UnitErased, "names reason", needs="operate"),
)


def _built_in() -> Iterator[tuple[str, Kind]]:
    """Each kind of the kernel and of the built-in models, with the name of its model: "" for the kernel."""
    yield from (("", kind) for kind in _OF_THE_KERNEL)
    for module in models.import_parts("recallog_schemas", "kinds"):
        yield from ((module.__name__.split(".")[-2], kind) for kind in module.KINDS)


_catalogue = {kind.name: kind for _, kind in _built_in()}
_models = {kind.name: model for model, kind in _built_in()}
"""The name of the model of each kind of the catalogue."""

CATALOGUE: Mapping[str, Kind] = _catalogue
"""The kinds of the kernel, of the built-in models, and of the models that were registered, by name."""

BUILT_IN_KINDS = frozenset(_catalogue)
"""The kinds that every process of this version knows, whatever is registered there."""

_WHOLE = 9
"""The last version of the whole catalogue. Views that were built before each kind had a version record it."""

_cached: list[Callable[[], None]] = []
"""Functions that clear results which follow from the catalogue."""


def cache_by_catalogue(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Cache the results of a function that follow from the catalogue: a registration clears them."""
    wrapped = lru_cache(maxsize=1024)(function)
    _cached.append(wrapped.cache_clear)
    return cast(Callable[Parameters, Result], wrapped)


def register(model: str, kinds: Iterable[Kind]) -> None:
    """Add the kinds of `model` to the catalogue of this process: all of them or none.

    A kind that is already there with the same model and definition is skipped. Raises
    `SettingsError` for a name that is not valid for a kind, or that has another model or definition.
    """
    added: dict[str, Kind] = {}
    for kind in kinds:
        if re.fullmatch(KIND_PATTERN, kind.name) is None or len(kind.name) > limits.KIND_CHARS_MAX:
            raise SettingsError(f"the model {model!r}: {kind.name!r} {NOT_A_KIND}")
        owner = _models.get(kind.name, model)
        if owner != model:
            other = f"the model {owner!r}" if owner else "Recallog itself"
            raise SettingsError(f"the model {model!r}: the kind {kind.name} belongs to {other}; choose another name")
        if added.setdefault(kind.name, _catalogue.get(kind.name, kind)) != kind:
            raise SettingsError(
                f"the model {model!r}: the kind {kind.name} has another definition already; define each kind once"
            )
    _models.update(dict.fromkeys(added, model))
    _catalogue.update(added)
    for clear in _cached:
        clear()


def list_registered() -> list[str]:
    """The kinds that were registered, in the order of their registration."""
    return [name for name in _catalogue if name not in BUILT_IN_KINDS]


def model_of(name: str) -> str:
    """The name of the model of a kind; "" for a kind of the kernel, and for an unknown one."""
    return _models.get(name, "")


def shared_kinds() -> frozenset[str]:
    """The kinds that all agents of a space see, unless the space sets others."""
    return frozenset(name for name, kind in CATALOGUE.items() if kind.shared)


@cache_by_catalogue
def entry_kinds() -> frozenset[str]:
    """The kinds whose events contain words of an entry."""
    return frozenset(name for name, kind in CATALOGUE.items() if kind.entry)


@cache_by_catalogue
def kinds_with_sources() -> frozenset[str]:
    """The kinds whose events name what they are made from."""
    return frozenset(name for name, kind in CATALOGUE.items() if kind.sources)


@cache_by_catalogue
def kinds_that_forget() -> frozenset[str]:
    """The kinds whose events erase the content of earlier events."""
    return frozenset(name for name, kind in CATALOGUE.items() if kind.needs == "forget")


def kind_of(name: str) -> Kind:
    """The kind `name` of the catalogue, or the definition that all unknown kinds have."""
    return CATALOGUE.get(name, _UNKNOWN)


@lru_cache(maxsize=1024)
def declare_kind(name: str, importance: float, shared: bool, text: str | None, role: EpisodeRole) -> Kind:
    """The kind `name` as a space declares it."""
    rule = _ANY_TEXT if text is None else text_rules.make_rule(text)
    return Kind(name, "", Payload, rule, importance, shared=shared, role=role)


def check(name: str, payload: Mapping[str, Any]) -> None:
    """Raise pydantic's `ValidationError` if `payload` does not fit the kind `name`."""
    kind = CATALOGUE.get(name)
    if kind is not None:
        kind.payload.__pydantic_validator__.validate_python(payload)


def leave_out_misfits(name: object, payload: Mapping[str, Any]) -> dict[str, Any]:
    """A stored payload of the kind `name` without the values of `Kind.later` fields that do not fit."""
    later = CATALOGUE[name].later if isinstance(name, str) and name in CATALOGUE else frozenset()
    if later.isdisjoint(payload):
        return {**payload}
    try:
        check(str(name), payload)
    except ValidationError as error:
        later &= {each["loc"][0] for each in error.errors() if each["loc"]}
        return {field: value for field, value in payload.items() if field not in later}
    return {**payload}


def in_nfc(name: str, payload: dict[str, Any]) -> dict[str, Any]:
    """A valid payload of the kind `name` with its names and ids in NFC: the same object if they are."""
    kind = CATALOGUE.get(name)
    changed = {}
    for field in _identifying(kind.payload) if kind is not None else ():
        value = payload.get(field)
        if (found := _in_nfc(value)) != value:
            changed[field] = found
    return {**payload, **changed} if changed else payload


def _in_nfc(value: Any) -> Any:
    if isinstance(value, list | tuple):
        found = [_in_nfc(each) for each in value]
        return tuple(found) if isinstance(value, tuple) else found
    if isinstance(value, dict):
        return {names.in_nfc(key): _in_nfc(item) for key, item in value.items()}
    return names.in_nfc(value)


@lru_cache(maxsize=1024)
def _identifying(model: type[BaseModel]) -> Sequence[str]:
    """The fields of an object that are names or ids, or contain some."""
    return [
        name
        for name, field in model.model_fields.items()
        if any(isinstance(each, names.OneForm) for each in (*field.metadata, *_metadata(field.annotation)))
        or any(map(_identifying, _models_in(field.annotation)))
    ]


def _metadata(annotation: Any) -> Iterator[Any]:
    """The metadata of a type and of the types in it."""
    yield from getattr(annotation, "__metadata__", ())
    for each in get_args(annotation):
        yield from _metadata(each)


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


@cache_by_catalogue
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


def version(names: frozenset[str] | None = None) -> int:
    """The sum of the versions of the built-in kinds among `names` (None: of all), which only grows.

    It is greater than the version of the whole catalogue that earlier code recorded.
    """
    return _WHOLE + sum(kind.version for kind in _of(names))


@lru_cache(maxsize=1024)
def digest(names: frozenset[str] | None = None) -> str:
    """16 hex digits that change whenever the definition of a built-in kind among `names` (None: of any) does."""
    return _digest([*_of(names), _UNKNOWN])


@cache_by_catalogue
def definition(name: str) -> str:
    """16 hex digits that change whenever the definition of a kind does; "" for a kind that the catalogue lacks."""
    kind = CATALOGUE.get(name)
    return "" if kind is None else _digest([kind])


def _of(names: frozenset[str] | None) -> list[Kind]:
    return [CATALOGUE[name] for name in sorted(BUILT_IN_KINDS if names is None else BUILT_IN_KINDS & names)]


def _digest(kinds: Iterable[Kind]) -> str:
    """Computed from the definitions only, so the same with every version of Python and pydantic. A payload counts by
    the names of its fields: a change of their bounds raises the version of the kind."""
    rows = [
        [
            kind.name,
            sorted(kind.payload.model_fields),
            kind.text.__name__,
            kind.importance,
            kind.shared,
            kind.recalled,
            kind.schema_version,
            kind.version,
            kind.role,
            kind.details.__name__ if kind.details is not None else "",
            None if kind.content is None else sorted(kind.content),
            sorted(kind.uncompared),
        ]
        for kind in kinds
    ]
    return hashlib.blake2b(json.dumps(rows, sort_keys=True).encode(), digest_size=8).hexdigest()
