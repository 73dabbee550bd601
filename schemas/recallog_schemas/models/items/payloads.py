"""The payloads of items: values that an agent keeps under a namespace and a key."""

from typing import Any

from pydantic import field_validator
from pydantic_core import PydanticCustomError, to_json

from recallog_schemas import limits
from recallog_schemas.kinds.payload import Base, Count, ItemName, Namespace, Payload


def value_bytes(value: Any) -> int:
    """The bytes of a value as JSON."""
    return len(to_json(value))


def _small(value: Any) -> Any:
    try:
        size = value_bytes(value)
    except ValueError:
        raise PydanticCustomError("unicode", "half of a surrogate pair is not valid text") from None
    if size > limits.ITEM_VALUE_BYTES_MAX:
        raise PydanticCustomError(
            "item_value",
            "its JSON has {size} bytes, the limit is {most}",
            {"size": size, "most": limits.ITEM_VALUE_BYTES_MAX},
        )
    return value


class Addressed(Payload):
    """The fields that all changes of an item have."""

    namespace: Namespace
    """The names of the namespace, outermost first."""
    key: ItemName
    """The name of the item in its namespace."""


class Conditional(Addressed):
    """A change that may rely on the state of the item."""

    base: Base = None
    """The version (0: there is no such item) or the SHA-256 of the value that the change relies on; if the item has
    another one, the change is refused."""


class ItemPut(Conditional):
    """The item gets a value."""

    value: Any
    """Any JSON of at most 64 KiB."""
    index: bool | None = None
    """Whether the value is searched by meaning (null: as its namespace defines)."""

    _is_small = field_validator("value")(_small)


class ItemAppended(Conditional):
    """A text is added to the end of an item's text."""

    text: str
    """The text that is added."""
    block: bool = False
    """Whether the text consists of the lines of a block of facts. Documents of the workspace add a heading and have
    limits for it; other texts get it on a new line."""

    _is_small = field_validator("text")(_small)


class ItemDeleted(Conditional):
    """The item is deleted."""


class ItemMoved(Conditional):
    """The item gets another key."""

    to: ItemName
    """Its new key in the same namespace; an item that has this key is replaced."""


class ItemDrained(Addressed):
    """The values of a queue were taken."""

    upto: Count
    """The version up to which they were taken; values added later stay."""
