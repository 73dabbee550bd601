"""The parameters that operations share: their types, bounds and descriptions, each declared once.

A type is what callers in Python write, for example a time or a text for a time. `Field` and the validators define the
accepted values, and doors show the description. The documentation of each operation states what None means.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict, TypeVar, cast

import msgspec
from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from recallog.operations.operation import IN_BODY, IN_PROCESS, MAKES_REPEATABLE, NEEDS_FORGET
from recallog.reading.time_travel import AsOf
from recallog.retrieval.channels import Channel, Fusion, Preset
from recallog_projections.tables import Log, Table
from recallog_schemas import Event, Position, codec, kinds, limits
from recallog_schemas.errors import InvalidArgument, InvalidEvent, OutOfRange
from recallog_schemas.kinds.payload import Tier
from recallog_schemas.names import IN_NFC, NAME
from recallog_schemas.validation import json_of, time_of
from recallog_streams.progress import Progress

Parsed = TypeVar("Parsed")
Row = TypeVar("Row", bound=msgspec.Struct)

_DIGEST_PATTERN = r"^([0-9]{1,9}:)?[0-9]{1,18}:[0-9A-Fa-f]{32}$"
_POSITION_PATTERN = r"^([0-9]+:)?[0-9]+$"
_POSITIONS: list[Any] = [
    {"type": "string", "pattern": _POSITION_PATTERN, "examples": ["0:41"]},
    # In the form that answers have.
    {
        "type": "object",
        "properties": {"partition": {"type": "integer", "minimum": 0}, "offset": {"type": "integer", "minimum": 0}},
        "required": ["partition", "offset"],
        "additionalProperties": False,
    },
]
_A_TIME = {"type": "string", "format": "date-time"}


def optional(parse: Callable[[object], Parsed]) -> Callable[[object], Parsed | None]:
    return lambda value: None if value is None else parse(value)


def _position(value: object) -> Position:
    """A position that was given as a position, as its text, or as its fields in JSON."""
    if isinstance(value, Mapping) and value.keys() == {"partition", "offset"}:
        value = Position(value["partition"], value["offset"])
    if isinstance(value, str):
        with suppress(OutOfRange):
            value = Position.parse(value)
    if (
        isinstance(value, Position)
        and type(value.partition) is type(value.offset) is int
        and 0 <= value.partition <= limits.PARTITION_MAX
        and 0 <= value.offset <= limits.INTEGER_MAX
    ):
        return value
    raise PydanticCustomError("position", "should be a position, for example 0:41")


def _as_of(value: object) -> AsOf:
    if isinstance(value, datetime) or (isinstance(value, str) and not re.fullmatch(_POSITION_PATTERN, value)):
        try:
            return time_of(value)
        except PydanticCustomError as error:
            raise PydanticCustomError(
                error.type, f"{error.message_template}, or a position, for example 0:41"
            ) from None
    return _position(value)


def _instance_of(kind: type[Parsed]) -> Callable[[object], Parsed]:
    def check(value: object) -> Parsed:
        if isinstance(value, kind):
            return value
        raise PydanticCustomError("is_instance_of", f"should be a {kind.__name__}")

    return check


def _event(value: object) -> Event:
    if isinstance(value, Mapping):
        value = codec.make(dict(value))
    if not isinstance(value, Event):
        raise PydanticCustomError("event", "should be an Event, or a dict of its fields")
    if value.audience and {*value.audience} != {value.agent} and kinds.kind_of(value.kind).owned:
        raise InvalidEvent(
            f"audience: {value.kind} changes only what {value.agent} has, and reaches nobody else. Leave the audience "
            f"out. To tell another agent, publish agent.spoke with this audience, or {value.kind} as that agent",
            path="audience",
            rule="owned",
        )
    return value


def _events(value: object) -> list[Event]:
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise PydanticCustomError("events", "should be a list of events")
    events = []
    for index, each in enumerate(value):
        try:
            events.append(_event(each))
        except PydanticCustomError as error:
            raise InvalidEvent(f"{index}: {error.message()}", path=str(index), rule=error.type) from None
        except InvalidEvent as error:
            raise error.under(str(index)) from None
    return events


def _has_words(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "give at least one word to search for")
    return text


def _markers(words: Sequence[str]) -> Sequence[str]:
    for index, word in enumerate(words):
        if not limits.MARKER_CHARS_MIN <= len(word) <= limits.MARKER_CHARS_MAX:
            path, least, most = f"markers.{index}", limits.MARKER_CHARS_MIN, limits.MARKER_CHARS_MAX
            raise InvalidArgument(f"{path}: should have {least} to {most:,} characters", path=path, rule="length")
    return words


def _digests(lines: Sequence[str] | None) -> Sequence[str] | None:
    for index, line in enumerate(lines or ()):
        if not re.fullmatch(_DIGEST_PATTERN, line):
            path = f"digests.{index}"
            raise InvalidArgument(
                f"{path}: should be a line that digest printed, PARTITION:OFFSET:DIGEST with 32 hexadecimal digits",
                path=path,
                rule="digest",
            )
    return lines


def identifier_of(description: str) -> Any:
    return Field(min_length=1, max_length=limits.ID_CHARS_MAX, description=description)


def clamp_to(least: int, most: int) -> AfterValidator:
    """A validator that limits a number to the range from `least` to `most`."""
    return AfterValidator(lambda number: max(least, min(number, most)))


def _json_object(value: object) -> Mapping[str, Any]:
    if isinstance(value, str):
        with suppress(ValueError):
            value = json_of(value)
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    raise PydanticCustomError("json_object", "should be a JSON object, or its text")


def _filter(value: object) -> Mapping[str, Any]:
    from recallog.reading import filters  # only calls with a filter need it

    return filters.plain(_json_object(value))


OptionalObject = Annotated[
    Mapping[str, Any] | str | None,
    PlainValidator(optional(_json_object)),
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string"}, {"type": "null"}]}),
]
MemoryFilter = Annotated[
    Mapping[str, Any] | str | None,
    PlainValidator(optional(_filter)),
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string"}, {"type": "null"}]}),
    Field(
        description="Only memories whose fields match, as JSON: "
        '{"metadata.city": "Bern", "tags": {"$contains": "vip"}, "confidence": {"$gte": 0.5}}; '
        "also $ne, $in, $exists, $and, $or, $not."
    ),
]
OptionalTime = Annotated[
    datetime | str | None,
    PlainValidator(optional(time_of)),
    WithJsonSchema({"anyOf": [_A_TIME, {"type": "null"}]}),
]
_OptionalPosition = Annotated[
    Position | str | None,
    PlainValidator(optional(_position)),
    WithJsonSchema({"anyOf": [*_POSITIONS, {"type": "null"}]}),
]

# Who, and which event

Space = Annotated[str, NAME, Field(description="Name of the space.")]
Agent = Annotated[str, NAME, Field(description="Name of the agent.")]
OneSpace = Annotated[str | None, NAME, Field(description="Only this space; default: all.")]
OneAgent = Annotated[str | None, NAME, Field(description="Only what this agent may see; default: everything.")]
EventId = Annotated[str, Field(description="Id of the event."), IN_NFC]
LineageId = Annotated[
    str,
    Field(description="Id of an event or entry; or that of a trigger, for what answered it."),
    IN_NFC,
]
LineageDepth = Annotated[
    int | None,
    Field(ge=1, le=limits.LINEAGE_NODES, description="Number of steps in each direction; default: all."),
]
TriggerId = Annotated[str, Field(description="Id of the trigger."), IN_NFC]
EventIds = Annotated[
    Sequence[str],
    Field(max_length=limits.ENTRIES_IDS_MAX, description="Ids of events, in the order of the answer."),
    IN_NFC,
    IN_BODY,
]
FurtherIds = Annotated[
    Sequence[str],
    Field(max_length=limits.ENTRIES_IDS_MAX, description="Ids of further events and entries to begin with."),
    IN_NFC,
]
Partition = Annotated[
    int | None, Field(ge=0, le=limits.PARTITION_MAX, description="Only this partition; default: all.")
]

# What

EventFields = Annotated[
    Event | Mapping[str, Any],
    PlainValidator(_event, json_schema_input_type=Event),
    Field(description="The event, or a dict of its fields."),
    MAKES_REPEATABLE,
]
ManyEvents = Annotated[
    Sequence[Event | Mapping[str, Any]],
    PlainValidator(_events, json_schema_input_type=Annotated[list[Event], Field(max_length=limits.APPEND_EVENTS_MAX)]),
    Field(description=f"The events, at most {limits.APPEND_EVENTS_MAX:,}, in order."),
    MAKES_REPEATABLE,
]
RecallQuery = Annotated[str, Field(max_length=limits.RECALL_QUERY_CHARS_MAX, description="The question."), IN_BODY]
SearchQuery = Annotated[
    str,
    Field(min_length=1, max_length=limits.SEARCH_QUERY_CHARS_MAX, description="The question."),
    AfterValidator(_has_words),
    IN_BODY,
]
RelevanceQuery = Annotated[str | None, Field(description="Text to measure relevance against.")]

# How much

Window = Annotated[
    int | None,
    Field(ge=1, le=limits.LOG_EVENTS_MAX, description="Number of events; default: the agent's setting, else 8."),
]
SalientTopK = Annotated[
    int | None,
    Field(ge=1, le=limits.LOG_EVENTS_MAX, description="Number of events; default: the agent's setting, else 8."),
]
RecallTopK = Annotated[int, Field(ge=1, le=limits.RECALL_HITS_MAX, description="Number of memories.")]
SearchLimit = Annotated[
    int,
    clamp_to(1, limits.SEARCH_HITS_MAX),
    Field(description=f"Number of previews, limited to 1 to {limits.SEARCH_HITS_MAX}."),
]
IncludeExternal = Annotated[bool, Field(description="Also ask the external sources.")]
ExternalNames = Annotated[Sequence[str], Field(description="With `include_external`, only these; default: all.")]
PageLimit = Annotated[int, Field(ge=1, le=limits.PAGE_ITEMS_MAX, description="Number of events per page.")]
EntriesBefore = Annotated[
    int,
    clamp_to(0, limits.AROUND_EVENTS_MAX),
    Field(description=f"Number of events before it, limited to 0 to {limits.AROUND_EVENTS_MAX}."),
]
EntriesAfter = Annotated[
    int,
    clamp_to(0, limits.AROUND_EVENTS_MAX),
    Field(description=f"Number of events after it, limited to 0 to {limits.AROUND_EVENTS_MAX}."),
]
Turn = Annotated[
    int | None,
    Field(ge=0, le=limits.TURN_MAX, description="Turn from which recency is measured; default: the space's."),
]

# When

PagePosition = Annotated[
    _OptionalPosition, Field(description="Only events before this position: the `older` of a page.")
]
RecordPosition = Annotated[
    Position | str,
    PlainValidator(_position),
    Field(description="Position of a record, for example 0:41."),
    WithJsonSchema({"anyOf": _POSITIONS}),
]
After = Annotated[
    _OptionalPosition, Field(description="Wait until the views have processed this position, for example 0:41.")
]
PastMoment = Annotated[
    Position | datetime | str | None,
    PlainValidator(optional(_as_of)),
    Field(description="Answer from the past: a position (0:41) or a time."),
    WithJsonSchema({"anyOf": [*_POSITIONS, _A_TIME, {"type": "null"}]}),
]
EarlierMoment = Annotated[
    Position | datetime | str,
    PlainValidator(_as_of),
    Field(description="The earlier moment: a position (0:41) or a time."),
    WithJsonSchema({"anyOf": [*_POSITIONS, _A_TIME]}),
]
LaterMoment = Annotated[PastMoment, Field(description="The later moment: a position or a time; default: the present.")]
Since = Annotated[OptionalTime, Field(description="Only events from this time on.")]
Until = Annotated[OptionalTime, Field(description="Only events before this time.")]
Now = Annotated[
    OptionalTime,
    Field(description='Time of the question, for "yesterday"; default: that of --as-of or of the agent.'),
]
PresentTime = Annotated[
    datetime | str, PlainValidator(time_of), Field(description="The present time."), WithJsonSchema(_A_TIME)
]

FirstPosition = Annotated[_OptionalPosition, Field(description="Only records from this position on.")]
EndPosition = Annotated[_OptionalPosition, Field(description="Only records before this position.")]

# Which

Session = Annotated[str | None, Field(description="Only this session."), IN_NFC]
Kinds = Annotated[Sequence[str] | None, Field(description="Only events of these kinds.")]
Author = Annotated[str | None, NAME, Field(description="Only events by this agent.")]
Containing = Annotated[str | None, Field(description="Only events whose text contains this, ignoring case.")]
MinSimilarity = Annotated[
    float | None, Field(allow_inf_nan=False, description="Minimum cosine of hits with a known cosine.")
]
Channels = Annotated[
    Sequence[Channel] | None,
    Field(
        min_length=1,
        description="Rank by these channels only; default: semantic, keyword, late_interaction and structure.",
    ),
]
FusionMethod = Annotated[
    Fusion, Field(description="How the channels are combined into one score; a preset combines them by rank.")
]
EntryTypes = Annotated[
    Sequence[str] | None,
    Field(
        min_length=1,
        description="Only entries of these types, such as fact; event stands for events, and document for documents of "
        "the agent's workspace, which are found only if named here. Default: all entries and events.",
    ),
]
MinImportance = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="Minimum importance: of an entry as given, without decay and outcomes; of an event by kind.",
    ),
]
RankingPreset = Annotated[
    Preset | None,
    Field(description="Rank entries only: four_channel (meaning, words, entities, time) or hybrid (meaning, words)."),
]
VectorWeight = Annotated[
    float | None, Field(ge=0, le=1, description="With preset hybrid: the weight of meaning (0.6); words get the rest.")
]
RecencyWeight = Annotated[
    float | None,
    Field(
        ge=0, le=1, description="With preset four_channel: the weight of time; others share the rest; default: equal."
    ),
]
WaitIndex = Annotated[bool, Field(description="Wait until the index has processed all that the ledger holds now.")]

# Events that are written

NewEventId = Annotated[
    str | None,
    identifier_of("Id of the event to write; a call with the same id can be repeated."),
    IN_NFC,
    MAKES_REPEATABLE,
]
WrittenTurn = Annotated[int, Field(ge=0, le=limits.TURN_MAX, description="Turn of the space in which it happens.")]
WrittenSession = Annotated[str, identifier_of("Session that begins or ends."), IN_NFC]
SessionTitle = Annotated[str | None, Field(description="Title of the session.")]
SpaceAuthor = Annotated[str, NAME, Field(description="Name of the agent whose event it is.")]

# Erasures

ErasedSubject = Annotated[str | None, identifier_of("Everything about this person."), IN_NFC]
ErasedEntry = Annotated[str | None, identifier_of("This entry, with all its texts."), IN_NFC]
ErasesAll = Annotated[bool, Field(description="Everything in the space.")]
ErasureReason = Annotated[
    str | None, Field(max_length=limits.REASON_CHARS_MAX, description="Why; it stays on record, so name no person.")
]
ErasesToo = Annotated[
    bool,
    Field(description="Erase it from the ledger too, which needs RECALLOG_SEAL=each when it was written."),
    NEEDS_FORGET,
]
TriesErasure = Annotated[bool, Field(description="Only report what would be erased.")]

# Pages

ListLimit = Annotated[int, Field(ge=1, le=limits.PAGE_ITEMS_MAX, description="Number of items per page.")]
Cursor = Annotated[str | None, Field(description="The `next` of the previous page.")]

Minutes = Annotated[int, Field(ge=1, le=limits.ACTIVITY_MINUTES_MAX, description="Number of minutes up to now.")]

# Tiers

SomeTiers = Annotated[
    Sequence[Tier] | None, Field(description="Only entries of these tiers: fast, medium, slow, glacial; default: all.")
]

# Projections of your own

OwnTable = Annotated[
    Table[Row], PlainValidator(_instance_of(Table)), Field(description="A table of your own projection.")
]
OwnLog = Annotated[Log[Row], PlainValidator(_instance_of(Log)), Field(description="A log of your own projection.")]
Owner = Annotated[str, IN_NFC, Field(description="Owner of the row, as the projection defines it: usually an agent.")]
LogEntries = Annotated[int, Field(ge=1, le=limits.LOG_EVENTS_MAX, description="Number of newest entries.")]

# Reflection and operators

SkipReflectionLoops = Annotated[
    bool, Field(description="Leave triggers pending whose newest events are all reflections: for calls in a loop.")
]
Rebuilt = Annotated[Literal["views", "index"], Field(description="The views or the semantic index.")]
FromZero = Annotated[
    bool,
    Field(
        description="Also compare each snapshot of the past with a fold of its space from the first record, so that "
        "answers which begin from snapshots equal those of such folds."
    ),
]
Verified = Annotated[
    Literal["views", "index"] | None, Field(description="Only the `views`, or only the `index`; default: both.")
]
Digests = Annotated[
    Sequence[str] | None,
    AfterValidator(_digests),
    Field(description="Also compare the ledger with a kept digest: a line of `digest`."),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "array",
                    "items": {"type": "string", "pattern": _DIGEST_PATTERN, "examples": [f"0:41:{'9f86d081' * 4}"]},
                },
                {"type": "null"},
            ]
        }
    ),
]
Markers = Annotated[
    Sequence[str],
    Field(min_length=1, max_length=limits.MARKERS_MAX, description="Words to look for, each of 4 characters or more."),
    AfterValidator(_markers),
]
Scanned = Annotated[Literal["index"] | None, Field(description="Scan only the points of the index.")]
Accept = Annotated[bool, Field(description="Cut over even if there are new dead letters.")]
Drop = Annotated[
    bool,
    Field(description="Delete the present ones first: for a ledger that was replaced, or has lost its end."),
]
Workers = Annotated[
    int | None,
    Field(ge=1, le=limits.WORKERS_MAX, description="Processes that fold the events; default: one for each core."),
]
Throttle = Annotated[
    float,
    Field(
        ge=0,
        le=0.95,
        description="Share of the time to pause after each batch, so that other processes can use the machine and "
        "the files: with 0.5 it takes twice as long.",
    ),
]
Model = Annotated[
    str, Field(description="minilm, sentence-transformers[:FOLDER], onnx:FOLDER or http(s)://host/v1#model.")
]
LedgerAddress = Annotated[
    str, Field(min_length=1, pattern=r"^[^\x00]+$", description="A folder, or kafka://host:9092/topic.")
]
Report = Annotated[
    Progress | None, IN_PROCESS, Field(description="Called with (done, total) while the operation works.")
]


class At(TypedDict, total=False):
    """The state of the views that answers. The default is the present state."""

    after: After
    as_of: PastMoment


class Filters(TypedDict, total=False):
    """Which events are wanted."""

    session: Session
    kinds: Kinds
    since: Since
    until: Until
    filter: MemoryFilter


class TimelineOptions(Filters, At, total=False):
    """The wanted events, and the state of the views."""


class RecallOptions(Filters, At, total=False):
    """The wanted memories, the state of the views, and the ranking."""

    author: Author
    types: EntryTypes
    tiers: SomeTiers
    min_importance: MinImportance
    now: Now
    min_similarity: MinSimilarity
    channels: Channels
    preset: RankingPreset
    vector_weight: VectorWeight
    recency_weight: RecencyWeight


class EndOptions(TypedDict, total=False):
    """The outcome of a session, and the agents of the session."""

    outcome: Annotated[str | None, Field(description="Outcome of the session.")]
    reward: Annotated[float | None, Field(allow_inf_nan=False, description="A number that rates the session.")]
    audience: Annotated[
        Sequence[str] | None,
        Field(max_length=limits.AUDIENCE_NAMES_MAX, description="Other agents whose session ends too."),
    ]


class SalienceOptions(At, total=False):
    """The terms of salience, and the state of the views."""

    turn: Turn


def event(given: Event | Mapping[str, Any]) -> Event:
    """An event after validation: no longer a dict."""
    return cast("Event", given)


def position(given: Position | str | None) -> Position | None:
    """A position after validation: no longer a text."""
    return cast("Position | None", given)


def record_position(given: Position | str) -> Position:
    """A position after validation: no longer a text."""
    return cast("Position", given)


def moment(given: datetime | str | None) -> datetime | None:
    """A time after validation: no longer a text."""
    return cast("datetime | None", given)


def present(given: datetime | str) -> datetime:
    """A time after validation: no longer a text."""
    return cast("datetime", given)


def state(options: At) -> At:
    """The options of a query that name the state which answers."""
    return cast("At", {name: value for name, value in options.items() if name in At.__annotations__})


def past_moment(given: Position | datetime | str | None) -> AsOf | None:
    """A moment of the past after validation: no longer a text."""
    return cast("AsOf | None", given)
