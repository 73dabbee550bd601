"""The codec between events and bytes, used by every ledger, producer and reader.

The bytes are UTF-8 JSON. Checks run in this order, so that old and new code agree about which records they can check:
future schema, then an old envelope (upcast), then the fields of the envelope, then the payload.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import msgspec
from pydantic import ValidationError
from pydantic_core import PydanticCustomError, SchemaValidator, from_json

from recallog_schemas import canonical, kinds, limits, names, upcasting
from recallog_schemas.errors import EventTooLarge, FutureSchema, InvalidArgument, InvalidEvent
from recallog_schemas.event import (
    ENVELOPE_VERSION,
    ERASED_VERSION,
    Event,
    EventFields,
    check_erased,
    check_payload,
    fields_of,
)
from recallog_schemas.validation import first_problem, not_text

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _plain(value: object) -> object:
    """A value whose type derives from str, int or float, for example `numpy.float64`, as one of these."""
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain.__str__(value) if plain is str else plain(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode
# For valid events that other programs have written. This validator checks the envelope in pydantic's compiled core and
# the payload by one call: half the time of `Event`'s own validation. Without `_use_prebuilt=False`, pydantic (2.13 and
# later) would substitute `Event`'s own validator with its calls into Python: 4.9 instead of 2.8 µs.
_validate_fields = SchemaValidator(
    {**EventFields.__pydantic_core_schema__, "cls": Event}, _use_prebuilt=False
).validate_json
_MESSAGES = {
    "extra_forbidden": "unknown field; extra data belongs into payload",
    "timezone_aware": "a time needs its zone: add Z, or an offset such as +02:00",
}
_REQUIRED = frozenset({"envelope", "id", "at"})
_ABSENT = object()


def with_enough_stack(work: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """`work` with a result that does not depend on the depth of the caller's stack.

    After a `RecursionError` it runs again in a new thread, whose stack has room for about 900 levels. The JSON parser
    stops at about 200 levels.
    """

    @wraps(work)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return work(*args, **kwargs)
        except RecursionError:
            with ThreadPoolExecutor(1) as executor:
                future = executor.submit(work, *args, **kwargs)
            if isinstance(future.exception(), RecursionError):
                raise InvalidEvent("nested deeper than any event", rule="unparsable") from None
            return future.result()

    return call


def encode(event: Event) -> bytes:
    """The bytes of `event`, which `decode` turns into an equal event.

    An event is frozen, but its payload is a dict that may have been changed since it was checked, and pydantic offers
    ways around a frozen model. So the bytes are validated, as `decode` does it, not the event. Raises
    `InvalidEvent` (with the field's path), `EventTooLarge` or `FutureSchema`.
    """
    data = canonical.write(event)
    return _encode_slowly(event) if data is None else data


@with_enough_stack
def _encode_slowly(event: Event) -> bytes:
    """Encode values that JSON writes differently, such as a tuple. Raises the error that names a value which JSON
    cannot write.

    Works on a copy that no other thread can change between its check and its encoding.
    """
    try:
        fields = _copy_value(event.__dict__)
        checked = _validate_event(fields, frozenset())
        data = _write_event(checked)
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, RecursionError):
            raise
        raise InvalidEvent(f"the event cannot be written: {error}", rule="json_type") from None
    decode(data)  # raises FutureSchema for what only newer code can check
    return data


def _copy_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy_value(item) for key, item in dict(value).items()}
    return [_copy_value(item) for item in list(value)] if isinstance(value, list | tuple) else value


def _write_event(event: Event) -> bytes:
    """The bytes of an event that was just checked."""
    try:
        data = _encode(fields_of(event))
    except UnicodeEncodeError as error:
        path = not_text(fields_of(event)) or ""
        raise InvalidEvent(
            f"{path}: half of a surrogate pair is not valid text: {error}", path=path, rule="unicode"
        ) from None
    _check_size(data)
    return data


def decode(data: bytes) -> Event:
    """The event in `data`. Raises `InvalidEvent`, `EventTooLarge` or `FutureSchema`."""
    fields = canonical.read(data)
    return _decode_spelled_otherwise(data) if fields is None else canonical.event_of(fields)


def _decode_spelled_otherwise(data: bytes) -> Event:
    if len(data) > limits.EVENT_BYTES_MAX:
        from recallog_schemas import sealing  # few commands need it

        if not sealing.is_sealed(data):  # a sealed record is longer than its event
            _check_size(data)
    try:
        event: Event = _validate_fields(data)
        if event.is_erased:
            check_erased(event.payload)
        else:
            check_payload(event.kind, event.schema_version, event.payload)
    except (ValidationError, PydanticCustomError, RecursionError):
        return _decode_slowly(data)
    is_in_nfc = event.is_erased or kinds.in_nfc(event.kind, event.payload) is event.payload
    if not is_in_nfc or event.schema_version > 1 or event.at.tzinfo != UTC or not event.model_fields_set >= _REQUIRED:
        return _decode_slowly(data)
    return event


@with_enough_stack
def _decode_slowly(data: bytes) -> Event:
    """Decode what the fast validator rejects: an old or future envelope, an old payload, or an invalid record, naming
    the error."""
    fields = _fields(data)
    _refuse_future(fields)
    _refuse_sealed(fields)
    fields = upcasting.upcast(fields) if "envelope" not in fields else fields
    if isinstance(fields.get("payload"), dict):
        fields["payload"] = kinds.leave_out_misfits(fields.get("kind"), fields["payload"])
    return _validate_event(fields, _REQUIRED)


@with_enough_stack
def parse(data: bytes | str) -> Event:
    """An event as a person or a producer writes it: like `decode`, but `id`, `at` and `envelope` may be absent.

    Raises `InvalidEvent` (with the field's path), `EventTooLarge` or `FutureSchema`.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    fields = _fields(raw)
    _refuse_future(fields)
    old = "envelope" not in fields and "run_id" in fields
    event = _validate_event(upcasting.upcast(fields), _REQUIRED) if old else _validate_event(fields, frozenset())
    _write_event(event)
    return event


@with_enough_stack
def make(fields: dict[str, Any]) -> Event:
    """`Event(**fields)` for unchecked fields. Raises `InvalidEvent` with the field's path."""
    event = _validate_event(fields, frozenset())
    _write_event(event)
    return event


def checked_name(name: str, field: str = "space") -> str:
    """The name of a space or an agent in NFC. Raises `InvalidArgument` if it is not valid."""
    try:
        return names.check_name(name)
    except PydanticCustomError as error:
        raise InvalidArgument(f"{field}: {error.message()}", path=field, rule=error.type) from None


def schema_digest(names: frozenset[str] | None = None) -> str:
    """The version of the envelope and the digest of the built-in kinds among `names` (None: of all), as text."""
    return f"{ENVELOPE_VERSION}-{kinds.digest(names)}"


def _check_size(data: bytes) -> None:
    if len(data) > limits.EVENT_BYTES_MAX:
        raise EventTooLarge(
            f"the event is {len(data):,} bytes long, the limit is {limits.EVENT_BYTES_MAX:,}; "
            "keep large content elsewhere and put a reference into the payload",
            rule="too_large",
        )


def _fields(data: bytes) -> dict[str, Any]:
    # The parser of the fast validator. The depth limit of the json module depends on the caller's stack, so that the
    # same record could be a dead letter in one process only. This parser counts levels itself, up to about 200.
    try:
        fields = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidEvent(f"not JSON: {error}", rule="unparsable") from None
    if not isinstance(fields, dict):
        raise InvalidEvent("not a JSON object", rule="unparsable")
    return fields


def _refuse_future(fields: dict[str, Any]) -> None:
    envelope, version, kind = fields.get("envelope", 0), fields.get("schema_version", 1), fields.get("kind")
    if type(envelope) is int and envelope > ERASED_VERSION:
        raise FutureSchema(
            f"envelope {envelope} is newer than {ERASED_VERSION}, the newest that this version of Recallog reads; "
            "upgrade it",
            path="envelope",
            rule="future_schema",
        )
    known = kinds.CATALOGUE.get(kind) if isinstance(kind, str) else None
    if known is not None and type(version) is int and version > known.schema_version:
        raise FutureSchema(
            f"schema_version {version} of {kind} is newer than {known.schema_version}, the newest that this version "
            "of Recallog reads; upgrade it",
            path="schema_version",
            rule="future_schema",
        )


def _refuse_sealed(fields: dict[str, Any]) -> None:
    """Raise `InvalidEvent` for a sealed record, which a ledger has opened if it has the key."""
    sealed = fields.get("sealed", _ABSENT) if fields.get("envelope") == ERASED_VERSION else _ABSENT
    if isinstance(sealed, dict):
        raise InvalidEvent("sealed: the key of this record is missing", path="sealed", rule="key_missing")
    if sealed is None:
        raise InvalidEvent("sealed: this record was changed after it was sealed", path="sealed", rule="not_authentic")


def _validate_event(fields: dict[str, Any], required: frozenset[str]) -> Event:
    missing = required - fields.keys()
    if missing:
        raise InvalidEvent(f"{min(missing)}: required in the ledger", path=min(missing), rule="missing")
    try:
        return Event.model_validate(fields)  # not Event(**fields), which Python refuses if a key is not a text
    except ValidationError as error:
        raise _invalid_event(error, fields.get("kind")) from None


def _invalid_event(error: ValidationError, kind: object) -> InvalidEvent:
    """The first broken rule as one line: the field's path and what is wrong."""
    problem = first_problem(error)
    rule = "unparsable" if problem.rule == "json_invalid" else problem.rule
    message = _MESSAGES.get(problem.rule, problem.message)
    if problem.rule == "extra_forbidden" and problem.path.startswith("payload."):
        known = kinds.fields_beside(str(kind), problem.path.split(".")[1:])
        near = get_close_matches(problem.path.rpartition(".")[2], known, 1)
        message = f"unknown field; did you mean {near[0]}?" if near else f"unknown field; it has {', '.join(known)}"
    return InvalidEvent(f"{problem.path}: {message}" if problem.path else message, path=problem.path, rule=rule)
