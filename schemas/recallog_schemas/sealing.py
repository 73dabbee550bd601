"""Sealed records: the bytes of events whose payload is encrypted (ADR 0111).

    {"envelope":1, … "schema_version":1,"payload":{…}, …}                             the canonical bytes of an event
    {"envelope":2, … "schema_version":1,"sealed":{"keys":["…"],"data":"…"}, …}        the sealed record
    {"envelope":2, … "schema_version":1,"payload":{}, …}                              what is left of an erased event

`data` is the payload encrypted with AES-256-GCM, in base64: the nonce, the ciphertext, the tag. All other bytes of the
record are associated data, so that a ciphertext is valid only in its own record. The nonce is a keyed digest of both: a
repeated event gives the same record, and no two records share a nonce. The keys of cipher and digest are derived from
all `keys`: those of the event's own units in the order of `units_of`, then those of the events that it was made from.
Destroying one of them erases the event.

Records are spliced, not parsed. Quotes in JSON texts are escaped, so that no text contains the marks below. The fields
before the payload are only texts and numbers, so that the first mark is the mark of the record.
"""

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple

from recallog_schemas import kinds
from recallog_schemas.event import Event

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Policy = Literal["subjects", "all", "each", "off"]
"""Which events are sealed: those that have a subject or contain an entry; all events; all events, each also with its
own key; or none."""
UnitKind = Literal["subject", "entry", "space"]

ERASURE = "unit.erased"
"""The kind of events that say which unit was erased. They are not sealed."""
KEY_BYTES = 32
DESTROYED = b""
"""What is stored in place of the bytes of a destroyed key."""
_NONCE_BYTES = 12

_PLAIN, _SEALED = b'{"envelope":1,', b'{"envelope":2,'
_PAYLOAD, _KEYS = b',"payload":', b',"sealed":{"keys":["'
_DATA, _END = b'"],"data":"', b'"}'
_SEPARATOR = '","'
CHANGED = b'{"envelope":2,"sealed":null}'
"""The value that is read in place of a sealed record that was changed. It is not an event."""


class Unit(NamedTuple):
    """What can be erased as a whole. Events of a unit are sealed with its key."""

    space: str
    kind: UnitKind
    name: str
    """The subject, or the id of the entry; "" for a space."""


class Cipher(NamedTuple):
    """Seals and opens the events that have the same keys."""

    aes: "AESGCM"
    nonce_key: bytes
    keys: bytes
    """The ids of the keys, as they are written in a record."""

    def seal(self, event: Event, data: bytes) -> bytes:
        """The sealed record of an event with the canonical bytes `data`."""
        start, end = data.index(_PAYLOAD), _end_of_payload(event, data)
        payload, tail = data[start + len(_PAYLOAD) : end], data[end:]
        head = b"".join((_SEALED, data[len(_PLAIN) : start], _KEYS, self.keys, _DATA))
        beside = head + tail
        nonce = blake2b(beside + payload, digest_size=_NONCE_BYTES, key=self.nonce_key).digest()
        sealed = nonce + self.aes.encrypt(nonce, payload, beside)
        return b"".join((head, b2a_base64(sealed, newline=False), _END, tail))

    def open(self, record: bytes) -> bytes:
        """The canonical bytes that a sealed record had before; `CHANGED` if it is not the record that was sealed."""
        keys = record.find(_KEYS)
        start = record.find(_DATA, keys) + len(_DATA)
        end = record.find(_END, start)
        text, tail = record[start:end], record[end + len(_END) :]
        try:
            sealed = a2b_base64(text)
            payload = self.aes.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], record[:start] + tail)
        except (ValueError, _invalid_tag()):
            return CHANGED
        if b2a_base64(sealed, newline=False) != text:  # the library ignores other characters and the last bits
            return CHANGED
        return b"".join((_PLAIN, record[len(_SEALED) : keys], _PAYLOAD, payload, tail))


def units_of(event: Event, policy: Policy = "subjects") -> list[Unit]:
    """The units that an event belongs to, in a fixed order: its subject, its entry, or else its space."""
    if event.kind == ERASURE:
        return []
    return named_units(event.space, event.subject, entry_of(event, policy), policy)


def entry_of(event: Event, policy: Policy = "subjects") -> str | None:
    """The id of the entry whose words an event contains. For other events, with the policy `each`, their own id."""
    field = kinds.kind_of(event.kind).entry
    if not field:
        return event.id if policy == "each" else None
    return event.id if field == "id" else str(event.payload.get(field))


def named_units(space: str, subject: str | None, entry: str | None, policy: Policy) -> list[Unit]:
    """`units_of` an event of this space with this subject and entry."""
    units = [] if subject is None else [Unit(space, "subject", subject)]
    units += [] if entry is None else [Unit(space, "entry", entry)]
    return units or ([Unit(space, "space", "")] if policy == "all" else [])


def cipher_of(ids: Iterable[str], keys: Iterable[bytes]) -> Cipher:
    """The cipher of events that belong to the units of all `keys`."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(SHA256(), 64, None, b"recallog sealed record").derive(b"".join(keys))
    return Cipher(AESGCM(derived[:32]), derived[32:], _SEPARATOR.join(ids).encode())


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
    return bool(keys_in(record))


def keys_in(record: bytes) -> bytes:
    """The ids of the keys of a sealed record, as they are written in it; empty if it is not sealed."""
    if not record.startswith(_SEALED):
        return b""
    start = record.find(_KEYS)
    end = record.find(_DATA, start)
    return record[start + len(_KEYS) : end] if 0 <= start < end else b""


def key_ids(record: bytes) -> tuple[str, ...]:
    """The ids of the keys of a record; empty for one that is not sealed."""
    return ids_of(keys_in(record))


def ids_of(keys: bytes) -> tuple[str, ...]:
    """The ids in what `keys_in` returns."""
    return tuple(keys.decode(errors="replace").split(_SEPARATOR)) if keys else ()


def _invalid_tag() -> type[Exception]:
    """Imported with the first error: a memory without sealing does not load the library."""
    from cryptography.exceptions import InvalidTag

    return InvalidTag


def erase_record(record: bytes) -> bytes:
    """What is left of a sealed record once one of its keys is destroyed."""
    end = record.find(_END, record.find(_DATA))
    return b"".join((record[: record.find(_KEYS)], _PAYLOAD, b"{}", record[end + len(_END) :]))
