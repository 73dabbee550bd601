"""The canonical form of events: the bytes that this version writes, checked in compiled code.

JSON can write one event in many ways, and two parsers may disagree about some of them. So bytes are canonical only if
the fields that were read from them are written as the same bytes. Then no field is unknown, repeated or spelled in
another way. pydantic decides about all other bytes.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec.structs import asdict
from pydantic import BaseModel

from recallog_schemas import kinds, limits
from recallog_schemas.event import ENVELOPE_VERSION, ERASED_VERSION, Event, check_erased, check_payload
from recallog_schemas.names import in_nfc, is_name
from recallog_schemas.validation import KIND_PATTERN

_Identifier = Annotated[str, msgspec.Meta(min_length=1, max_length=limits.ID_CHARS_MAX)]


class Fields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The fields of `Event` in their order. Names are checked separately: a known name costs one look-up."""

    envelope: Annotated[int, msgspec.Meta(ge=ENVELOPE_VERSION, le=ERASED_VERSION)]
    id: _Identifier
    space: str
    session: _Identifier | None = None
    agent: str
    kind: Annotated[str, msgspec.Meta(max_length=limits.KIND_CHARS_MAX)]
    turn: Annotated[int, msgspec.Meta(ge=0, le=limits.TURN_MAX)]
    at: datetime
    schema_version: Annotated[int, msgspec.Meta(ge=1, le=1)]
    payload: dict[str, Any]
    subject: _Identifier | None = None
    audience: Annotated[tuple[str, ...], msgspec.Meta(max_length=limits.AUDIENCE_NAMES_MAX)] | None = None
    causation_id: _Identifier | None = None
    correlation_id: _Identifier | None = None


class _Valid(dict[str, None]):
    """Texts that pass a check. Looking up another one raises `ValueError`."""

    def __init__(self, check: Callable[[str], object]) -> None:
        self._check = check

    def __missing__(self, text: str) -> None:
        if not self._check(text):
            raise ValueError(text)
        if len(self) >= _KNOWN_MAX:
            self.clear()
        self[text] = None


_KNOWN_MAX = 50_000
"""The maximum number of cached valid names: what a process folds in some hours. They take some MiB."""
_names = _Valid(lambda text: in_nfc(text) == text and is_name(text))
_kinds = _Valid(re.compile(KIND_PATTERN).fullmatch)

_from_json = msgspec.json.Decoder(Fields).decode
_any_from_json = msgspec.json.Decoder().decode
_to_json = msgspec.json.Encoder().encode
_FLAT = frozenset({str, int, float, bool, type(None)})

_REJECTED = (AttributeError, TypeError, ValueError, RuntimeError)
"""The errors for bytes or events that are not canonical. pydantic's and msgspec's errors are among them. A
`RuntimeError` means too deep nesting, or a payload that another thread changes."""


def read(data: bytes) -> Fields | None:
    """The fields of the event in `data`; None if it is not valid, or not canonical."""
    try:
        if len(data) > limits.EVENT_BYTES_MAX:
            return None
        fields = _from_json(data)
        if _to_json(fields) != data:
            return None
        _check(fields, fields.payload, data)
    except _REJECTED:
        return None
    return fields


def write(event: Event) -> bytes | None:
    """The bytes of `event`; None if it is not valid, or if they would be read as another event."""
    try:
        fields = msgspec.convert(event.__dict__, Fields)  # its payload is a new dict, which nobody else can change
        data = _to_json(fields)
        payload = fields.payload
        if not _FLAT.issuperset(map(type, payload.values())):
            # Other threads can change lists and objects in it. They are checked as they are read from the bytes.
            payload = _any_from_json(data)["payload"]
            if payload != fields.payload:
                return None
        if len(data) > limits.EVENT_BYTES_MAX:
            return None
        _check(fields, payload, data)
    except _REJECTED:
        return None
    return data


def _check(fields: Fields, payload: dict[str, Any], data: bytes) -> None:
    """Raise one of `_REJECTED` for a name, an id, a time or a payload that is not valid; `data` are the bytes."""
    _names[fields.space]
    _names[fields.agent]
    _kinds[fields.kind]
    for name in fields.audience or ():
        _names[name]
    if fields.at.tzinfo != UTC:
        raise ValueError
    if fields.envelope == ERASED_VERSION:
        check_erased(payload)
    else:
        check_payload(fields.kind, 1, payload)
    if data.isascii():
        return
    for id_ in (fields.id, fields.session, fields.subject, fields.causation_id, fields.correlation_id):
        if id_ is not None and not id_.isascii() and in_nfc(id_) != id_:
            raise ValueError
    if kinds.in_nfc(fields.kind, payload) is not payload:
        raise ValueError


_new = Event.__new__
_set_fields = BaseModel.__dict__["__dict__"].__set__
_set_names = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__

_names_set: dict[tuple[bool, ...], set[str]] = {}
"""The names of the fields that are set, by which optional fields are None. Events share these sets:
making one takes half as long as making the event. pydantic only changes the set of a copy."""


def event_of(fields: Fields) -> Event:
    """An `Event` as pydantic makes it of valid fields. `Event.model_construct` takes four times as long."""
    values = asdict(fields)
    optional = (
        fields.session is None,
        fields.subject is None,
        fields.audience is None,
        fields.causation_id is None,
        fields.correlation_id is None,
    )
    names = _names_set.get(optional)
    if names is None:
        names = _names_set[optional] = {name for name, value in values.items() if value is not None}
    event = _new(Event)
    _set_fields(event, values)
    _set_names(event, names)
    _set_extra(event, None)
    _set_private(event, None)
    return event
