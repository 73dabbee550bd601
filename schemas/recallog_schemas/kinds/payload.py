"""The base of payload models, and the types that their fields share."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from recallog_schemas import limits
from recallog_schemas.names import IN_NFC, NAME
from recallog_schemas.validation import NOT_BLANK

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Payload(BaseModel):
    """The payload fields that a kind defines; others are allowed and stored."""

    # Built when it is first used: most commands validate few kinds, and building all takes a fifth of their start.
    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)


class Part(BaseModel):
    """An object within a payload. Further fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Encoded:
    """Metadata of a type whose texts are parts of JSON, in which nothing may be replaced."""


def _as_float(value: object) -> object:
    return float(value) if type(value) is int else value


def _version_or_digest(value: object) -> object:
    if value is None or (type(value) is int and value >= 0) or (isinstance(value, str) and _SHA256.fullmatch(value)):
        return value
    raise PydanticCustomError("item_base", "should be a version (0: there must be no such item) or 64 hex digits")


Number = Annotated[float, BeforeValidator(_as_float), Field(allow_inf_nan=False)]
"""Any JSON number, including integers."""
Share = Annotated[float, BeforeValidator(_as_float), Field(ge=0, le=1)]
"""From 0 to 1."""
Count = Annotated[int, Field(ge=0, le=limits.INTEGER_MAX)]
Positive = Annotated[int, Field(ge=1, le=limits.INTEGER_MAX)]

AgentName = Annotated[str, NAME]
Id = Annotated[str, Field(min_length=1, max_length=limits.ID_CHARS_MAX), IN_NFC]
Ids = Annotated[list[Id], Field(min_length=1, max_length=limits.EVENT_IDS_MAX)]
Label = Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARS_MAX)]
"""A short text that names something: an entity, a category, a tool."""
Words = Annotated[str, Field(pattern=NOT_BLANK)]
"""A text with at least one character that is not white space."""
Reason = Annotated[str, Field(max_length=limits.REASON_CHARS_MAX)]

Tier = Literal["fast", "medium", "slow", "glacial"]
"""How fast an entry ages: from seconds to weeks."""
Priority = Literal["pinned", "critical", "important", "normal", "low"]
"""How strongly an entry is preferred. At most 5 live entries of an agent are pinned."""
EntryType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=limits.ENTRY_TYPE_CHARS_MAX)]

ItemName = Annotated[str, Field(min_length=1, max_length=limits.ITEM_NAME_CHARS_MAX), IN_NFC]
Namespace = Annotated[list[ItemName], Field(min_length=1, max_length=limits.ITEM_NAMESPACE_NAMES_MAX)]
Base = Annotated[int | str | None, BeforeValidator(_version_or_digest)]
"""The state of an item that a change relies on: its version (0: there is no such item), or the SHA-256 of its value."""

Json = Any
"""Any JSON value."""
