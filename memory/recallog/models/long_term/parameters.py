"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from pydantic import AfterValidator, Field

from recallog.operations.operation import IN_BODY, MAKES_REPEATABLE
from recallog.operations.parameters import OptionalObject, OptionalTime, identifier_of
from recallog_schemas import limits
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.kinds.payload import Priority, Tier
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.models.long_term.payloads import Dedup
from recallog_schemas.names import IN_NFC, NAME
from recallog_schemas.validation import NOT_BLANK, is_text

_ENTRY_TYPE_PATTERN = r"^[a-z][a-z0-9_]*$"


def _texts(given: Sequence[str] | None) -> Sequence[str] | None:
    for index, text in enumerate(given or ()):
        if not text.strip() or not is_text(text):
            path = f"texts.{index}"
            raise InvalidArgument(f"{path}: should be a text with at least one word", path=path, rule="blank")
    return given


def _name(description: str) -> Any:
    return Field(min_length=1, max_length=limits.NAME_CHARS_MAX, description=description)


KeptText = Annotated[str, Field(pattern=NOT_BLANK, description="The text to keep."), IN_BODY]
ActionType = Annotated[str, _name("Type of the action.")]
ExperienceSummary = Annotated[str, Field(pattern=NOT_BLANK, description="What was done.")]
Type = Annotated[
    str,
    Field(
        pattern=_ENTRY_TYPE_PATTERN,
        max_length=limits.ENTRY_TYPE_CHARS_MAX,
        description="Type of the entry: fact, lesson, insight, strategy, info, note, or another word.",
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
OneTier = Annotated[Tier | None, Field(description="Only entries in this tier; default: all.")]
EntryId = Annotated[str, identifier_of("Id of the entry."), IN_NFC]
OneEntryId = Annotated[str | None, identifier_of("Only this entry; default: all."), IN_NFC]
EntryIds = Annotated[
    Sequence[str],
    Field(min_length=1, max_length=limits.EVENT_IDS_MAX, description="Ids of the entries."),
    IN_NFC,
]
ForgottenIds = Annotated[
    Sequence[str] | None, Field(max_length=limits.EVENT_IDS_MAX, description="Ids of the entries."), IN_NFC
]
ForgottenSubject = Annotated[str | None, identifier_of("All entries about this person instead."), IN_NFC]
Receiver = Annotated[str, NAME, Field(description="Name of the agent that receives them.")]
ChangeReason = Annotated[str | None, Field(max_length=limits.REASON_CHARS_MAX, description="Why; kept on record.")]
Units = Annotated[
    float, Field(allow_inf_nan=False, description="Number of units: positive for a grant, negative for a use.")
]
NewEntryId = Annotated[
    str | None,
    identifier_of("Id of the event and the entry; a call with the same id can be repeated."),
    IN_NFC,
    MAKES_REPEATABLE,
]
EntryOrder = Annotated[Literal["newest", "priority"], Field(description="Newest first, or by priority.")]
EntriesLimit = Annotated[int, Field(ge=1, le=limits.PAGE_ITEMS_MAX, description="Number of entries per page.")]
LessonsLimit = Annotated[int, Field(ge=1, le=limits.RECALL_HITS_MAX, description="Number of lessons.")]
SeedTexts = Annotated[
    Sequence[str] | None,
    Field(max_length=limits.ENTRIES_IDS_MAX, description="The first lessons; default: five built-in ones."),
    AfterValidator(_texts),
]
ComparedIds = Annotated[
    Sequence[str] | None,
    Field(max_length=limits.EVENT_IDS_MAX, description="Ids of entries to compare with the others; default: all."),
]
ApplyProposals = Annotated[bool, Field(description="Archive what is proposed; default: only propose.")]
OnlyProposed = Annotated[
    Sequence[str] | None,
    Field(max_length=limits.EVENT_IDS_MAX, description="Ids of proposed entries to archive; default: all of them."),
    IN_NFC,
]
AuditLimit = Annotated[int, Field(ge=1, le=limits.LOG_EVENTS_KEPT, description="Number of newest changes.")]
ErasuresLimit = Annotated[int, Field(ge=1, le=limits.PAGE_ITEMS_MAX, description="Number of erasures per page.")]


class EntryFields(TypedDict, total=False):
    """The properties of an entry besides its text."""

    entity: Annotated[str | None, _name("Whom or what it is about.")]
    category: Annotated[str | None, _name("A word that groups entries.")]
    source: Annotated[
        str | None, Field(max_length=long_term_limits.SOURCE_CHARS_MAX, description="Where it comes from.")
    ]
    topic: Annotated[str | None, _name("The subject matter.")]
    importance: Annotated[float | None, Field(ge=0, le=1, description="Importance, from 0 to 1 (0.5).")]
    confidence: Annotated[float | None, Field(ge=0, le=1, description="Confidence, from 0 to 1 (1).")]
    priority: Annotated[
        Priority | None, Field(description="How strongly it is preferred (normal). At most 5 of an agent are pinned.")
    ]
    red_line: Annotated[bool | None, Field(description="Whether no plan may demote or archive it (false).")]
    metadata: Annotated[OptionalObject, Field(description="Any JSON object of your own, or its text.")]


class Provenance(TypedDict, total=False):
    """The origin of an entry, and the person whom it concerns."""

    subject: Annotated[str | None, identifier_of("The person that it is about."), IN_NFC]
    audience: Annotated[
        Sequence[str] | None,
        Field(max_length=limits.AUDIENCE_NAMES_MAX, description="Agents that may read it too."),
    ]
    session: Annotated[str | None, identifier_of("The session that it comes from."), IN_NFC]


class ExtractOptions(Provenance, total=False):
    """The origin of entries, the persons whom they concern, and their sources."""

    based_on: Annotated[
        Sequence[str] | None,
        Field(
            max_length=long_term_limits.ENTRY_SOURCES_MAX,
            description="Ids of the events and entries that it is made from; it is retracted if one of them is erased.",
        ),
        IN_NFC,
    ]


class ExperienceOptions(Provenance, total=False):
    """The outcome of an experience, and its origin."""

    outcome: Annotated[str | None, Field(description="The outcome.")]
    score: Annotated[float | None, Field(allow_inf_nan=False, description="How well it went.")]
    agent_role: Annotated[str | None, _name("The role in which the agent acted.")]
    model: Annotated[
        str | None, Field(max_length=long_term_limits.MODEL_CHARS_MAX, description="The model that it used.")
    ]
    cost: Annotated[float | None, Field(allow_inf_nan=False, description="What it cost.")]


class RetainOptions(EntryFields, ExtractOptions, total=False):
    """The properties of an entry besides its text, and how it is retained."""

    dedup: Annotated[
        Dedup | None,
        Field(
            description="Which text of an entry makes this one a duplicate: none, an equal one, or one that differs in "
            "capitals, articles, and forms of numbers, dates and units; default: normalised for facts and lessons, "
            "exact for other types.",
        ),
    ]
    tier: Annotated[Tier | None, Field(description="How fast it ages; default: that of the space, else it does not.")]
    at: Annotated[OptionalTime, Field(description="When it was said or became known; default: now.")]
    cost: Annotated[
        float | None,
        Field(ge=0, allow_inf_nan=False, description="What it costs an agent with a balance (1); duplicates are free."),
    ]


class UpdateOptions(EntryFields, total=False):
    """The fields of an entry to change. In Python, None resets a field to its default."""

    text: Annotated[str | None, Field(pattern=NOT_BLANK, description="Its new text; it becomes the next version.")]
    type: Annotated[
        str | None,
        Field(pattern=_ENTRY_TYPE_PATTERN, max_length=limits.ENTRY_TYPE_CHARS_MAX, description="Its new type."),
    ]
