"""Sealed records: the bytes of events whose payload is encrypted (ADR 0111).

    {"envelope":1, … "schema_version":1,"payload":{…}, …}                             the canonical bytes of an event
    {"envelope":2, … "schema_version":1,"sealed":{"keys":["…"],"data":"…"}, …}        the sealed record
    {"envelope":2, … "schema_version":1,"payload":{}, …}                              what is left of an erased event

`data` is the payload by AES-256-SIV, in base64. All other bytes of the record are associated data, so that a ciphertext
is valid in its record alone. The key of the cipher is derived from all `keys`: those of the event's own units in the
order of `units_of`, then those of the events that it was made from. Destroying one of them erases the event.

Records are spliced, not parsed. Quotes in JSON texts are escaped, so that the marks below are found in no text.
"""

import binascii
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

from recallog_schemas import kinds
from recallog_schemas.event import Event

Policy = Literal["subjects", "all", "off"]
"""Which events are sealed: those with a subject and those that contain an entry; all; or none."""
UnitKind = Literal["subject", "entry", "space"]

ERASURE = "unit.erased"
"""The kind of events that say which unit was erased. They are not sealed."""
KEY_BYTES = 64

_PLAIN, _SEALED = b'{"envelope":1,', b'{"envelope":2,'
_VERSION = b',"schema_version":1,'
_PAYLOAD, _KEYS = _VERSION + b'"payload":', _VERSION + b'"sealed":{"keys":["'
_DATA, _END = b'"],"data":"', b'"}'
_SEPARATOR = '","'
CHANGED = b'{"envelope":2,"sealed":null}'
"""What is read in place of a sealed record that was changed: no event."""


class NotAuthentic(Exception):
    """A sealed record was changed, or is not one."""


class Unit(NamedTuple):
    """What can be erased as a whole. Events of a unit are sealed with its key."""

    space: str
    kind: UnitKind
    name: str
    """The subject, or the id of the entry; "" for a space."""


class Cipher(Protocol):
    """AES-256-SIV (RFC 5297) with one key."""

    def encrypt(self, data: bytes, associated_data: list[bytes] | None) -> bytes: ...

    def decrypt(self, data: bytes, associated_data: list[bytes] | None) -> bytes: ...


def units_of(event: Event, policy: Policy = "subjects") -> list[Unit]:
    """The units that an event belongs to, by a fixed order: its subject, its entry, or else its space."""
    if event.kind == ERASURE:
        return []
    units = [] if event.subject is None else [Unit(event.space, "subject", event.subject)]
    entry = kinds.kind_of(event.kind).entry
    if entry:
        name = event.id if entry == "id" else event.payload.get(entry)
        units += [Unit(event.space, "entry", str(name))]
    return units or ([Unit(event.space, "space", "")] if policy == "all" else [])


def cipher_of(keys: Iterable[bytes]) -> Cipher:
    """The cipher of events that belong to the units of all `keys`."""
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return AESSIV(HKDF(SHA256(), KEY_BYTES, None, b"recallog sealed record").derive(b"".join(keys)))


def seal(event: Event, data: bytes, ids: Sequence[str], cipher: Cipher) -> bytes:
    """The sealed record of an event with the canonical bytes `data`, by the cipher of the keys with these ids."""
    start, end = data.index(_PAYLOAD), _end_of_payload(event, data)
    head = b"".join((_SEALED, data[len(_PLAIN) : start], _KEYS, _SEPARATOR.join(ids).encode(), _DATA))
    sealed = cipher.encrypt(data[start + len(_PAYLOAD) : end], [head, data[end:]])
    return b"".join((head, binascii.b2a_base64(sealed, newline=False), _END, data[end:]))


def _end_of_payload(event: Event, data: bytes) -> int:
    if event.subject is not None:
        return data.rindex(b',"subject":')
    if event.audience is not None:
        return data.rindex(b',"audience":')
    if event.causation_id is not None:
        return data.rindex(b',"causation_id":')
    return len(data) - 1 if event.correlation_id is None else data.rindex(b',"correlation_id":')


def is_sealed(record: bytes) -> bool:
    """Whether these are the bytes of a sealed record."""
    return record.startswith(_SEALED) and _KEYS in record


def key_ids(record: bytes) -> tuple[str, ...]:
    """The ids of the keys of a sealed record. Raises `NotAuthentic`."""
    head, _, _ = _parts(record)
    return tuple(head[head.index(_KEYS) + len(_KEYS) : -len(_DATA)].decode(errors="replace").split(_SEPARATOR))


def opened(record: bytes, cipher: Cipher) -> bytes:
    """The canonical bytes that a sealed record had before. Raises `NotAuthentic`."""
    from cryptography.exceptions import InvalidTag

    head, text, tail = _parts(record)
    try:
        sealed = binascii.a2b_base64(text, strict_mode=True)
        payload = cipher.decrypt(sealed, [head, tail])
    except (binascii.Error, InvalidTag, ValueError) as error:
        raise NotAuthentic from error
    if binascii.b2a_base64(sealed, newline=False) != text:  # the last digit has bits that nothing uses
        raise NotAuthentic
    return b"".join((_PLAIN, head[len(_SEALED) : head.index(_KEYS)], _PAYLOAD, payload, tail))


def erased(record: bytes) -> bytes:
    """What is left of a sealed record once its key is gone. Raises `NotAuthentic`."""
    head, _, tail = _parts(record)
    return b"".join((head[: head.index(_KEYS)], _PAYLOAD, b"{}", tail))


def _parts(record: bytes) -> tuple[bytes, bytes, bytes]:
    """The bytes before the ciphertext, the ciphertext, and the bytes after it."""
    try:
        start = record.index(_DATA, record.index(_KEYS)) + len(_DATA)
        end = record.index(_END, start)
    except ValueError:
        raise NotAuthentic from None
    return record[:start], record[start:end], record[end + len(_END) :]
