"""The parameters that operations share: their types, bounds and descriptions, each declared once.

A type is what callers of Python write, for example a time or a text for a time; `Field` and the validators say what is
accepted, and doors show the description. Where a parameter is None, the operation's own documentation says what holds.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from os import PathLike
from typing import Annotated, Any, Literal, TypedDict, TypeVar, cast

import msgspec
from pydantic import AfterValidator, BaseModel, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from recallog.operations.operation import FROM_FILE, IN_BODY, IN_PROCESS, MAKES_REPEATABLE
from recallog.reading.time_travel import AsOf
from recallog.retrieval.channels import Channel, Fusion, Preset
from recallog_projections.tables import Log, Table
from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.errors import InvalidArgument, InvalidEvent, OutOfRange
from recallog_schemas.kinds.payload import Priority, Tier
from recallog_schemas.validation import NAME_PATTERN, is_text, json_of, time_of
from recallog_streams.progress import Progress

Parsed = TypeVar("Parsed")
Row = TypeVar("Row", bound=msgspec.Struct)

_DIGEST_PATTERN = r"^([0-9]{1,9}:)?[0-9]{1,18}:[0-9A-Fa-f]{32}$"
_POSITION_PATTERN = r"^([0-9]+:)?[0-9]+$"
_POSITIONS: list[Any] = [
    {"type": "string", "pattern": _POSITION_PATTERN, "examples": ["0:41"]},
    # As answers have it.
    {
        "type": "object",
        "properties": {"partition": {"type": "integer", "minimum": 0}, "offset": {"type": "integer", "minimum": 0}},
        "required": ["partition", "offset"],
        "additionalProperties": False,
    },
]
_A_TIME = {"type": "string", "format": "date-time"}
_SHA256_PATTERN = r"^[0-9a-f]{64}$"
_ENTRY_TYPE_PATTERN = r"^[a-z][a-z0-9_]*$"
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}


def _optional(parse: Callable[[object], Parsed]) -> Callable[[object], Parsed | None]:
    return lambda value: None if value is None else parse(value)


def _position(value: object) -> Position:
    """A position, its text, or its fields as JSON has them."""
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
    if isinstance(value, Event):
        return value
    if isinstance(value, Mapping):
        return codec.make(dict(value))
    raise PydanticCustomError("event", "should be an Event, or a dict of its fields")


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


def _namespace(value: object) -> Sequence[str]:
    names = value.split("/") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not 1 <= len(names) <= limits.ITEM_NAMESPACE_NAMES_MAX:
        raise PydanticCustomError("namespace", "should be 1 to 8 names, or a text with / between them")
    for name in names:
        if not isinstance(name, str) or not 1 <= len(name) <= limits.ITEM_NAME_CHARS_MAX:
            raise PydanticCustomError("namespace", "each name should be a text of 1 to 256 characters")
    return names


def _base(value: object) -> int | str:
    if isinstance(value, str):
        if re.fullmatch(_SHA256_PATTERN, value):
            return value
        if re.fullmatch("[0-9]{1,18}", value):
            return int(value)
    elif type(value) is int and 0 <= value <= limits.INTEGER_MAX:
        return value
    raise PydanticCustomError("item_base", "should be a version (0: there is no such item) or 64 hexadecimal digits")


def _components(value: object) -> Sequence[Mapping[str, str]]:
    if not isinstance(value, list | tuple) or len(value) > limits.PROMPT_COMPONENTS_MAX:
        raise PydanticCustomError("components", f"should be a list of at most {limits.PROMPT_COMPONENTS_MAX} sections")
    return [_component(each) for each in value]


def _component(value: object) -> Mapping[str, str]:
    if isinstance(value, str):
        heading, colon, text = value.partition(":")
        value = {"heading": heading, "text": text.strip()} if colon else None
    if (
        not isinstance(value, Mapping)
        or value.keys() != {"heading", "text"}
        or not all(isinstance(each, str) and is_text(each) for each in value.values())
    ):
        raise PydanticCustomError("component", 'should be {"heading": …, "text": …}, or a text "heading: text"')
    heading = value["heading"].strip()
    if not heading or len(heading) > limits.PROMPT_HEADING_CHARS_MAX or len(heading.splitlines()) > 1:
        raise PydanticCustomError(
            "heading", f"the heading should be one line of 1 to {limits.PROMPT_HEADING_CHARS_MAX} characters"
        )
    return {"heading": heading, "text": value["text"]}


def _texts(given: Sequence[str] | None) -> Sequence[str] | None:
    for index, text in enumerate(given or ()):
        if not text.strip() or not is_text(text):
            path = f"texts.{index}"
            raise InvalidArgument(f"{path}: should be a text with at least one word", path=path, rule="blank")
    return given


def _json_object(value: object) -> Mapping[str, Any]:
    if isinstance(value, str):
        with suppress(ValueError):
            value = json_of(value)
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    raise PydanticCustomError("json_object", "should be a JSON object, or its text")


def _messages(value: object) -> Sequence[Mapping[str, Any]]:
    if isinstance(value, str):
        try:
            value = json_of(value)
        except ValueError as error:
            raise PydanticCustomError("json_invalid", "is no JSON: {why}", {"why": str(error)}) from None
    given = value if isinstance(value, list | tuple) else [value]
    if len(given) > limits.MESSAGES_MAX:
        raise PydanticCustomError("too_many", f"should be at most {limits.MESSAGES_MAX:,} messages in one call")
    return [_message(each) for each in given]


def _message(value: object) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):  # as OpenAI's client answers them
        value = value.model_dump(exclude_none=True, warnings=False)
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    raise PydanticCustomError("message", "should be messages, each an object with a role")


def _id(description: str) -> Any:
    return Field(min_length=1, max_length=limits.ID_CHARS_MAX, description=description)


def _name(description: str) -> Any:
    return Field(min_length=1, max_length=limits.NAME_CHARS_MAX, description=description)


def _item_name(description: str) -> Any:
    return Field(min_length=1, max_length=limits.ITEM_NAME_CHARS_MAX, description=description)


def clamped(least: int, most: int) -> AfterValidator:
    """A validator that replaces a number by the nearest one from `least` to `most`."""
    return AfterValidator(lambda number: max(least, min(number, most)))


_OptionalTime = Annotated[
    datetime | str | None,
    PlainValidator(_optional(time_of)),
    WithJsonSchema({"anyOf": [_A_TIME, {"type": "null"}]}),
]
_OptionalPosition = Annotated[
    Position | str | None,
    PlainValidator(_optional(_position)),
    WithJsonSchema({"anyOf": [*_POSITIONS, {"type": "null"}]}),
]

# Who, and which event

Space = Annotated[str, Field(pattern=NAME_PATTERN, description="Name of the space.")]
Agent = Annotated[str, Field(pattern=NAME_PATTERN, description="Name of the agent.")]
Reader = Annotated[str | None, Field(pattern=NAME_PATTERN, description="Only the beliefs that this agent may see.")]
OneSpace = Annotated[str | None, Field(pattern=NAME_PATTERN, description="Only this space; default: all.")]
OneAgent = Annotated[
    str | None, Field(pattern=NAME_PATTERN, description="Only what this agent may see; default: everything.")
]
EventId = Annotated[str, Field(description="Id of the event.")]
TriggerId = Annotated[str, Field(description="Id of the trigger.")]
EventIds = Annotated[
    Sequence[str],
    Field(max_length=limits.ENTRIES_IDS_MAX, description="Ids of events, in the order of the answer."),
    IN_BODY,
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
RelevanceQuery = Annotated[str | None, Field(description="Text that relevance is measured by.")]

# How much

Window = Annotated[
    int | None,
    Field(ge=1, le=limits.LOG_EVENTS_MAX, description="How many events; default: the agent's setting, else 8."),
]
SalientTopK = Annotated[
    int | None,
    Field(ge=1, le=limits.LOG_EVENTS_MAX, description="How many events; default: the agent's setting, else 8."),
]
RecallTopK = Annotated[int, Field(ge=1, le=limits.RECALL_HITS_MAX, description="How many memories.")]
SearchLimit = Annotated[
    int,
    clamped(1, limits.SEARCH_HITS_MAX),
    Field(description=f"How many previews; the nearest number from 1 to {limits.SEARCH_HITS_MAX} is used."),
]
PageLimit = Annotated[int, Field(ge=1, le=limits.PAGE_ITEMS_MAX, description="How many events a page has.")]
EntriesBefore = Annotated[
    int,
    clamped(0, limits.AROUND_EVENTS_MAX),
    Field(description=f"How many events before it; the nearest number from 0 to {limits.AROUND_EVENTS_MAX} is used."),
]
EntriesAfter = Annotated[
    int,
    clamped(0, limits.AROUND_EVENTS_MAX),
    Field(description=f"How many events after it; the nearest number from 0 to {limits.AROUND_EVENTS_MAX} is used."),
]
BudgetTokens = Annotated[
    int | None,
    Field(ge=1, description="Most tokens of the prompt, four characters each: long lines are cut, others left out."),
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
    PlainValidator(_optional(_as_of)),
    Field(description="Answer from the past: a position (0:41) or a time."),
    WithJsonSchema({"anyOf": [*_POSITIONS, _A_TIME, {"type": "null"}]}),
]
Since = Annotated[_OptionalTime, Field(description="Only events from this time on.")]
Until = Annotated[_OptionalTime, Field(description="Only events before this time.")]
Now = Annotated[
    _OptionalTime,
    Field(description='Time of the question, for "yesterday"; default: that of --as-of or of the newest memory.'),
]
PresentTime = Annotated[
    datetime | str, PlainValidator(time_of), Field(description="The present time."), WithJsonSchema(_A_TIME)
]

FirstPosition = Annotated[_OptionalPosition, Field(description="Only records from this position on.")]
EndPosition = Annotated[_OptionalPosition, Field(description="Only records before this position.")]

# Which

Session = Annotated[str | None, Field(description="Only this session.")]
Kinds = Annotated[Sequence[str] | None, Field(description="Only events of these kinds.")]
Author = Annotated[str | None, Field(pattern=NAME_PATTERN, description="Only events by this agent.")]
MinSimilarity = Annotated[
    float | None, Field(allow_inf_nan=False, description="Least cosine of the hits whose cosine is known.")
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
        "the agent's workspace, which are found only so. Default: all entries and events.",
    ),
]
MinImportance = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="Least importance: of an entry as it was given, without decay and outcomes; of an event by kind.",
    ),
]
RankingPreset = Annotated[
    Preset | None,
    Field(description="Rank entries alone: four_channel (meaning, words, entities, time) or hybrid (meaning, words)."),
]
VectorWeight = Annotated[
    float | None, Field(ge=0, le=1, description="Of hybrid: the weight of meaning (0.6); words have the rest.")
]
RecencyWeight = Annotated[
    float | None,
    Field(
        ge=0, le=1, description="Of four_channel: the weight of time, the others share the rest; default: all equal."
    ),
]
WaitIndex = Annotated[bool, Field(description="Wait until the index has processed all that the ledger holds now.")]

# Items

ItemNamespace = Annotated[
    Sequence[str] | str,
    PlainValidator(_namespace),
    Field(description="Names of the namespace, outermost first; a text is split at /."),
    WithJsonSchema({"anyOf": [{"type": "string"}, _NAMES], "examples": ["notes/bakery"]}),
]
BelowNamespace = Annotated[
    Sequence[str] | str | None,
    PlainValidator(_optional(_namespace)),
    Field(description="Only this namespace and those below it; a text is split at /. Default: all."),
    WithJsonSchema({"anyOf": [{"type": "string"}, _NAMES, {"type": "null"}]}),
]
ItemKey = Annotated[str, _item_name("Name of the item in its namespace.")]
NewKey = Annotated[str, _item_name("Its new name in the namespace.")]
ItemValue = Annotated[Any, Field(description=f"The value: any JSON of at most {limits.ITEM_VALUE_BYTES_MAX:,} bytes.")]
JsonText = Annotated[bool, Field(description="The value is the text of a JSON document.")]
AppendedText = Annotated[str, Field(description="The text to add.")]
Base = Annotated[
    int | str | None,
    PlainValidator(_optional(_base)),
    Field(description="Only if the item has this version (0: if there is none) or this SHA-256."),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": _SHA256_PATTERN}, {"type": "null"}]}
    ),
]
NewEventId = Annotated[
    str | None,
    _id("Id of the event that is written; a call with the same id can be repeated."),
    MAKES_REPEATABLE,
]
NewestFirst = Annotated[bool, Field(description="Those that changed last first; default: by namespace and key.")]
ListLimit = Annotated[int, Field(ge=1, le=limits.PAGE_ITEMS_MAX, description="How many items a page has.")]
Cursor = Annotated[str | None, Field(description="The `next` of the page before.")]

# Documents of the workspace

DocumentSearch = Annotated[
    str,
    Field(
        description="How documents are compared: hybrid (words and meaning), fts (words) or semantic (meaning); any "
        "other text means hybrid."
    ),
]
WorkspaceFolder = Annotated[
    str | PathLike[str] | None, Field(description="A folder; default: that of the setting `workspace`.")
]
Overwrite = Annotated[bool, Field(description="Also what has changed on the other side since the last time.")]

# Working memory

Label = Annotated[str, _item_name("Name of the block or key.")]
Labels = Annotated[Sequence[str] | None, Field(description="Only these blocks; default: all.")]
Keys = Annotated[Sequence[str] | None, Field(description="Only these keys; default: all.")]
Content = Annotated[
    Any, Field(description=f"The content: any JSON of at most {limits.ITEM_VALUE_BYTES_MAX:,} bytes, usually a text.")
]
RecallSession = Annotated[
    str | None, _id("Session whose newest messages automatic recall asks with; default: that of the newest one.")
]
ConversationSession = Annotated[str, _id("Session whose messages they are.")]
Messages = Annotated[
    Sequence[Mapping[str, Any]] | Mapping[str, Any] | str,
    PlainValidator(_messages),
    Field(description="Messages in the form of OpenAI's chat completions, oldest first, or one, or their JSON."),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "maxItems": limits.MESSAGES_MAX, "items": {"type": "object", "required": ["role"]}},
                {"type": "object", "required": ["role"]},
                {"type": "string"},
            ],
            "examples": [[{"role": "user", "content": "Who owes the miller?"}]],
        }
    ),
    FROM_FILE,
]
Continues = Annotated[
    bool, Field(description="Messages without an id are new, also if they repeat what was said before.")
]
MessageTurn = Annotated[
    int | None,
    Field(
        ge=0,
        le=limits.TURN_MAX,
        description="Turn of the messages; default: each message of the user begins the next one.",
    ),
]
MessageSubject = Annotated[str | None, _id("The person whose data they are.")]
Whole = Annotated[bool, Field(description="With what a compaction has replaced, and without its summary.")]
MessageBefore = Annotated[
    str | None, Field(description="Only messages before the one with this id: the first of `ids` of an answer.")
]
CompactMessages = Annotated[
    int, clamped(limits.COMPACT_MESSAGES_LEAST, limits.INTEGER_MAX), Field(description="More messages are compacted.")
]
CompactChars = Annotated[
    int, clamped(limits.COMPACT_CHARS_LEAST, limits.INTEGER_MAX), Field(description="More characters are compacted.")
]
CompactKept = Annotated[
    int, clamped(limits.COMPACT_KEPT_LEAST, limits.INTEGER_MAX), Field(description="Newest messages that stay.")
]
MessageIds = Annotated[
    Sequence[str],
    Field(min_length=1, max_length=limits.MESSAGES_MAX, description="Ids of messages, of their events or their own."),
]
PoppedMessages = Annotated[int, Field(ge=1, le=limits.MESSAGES_MAX, description="How many messages.")]
PadSession = Annotated[str, _id("Session that the scratchpad is of.")]
OnePadSession = Annotated[str | None, _id("Session whose scratchpad is meant; default: working memory.")]
DocumentText = Annotated[str, Field(description="The document: a JSON object of labels and contents.")]
DocumentBase = Annotated[
    str | None,
    Field(pattern=_SHA256_PATTERN, description="Only if the document has this SHA-256: the `sha256` of `document`."),
]

# Long-term memory

KeptText = Annotated[str, Field(pattern=r"\S", description="The text to keep."), IN_BODY]
ExtractedText = Annotated[
    str,
    Field(pattern=r"\S", max_length=limits.EXTRACTED_CHARS, description="The text; I in it is the agent."),
]
FactSource = Annotated[
    str | None, Field(max_length=limits.SOURCE_CHARS_MAX, description="Where the text comes from, in words.")
]
ActionType = Annotated[str, _name("What sort of action it was.")]
ExperienceSummary = Annotated[str, Field(pattern=r"\S", description="What was done.")]
StoreAnswer = Annotated[bool, Field(description="Keep the answer as an insight of the agent.")]
Type = Annotated[
    str,
    Field(
        pattern=_ENTRY_TYPE_PATTERN,
        max_length=limits.ENTRY_TYPE_CHARS_MAX,
        description="What sort of entry it is: fact, lesson, insight, strategy, info, note, or another word.",
    ),
]
OneType = Annotated[
    str | None,
    Field(
        pattern=_ENTRY_TYPE_PATTERN,
        max_length=limits.ENTRY_TYPE_CHARS_MAX,
        description="Only entries of this type; default: all.",
    ),
]
EntryId = Annotated[str, _id("Id of the entry.")]
OneEntryId = Annotated[str | None, _id("Only this entry; default: all.")]
EntryIds = Annotated[
    Sequence[str],
    Field(min_length=1, max_length=limits.EVENT_IDS_MAX, description="Ids of the entries."),
]
ForgottenIds = Annotated[
    Sequence[str] | None, Field(max_length=limits.EVENT_IDS_MAX, description="Ids of the entries.")
]
ForgottenSubject = Annotated[str | None, _id("All entries about this person instead.")]
Receiver = Annotated[str, Field(pattern=NAME_PATTERN, description="Name of the agent that receives them.")]
ChangeReason = Annotated[str | None, Field(max_length=limits.REASON_CHARS_MAX, description="Why; it stays on record.")]
NewEntryId = Annotated[
    str | None,
    _id("Id of the event and the entry; a call with the same id can be repeated."),
    MAKES_REPEATABLE,
]
EntryOrder = Annotated[Literal["newest", "priority"], Field(description="Newest first, or by priority.")]
EntriesLimit = Annotated[int, Field(ge=1, le=limits.PAGE_ITEMS_MAX, description="How many entries a page has.")]
LessonsLimit = Annotated[int, Field(ge=1, le=limits.RECALL_HITS_MAX, description="How many lessons.")]
SeedTexts = Annotated[
    Sequence[str] | None,
    Field(max_length=limits.ENTRIES_IDS_MAX, description="What to begin with; default: five lessons."),
    AfterValidator(_texts),
]
ApplyProposals = Annotated[bool, Field(description="Archive what is proposed; default: only propose.")]
OnlyProposed = Annotated[
    Sequence[str] | None,
    Field(max_length=limits.EVENT_IDS_MAX, description="Ids of proposed entries to archive; default: all of them."),
]
AuditLimit = Annotated[int, Field(ge=1, le=limits.LOG_EVENTS_KEPT, description="How many changes, the newest ones.")]
ErasuresLimit = Annotated[int, Field(ge=1, le=limits.PAGE_ITEMS_MAX, description="How many erasures a page has.")]

# Tiers

SomeTiers = Annotated[
    Sequence[Tier] | None, Field(description="Only entries of these tiers: fast, medium, slow, glacial; default: all.")
]
RetrievedLimit = Annotated[int, Field(ge=1, le=limits.RECALL_HITS_MAX, description="How many entries.")]
RetrievedSimilarity = Annotated[
    float, Field(ge=-1, le=1, allow_inf_nan=False, description="Least similarity of an entry.")
]
TierStrategy = Annotated[
    Literal["weighted", "fast_first", "comprehensive"],
    Field(description="By weighted similarity, the faster tiers first, or by similarity alone."),
]
QueryTime = Annotated[
    _OptionalTime, Field(description="Time of the question; default: that of the newest event of the space.")
]
PlanTime = Annotated[_OptionalTime, Field(description="Time of the plan; default: that of the clock.")]

# Stream

StreamQuery = Annotated[
    str | None,
    Field(
        pattern=r"\S", max_length=limits.RECALL_QUERY_CHARS_MAX, description="Words that memories are compared with."
    ),
    IN_BODY,
]
StreamLimit = Annotated[int, Field(ge=1, le=limits.RECALL_HITS_MAX, description="How many memories, the best ones.")]
InsightsLimit = Annotated[int, Field(ge=1, le=limits.INSIGHTS_KEPT, description="How many insights, the newest ones.")]
SpanStart = Annotated[_OptionalTime, Field(description="Beginning of the span; default: that of the stream.")]
SpanEnd = Annotated[
    _OptionalTime, Field(description="End of the span, which does not belong to it; default: that of the stream.")
]
StoreSummary = Annotated[bool, Field(description="Keep the summary as an entry of the agent.")]

# Text of a prompt

SceneText = Annotated[str | None, Field(description="Text of the scene; default: the space's scene."), IN_BODY]
MemoryQuery = Annotated[str | None, Field(description="Text that memories are chosen by; default: the scene.")]
Components = Annotated[
    Sequence[Mapping[str, str] | str],
    PlainValidator(_components),
    Field(description='Sections of your own, never left out: heading and text, or as one text "heading: text".'),
    WithJsonSchema(
        {
            "type": "array",
            "maxItems": limits.PROMPT_COMPONENTS_MAX,
            "items": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "heading": {"type": "string", "minLength": 1, "maxLength": limits.PROMPT_HEADING_CHARS_MAX},
                            "text": {"type": "string"},
                        },
                        "required": ["heading", "text"],
                        "additionalProperties": False,
                    },
                    {"type": "string", "examples": ["PRICES: Flour is 3 crowns."]},
                ]
            },
        }
    ),
]
Extra = Annotated[str | None, Field(description="Further text for the prompt.")]
Step = Annotated[str | None, Field(description="What the agent does now; never left out.")]
OutputFormat = Annotated[
    str | None, Field(description="Text that describes the form of the answer; the last part of the prompt.")
]

# Projections of your own

OwnTable = Annotated[
    Table[Row], PlainValidator(_instance_of(Table)), Field(description="A table of your own projection.")
]
OwnLog = Annotated[Log[Row], PlainValidator(_instance_of(Log)), Field(description="A log of your own projection.")]
LogEntries = Annotated[int, Field(ge=1, le=limits.LOG_EVENTS_MAX, description="How many entries, the newest ones.")]

# Reflection and operators

SkipReflectionLoops = Annotated[
    bool, Field(description="Leave triggers pending whose newest events are all reflections: for calls in a loop.")
]
Rebuilt = Annotated[Literal["views", "index"], Field(description="The views or the semantic index.")]
Verified = Annotated[
    Literal["views", "index"] | None, Field(description="Only the `views`, or only the `index`; default: both.")
]
Digests = Annotated[
    Sequence[str] | None,
    AfterValidator(_digests),
    Field(description="Compare the ledger also with a digest that was kept: a line of `digest`."),
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
        description="Share of the time in which folding pauses after each batch, so that others have the machine and "
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


class EntryFields(TypedDict, total=False):
    """What an entry says besides its text."""

    entity: Annotated[str | None, _name("Whom or what it is about.")]
    category: Annotated[str | None, _name("A word that groups entries.")]
    source: Annotated[
        str | None, Field(max_length=limits.SOURCE_CHARS_MAX, description="Where it comes from, in words.")
    ]
    topic: Annotated[str | None, _name("The subject matter.")]
    importance: Annotated[float | None, Field(ge=0, le=1, description="From 0 to 1: how much it weighs (0.5).")]
    confidence: Annotated[float | None, Field(ge=0, le=1, description="From 0 to 1: how certain it is (1).")]
    priority: Annotated[
        Priority | None, Field(description="How strongly it is preferred (normal). At most 5 of an agent are pinned.")
    ]
    red_line: Annotated[bool | None, Field(description="Whether no plan may demote or archive it (false).")]
    metadata: Annotated[
        Mapping[str, Any] | str | None,
        PlainValidator(_optional(_json_object)),
        Field(description="Any JSON object of your own, or its text."),
        WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string"}, {"type": "null"}]}),
    ]


class Provenance(TypedDict, total=False):
    """Where an entry comes from, and whom it concerns."""

    subject: Annotated[str | None, _id("The person that it is about.")]
    audience: Annotated[
        Sequence[str] | None,
        Field(max_length=limits.AUDIENCE_NAMES_MAX, description="Agents that may read it too."),
    ]
    session: Annotated[str | None, _id("The session that it comes from.")]


class ExtractOptions(Provenance, total=False):
    """Where entries come from, whom they concern, and what they are made from."""

    based_on: Annotated[
        Sequence[str] | None,
        Field(
            max_length=limits.ENTRY_SOURCES_MAX,
            description="Ids of the events and entries that it is made from; it is retracted if one of them is erased.",
        ),
    ]


class ExperienceOptions(Provenance, total=False):
    """What came of an experience, and how it was made."""

    outcome: Annotated[str | None, Field(description="What came of it.")]
    score: Annotated[float | None, Field(allow_inf_nan=False, description="How well it went.")]
    agent_role: Annotated[str | None, _name("The role in which the agent acted.")]
    model: Annotated[str | None, Field(max_length=limits.MODEL_CHARS_MAX, description="The model that it used.")]
    cost: Annotated[float | None, Field(allow_inf_nan=False, description="What it cost.")]


class RetainOptions(EntryFields, ExtractOptions, total=False):
    """What an entry says besides its text, and how it is retained."""

    tier: Annotated[Tier | None, Field(description="How fast it ages; default: it does not.")]
    cost: Annotated[
        float | None,
        Field(ge=0, allow_inf_nan=False, description="What it costs an agent with a balance (1); duplicates are free."),
    ]


class UpdateOptions(EntryFields, total=False):
    """What of an entry is changed. In Python None takes a field back to its default."""

    text: Annotated[str | None, Field(pattern=r"\S", description="Its new text; it becomes the next version.")]
    type: Annotated[
        str | None,
        Field(pattern=_ENTRY_TYPE_PATTERN, max_length=limits.ENTRY_TYPE_CHARS_MAX, description="Its new type."),
    ]


class At(TypedDict, total=False):
    """Which state of the views answers. The default is the present one."""

    after: After
    as_of: PastMoment


class Filters(TypedDict, total=False):
    """Which events are wanted."""

    session: Session
    kinds: Kinds
    since: Since
    until: Until


class TimelineOptions(Filters, At, total=False):
    """Which events are wanted, of which state."""


class RecallOptions(Filters, At, total=False):
    """Which memories are wanted, of which state, and how they are ranked."""

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


class SalienceOptions(At, total=False):
    """What salience is measured by, in which state."""

    turn: Turn


def event(given: Event | Mapping[str, Any]) -> Event:
    """A validated event: no longer a dict."""
    return cast("Event", given)


def position(given: Position | str | None) -> Position | None:
    """A validated position: no longer a text."""
    return cast("Position | None", given)


def record_position(given: Position | str) -> Position:
    """A validated position: no longer a text."""
    return cast("Position", given)


def names(given: Sequence[str] | str) -> Sequence[str]:
    """A validated namespace: no longer a text."""
    return given


def headed(given: Sequence[Mapping[str, str] | str]) -> Sequence[tuple[str, str]]:
    """Validated components, each as its heading and its text."""
    return [(each["heading"], each["text"]) for each in cast("Sequence[Mapping[str, str]]", given)]


def message_list(given: object) -> Sequence[Mapping[str, Any]]:
    """Validated messages: a list, no longer a text."""
    return cast("Sequence[Mapping[str, Any]]", given)


def moment(given: datetime | str | None) -> datetime | None:
    """A validated time: no longer a text."""
    return cast("datetime | None", given)


def present(given: datetime | str) -> datetime:
    """A validated time: no longer a text."""
    return cast("datetime", given)


def state(options: At) -> At:
    """Those of the options of a query that name the state which answers."""
    return cast("At", {name: value for name, value in options.items() if name in At.__annotations__})


def past_moment(given: Position | datetime | str | None) -> AsOf | None:
    """A validated moment of the past: no longer a text."""
    return cast("AsOf | None", given)
