"""Stored keys as a JSON document with a checksum: `{"checksum": "<SHA-256>", "keys": [...]}`.

The checksum covers the whole document with 64 zeros in place of the checksum itself, so that a changed byte cannot
become a grant. People can read the document; they change it with `recallog keys`.
"""

import hashlib
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from recallog_service.access.keys import Key

_PLACE = "0" * 64
_UNSEALED = b"["
"""Documents of earlier versions begin with it: a list of keys without a checksum."""
_keys = TypeAdapter(list[Key])


class KeysDamaged(ValueError):
    """The checksum of a document does not match its content."""


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")

    checksum: str
    keys: list[Key]


def seal_keys(keys: Sequence[Key], *, indent: int | None = None) -> bytes:
    """The document of some keys."""
    document = _Document(checksum=_PLACE, keys=list(keys)).model_dump_json(indent=indent).encode()
    return document.replace(_PLACE.encode(), _digest(document), 1)


def read_keys(document: bytes) -> Sequence[Key]:
    """The keys in a document, including one of an earlier version. Raises `KeysDamaged`."""
    try:
        if document.startswith(_UNSEALED):
            keys = _keys.validate_json(document)
        else:
            found = _Document.model_validate_json(document)
            checksum, keys = found.checksum.encode(), found.keys
            if checksum != _digest(document.replace(checksum, _PLACE.encode(), 1)):
                raise KeysDamaged
    except ValidationError:
        raise KeysDamaged from None
    if not keys:  # no version has written such a document, and accepting it would turn off authentication
        raise KeysDamaged
    return keys


def _digest(document: bytes) -> bytes:
    return hashlib.sha256(document).hexdigest().encode()
