"""Events, their positions in the ledger, and records (an event with its position)."""

import math
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self

import msgspec
import uuid_utils
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError, core_schema

from recallog_schemas import kinds, limits, timestamps
from recallog_schemas.errors import OutOfRange
from recallog_schemas.lazy_exports import document
from recallog_schemas.names import IN_NFC, NAME
from recallog_schemas.validation import KIND_PATTERN

ENVELOPE_VERSION = 1
ERASED_VERSION = 2
"""The envelope of an event whose payload is erased, and of a sealed record, see `recallog_schemas.sealing`."""
ERASED_TEXT = "[erased]"

_AHEAD = timedelta(seconds=limits.AHEAD_SECONDS_MAX)
_NEVER = datetime.max.replace(tzinfo=UTC)
_APPENDED_MAX = timestamps.micros(_NEVER - _AHEAD) // 1_000
_POSITION = re.compile(r"(?:([0-9]{1,10}):)?([0-9]{1,19})")

Name = Annotated[str, NAME]
Identifier = Annotated[str, Field(min_length=1, max_length=limits.ID_CHARS_MAX), IN_NFC]


def _new_id() -> str:
    return str(uuid_utils.uuid7())


def _now() -> datetime:
    return datetime.now(UTC)


def _written_out(value: object, validate: Callable[[object], datetime]) -> datetime:
    # pydantic reads 123 and "123" as seconds since 1970; an event's time is written out, with its zone.
    if not (isinstance(value, datetime) or (isinstance(value, str) and value[4:5] == "-")):
        raise PydanticCustomError("datetime_format", "write the time with its zone, for example 2026-03-01T12:00:00Z")
    return validate(value)


class _Moment:
    """A time with its zone. JSON is validated without a call into Python, which would slow down the fold."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        aware = core_schema.datetime_schema(tz_constraint="aware", strict=False)
        written = core_schema.str_schema(pattern=r"^\d{4}-")
        return core_schema.json_or_python_schema(
            json_schema=core_schema.chain_schema([written, aware]),
            python_schema=core_schema.no_info_wrap_validator_function(_written_out, aware),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}


def check_payload(kind: str, schema_version: int, payload: Mapping[str, Any]) -> None:
    """Raise `PydanticCustomError` or `ValidationError` if `payload` is not JSON or does not fit its kind."""
    if len(payload) == 1 and type(payload.get("text")) is str and kinds.allows_only_a_text(kind):
        return
    for key, value in payload.items():
        if type(value) is not str:
            _check_json(value, f"payload.{key}")
    # The payload of a later schema version cannot be checked here: the codec raises `FutureSchema`.
    if schema_version == 1:
        kinds.check(kind, payload)


def check_erased(payload: Mapping[str, Any]) -> None:
    """Raise `PydanticCustomError` if `payload` is not the payload of an erased event."""
    if payload:
        raise PydanticCustomError("erased", "envelope 2 is that of an erased event, whose payload is empty")


def _check_json(value: object, path: str, depth: int = 0) -> None:
    """Raise if `value` is not JSON that every reader of the ledger decodes to the same value."""
    if isinstance(value, str | bool) or value is None:
        return
    if isinstance(value, int):
        if not -limits.INTEGER_MAX - 1 <= value <= limits.INTEGER_MAX:
            raise _not_json("integer_range", path, "an integer must fit into 64 bits; send it as a string")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _not_json("finite_number", path, "NaN and infinity are not JSON; leave the field out")
    elif depth >= limits.PAYLOAD_DEPTH_MAX:
        raise _not_json("depth", path, f"nested deeper than {limits.PAYLOAD_DEPTH_MAX} levels")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise _not_json("json_type", path, f"the key {key!r} is not a string")
            _check_json(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check_json(item, f"{path}.{index}", depth + 1)
    else:
        raise _not_json("json_type", path, f"{type(value).__name__} is not a JSON value")


def _not_json(rule: str, path: str, message: str) -> PydanticCustomError:
    return PydanticCustomError(rule, "{message}", {"path": path, "message": message})


class EventFields(BaseModel):
    """The envelope: names, types and bounds. The payload is not checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    envelope: Annotated[int, Field(ge=1, le=ERASED_VERSION)] = ENVELOPE_VERSION
    """Version of these fields; 2 for an event whose payload is erased."""
    id: Identifier = Field(default_factory=_new_id)
    """Unique within the space; the idempotency key. UUIDv7 by default."""
    space: Name
    """The boundary of order, privacy and tenancy."""
    session: Identifier | None = None
    """A run inside the space."""
    agent: Name
    """The agent that acted."""
    kind: Annotated[str, Field(pattern=KIND_PATTERN, max_length=limits.KIND_CHARS_MAX)]
    """Dotted lower case, at least two segments; see `recallog_schemas.kinds`."""
    turn: Annotated[int, Field(ge=0, le=limits.TURN_MAX)] = 0
    """The space's step counter."""
    at: Annotated[datetime, _Moment] = Field(default_factory=_now)
    """When it happened, in UTC."""
    schema_version: Annotated[int, Field(ge=1, le=limits.INTEGER_MAX)] = 1
    """Version of the kind's payload."""
    payload: dict[str, Any] = Field(default_factory=dict, validate_default=True)
    """What happened; any JSON object that the kind allows."""
    subject: Identifier | None = None
    """The person whose data this is: the unit of erasure."""
    audience: Annotated[tuple[Name, ...], Field(max_length=limits.AUDIENCE_NAMES_MAX, strict=False)] | None = None
    """The agents that see it besides its own agent; unset, the kind determines them."""
    causation_id: Identifier | None = None
    """The event, or the trigger of a reflection, that caused it."""
    correlation_id: Identifier | None = None
    """An id that events of one activity share, for example a request."""


