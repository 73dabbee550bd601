"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from recallog.operations.parameters import optional
from recallog_schemas import limits
from recallog_schemas.names import IN_NFC, in_nfc

SHA256_PATTERN = r"^[0-9a-f]{64}$"
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}


def _namespace(value: object) -> Sequence[str]:
    names = value.split("/") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not 1 <= len(names) <= limits.ITEM_NAMESPACE_NAMES_MAX:
        raise PydanticCustomError("namespace", "should be 1 to 8 names, or a text with / between them")
    for name in names:
        if not isinstance(name, str) or not 1 <= len(name) <= limits.ITEM_NAME_CHARS_MAX:
            raise PydanticCustomError("namespace", "each name should be a text of 1 to 256 characters")
    return in_nfc(names)


def _base(value: object) -> int | str:
    if isinstance(value, str):
        if re.fullmatch(SHA256_PATTERN, value):
            return value
        if re.fullmatch("[0-9]{1,18}", value):
            return int(value)
    elif type(value) is int and 0 <= value <= limits.INTEGER_MAX:
        return value
    raise PydanticCustomError("item_base", "should be a version (0: there is no such item) or 64 hexadecimal digits")


def item_name(description: str) -> Any:
    return Field(min_length=1, max_length=limits.ITEM_NAME_CHARS_MAX, description=description)


ItemNamespace = Annotated[
    Sequence[str] | str,
    PlainValidator(_namespace),
    Field(description="Names of the namespace, outermost first; a text is split at /."),
    WithJsonSchema({"anyOf": [{"type": "string"}, _NAMES], "examples": ["notes/bakery"]}),
]
BelowNamespace = Annotated[
    Sequence[str] | str | None,
    PlainValidator(optional(_namespace)),
    Field(description="Only this namespace and namespaces below it; a text is split at /. Default: all."),
    WithJsonSchema({"anyOf": [{"type": "string"}, _NAMES, {"type": "null"}]}),
]
ItemKey = Annotated[str, item_name("Name of the item in its namespace."), IN_NFC]
NewKey = Annotated[str, item_name("Its new name in the namespace."), IN_NFC]
ItemValue = Annotated[Any, Field(description=f"The value: any JSON of at most {limits.ITEM_VALUE_BYTES_MAX:,} bytes.")]
JsonText = Annotated[bool, Field(description="The value is the text of a JSON document.")]
AppendedText = Annotated[str, Field(description="The text to add.")]
Base = Annotated[
    int | str | None,
    PlainValidator(optional(_base)),
    Field(description="Only if the item has this version (0: if there is none) or this SHA-256."),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": SHA256_PATTERN}, {"type": "null"}]}
    ),
]
NewestFirst = Annotated[bool, Field(description="Most recently changed first; default: by namespace and key.")]


def names(given: Sequence[str] | str) -> Sequence[str]:
    """A namespace after validation: always a sequence."""
    return given
