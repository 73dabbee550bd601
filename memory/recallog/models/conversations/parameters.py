"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import BaseModel, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from recallog.operations.operation import FROM_FILE
from recallog.operations.parameters import clamp_to, identifier_of
from recallog_schemas import limits
from recallog_schemas.models.conversations import limits as conversations_limits
from recallog_schemas.names import IN_NFC
from recallog_schemas.validation import json_of


def _messages(value: object) -> Sequence[Mapping[str, Any]]:
    if isinstance(value, str):
        try:
            value = json_of(value)
        except ValueError as error:
            raise PydanticCustomError(
                "json_invalid", "must be a message or a list of messages, as JSON: {why}", {"why": str(error)}
            ) from None
    given = value if isinstance(value, list | tuple) else [value]
    if len(given) > conversations_limits.MESSAGES_MAX:
        raise PydanticCustomError(
            "too_many", f"should be at most {conversations_limits.MESSAGES_MAX:,} messages in one call"
        )
    return [_message(each) for each in given]


def _message(value: object) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):  # as OpenAI's client returns them
        value = value.model_dump(exclude_none=True, warnings=False)
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    raise PydanticCustomError("message", "should be messages, each an object with a role")


ConversationSession = Annotated[str, identifier_of("Session of the messages."), IN_NFC]
Messages = Annotated[
    Sequence[Mapping[str, Any]] | Mapping[str, Any] | str,
    PlainValidator(_messages),
    Field(
        description="Messages of OpenAI's chat completions, of Anthropic or of the AI SDK, or items of OpenAI's "
        "Responses API, oldest first, or one, or their JSON."
    ),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "array",
                    "maxItems": conversations_limits.MESSAGES_MAX,
                    "items": {"type": "object"},
                },
                {"type": "object"},
                {"type": "string"},
            ],
            "examples": [[{"role": "user", "content": "Who owes the miller?"}]],
        }
    ),
    FROM_FILE,
]
Continues = Annotated[bool, Field(description="Treat messages without an id as new, even if they repeat earlier ones.")]
MessageTurn = Annotated[
    int | None,
    Field(
        ge=0,
        le=limits.TURN_MAX,
        description="Turn of the messages; default: each message of the user begins the next one.",
    ),
]
MessageSubject = Annotated[
    str | None,
    identifier_of("The person whose data the messages contain; default: the name in a user's message."),
    IN_NFC,
]
Whole = Annotated[bool, Field(description="Include compacted messages, and leave out the summary.")]
MessageBefore = Annotated[
    str | None, Field(description="Only messages before the one with this id: the first of `ids` of an answer.")
]
CompactMessages = Annotated[
    int,
    clamp_to(conversations_limits.COMPACT_MESSAGES_LEAST, limits.INTEGER_MAX),
    Field(description="Compact if there are more messages than this."),
]
CompactChars = Annotated[
    int,
    clamp_to(conversations_limits.COMPACT_CHARS_LEAST, limits.INTEGER_MAX),
    Field(description="Compact if there are more characters than this."),
]
CompactKept = Annotated[
    int,
    clamp_to(conversations_limits.COMPACT_KEPT_LEAST, limits.INTEGER_MAX),
    Field(description="Number of newest messages to keep."),
]
MessageIds = Annotated[
    Sequence[str],
    Field(
        min_length=1,
        max_length=conversations_limits.MESSAGES_MAX,
        description="Ids of messages, or of their events.",
    ),
    IN_NFC,
]
PoppedMessages = Annotated[int, Field(ge=1, le=conversations_limits.MESSAGES_MAX, description="Number of messages.")]


def message_list(given: object) -> Sequence[Mapping[str, Any]]:
    """Messages after validation: always a list."""
    return cast("Sequence[Mapping[str, Any]]", given)