class Event(EventFields):
    """One immutable fact that happened.

    Defaults are filled in when an event is created, never when bytes are decoded: in the ledger `envelope`, `id` and
    `at` are required. Unknown fields are rejected; extra data belongs in `payload`.
    """

    @field_validator("at")
    @classmethod
    def _in_utc(cls, at: datetime) -> datetime:
        try:
            utc = at.astimezone(UTC)
        except OverflowError:
            raise PydanticCustomError("datetime_range", "in UTC this time lies outside the years 1 to 9999") from None
        if type(utc) is datetime:
            return utc
        # The times of pandas and of test clocks derive from datetime; the codec writes no derived types.
        return datetime(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, UTC)

    @field_validator("payload")
    @classmethod
    def _payload_of_its_kind(cls, payload: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        kind = info.data.get("kind", "")
        if info.data.get("envelope") == ERASED_VERSION:
            check_erased(payload)
            return payload
        check_payload(kind, info.data.get("schema_version", 1), payload)
        return kinds.in_nfc(kind, payload)

    @property
    def is_erased(self) -> bool:
        """Whether its payload was erased. All its other fields remain."""
        return self.envelope == ERASED_VERSION

    @property
    def text(self) -> str:
        """The text of the event by the catalogue of kinds; "" if it has none, "[erased]" if it was erased.

        Views show this text, or the one that the event's space declares for its kind.
        """
        return ERASED_TEXT if self.envelope == ERASED_VERSION else kinds.text_of(self.kind, self.payload)


@dataclass(frozen=True, order=True, slots=True)
class Position:
    """The position of an event in the ledger. Offsets start at 0; positions of one space are totally ordered."""

    partition: int
    """The partition of the ledger that holds the space, from 0."""
    offset: int
    """The place in the partition, from 0."""

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "0:41", or "41" for partition 0. Raises `OutOfRange` for anything else."""
        found = _POSITION.fullmatch(text)
        position = None if found is None else cls(int(found[1] or "0"), int(found[2]))
        if position is None or position.partition > limits.PARTITION_MAX or position.offset > limits.INTEGER_MAX:
            raise OutOfRange(f"{reprlib.repr(text)} is not a position; write it as PARTITION:OFFSET, for example 0:41")
        return position


class Record(msgspec.Struct, frozen=True):
    """An event together with its position in the ledger, as projections receive it."""

    partition: int
    offset: int
    event: Event
    data: bytes
    """The event's bytes in the ledger."""
    memorable: bool
    """Whether its event is an episode that time travel has reached. Other events are folded, but no agent remembers
    them."""
    reached: bool = True
    """False for events later than the moment of a time-travel query: only the settings that they change count."""
    appended: int = 0
    """When it was first appended to a ledger, in milliseconds since 1970; 0 if that is not known, as in old ledgers."""
    is_ahead: bool = False
    """Whether the `at` of its event is more than a day after `appended`, see `ahead_of`. Such a time sets no clock."""

    @property
    def position(self) -> Position:
        return Position(self.partition, self.offset)

    @property
    def time(self) -> int:
        """The time from which the age of the event is measured, in microseconds since 1970: its `at`, or the time
        of the append if `at` is more than a day later."""
        return self.appended * 1_000 if self.is_ahead else timestamps.micros(self.event.at)


def ahead_of(appended: int) -> datetime:
    """The latest plausible `at` of an event that was appended at `appended`, in milliseconds since 1970."""
    return timestamps.moment_of(1_000 * appended) + _AHEAD if 0 < appended < _APPENDED_MAX else _NEVER


def fields_of(event: Event) -> dict[str, Any]:
    """The fields of `event` that are written, in a new dict: unset optional fields are left out."""
    return {name: value for name, value in event.__dict__.items() if value is not None}


document(Event, "recallog")
document(Position, "recallog")
