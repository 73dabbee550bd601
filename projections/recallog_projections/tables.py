"""Tables and logs of projections: declarations, addresses of rows, and the encoding of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import msgspec

from recallog_schemas import limits
from recallog_schemas.errors import ProjectionError, StorageCorrupt

Row = TypeVar("Row", bound=msgspec.Struct)

_encode = msgspec.msgpack.Encoder().encode


class RowKey(NamedTuple):
    """The address of one row. `space` is "" for rows of the whole partition."""

    table: str
    space: str
    owner: str = ""
    key: str = ""


class LogName(NamedTuple):
    """The address of one log."""

    log: str
    space: str
    owner: str = ""


class _Encoded(Generic[Row]):
    """The encoding (msgpack) of rows of one type, a frozen `msgspec.Struct`.

    Because rows are immutable, a row changes only by `Rows.put`, and undoing a record needs no copies.
    """

    name: str
    row: type[Row]

    def __post_init__(self) -> None:
        if not self.row.__struct_config__.frozen:
            raise ProjectionError(
                f"the rows of {self.name!r} must be immutable: class {self.row.__name__}(…, frozen=True)"
            )

    @cached_property
    def _decoder(self) -> "msgspec.msgpack.Decoder[Row]":
        return msgspec.msgpack.Decoder(self.row)

    def decode(self, data: bytes) -> Row:
        """The row encoded in `data`. Raises `StorageCorrupt`."""
        return self.decode_all([data])[0]

    def decode_all(self, entries: Sequence[bytes]) -> list[Row]:
        """The rows encoded in `entries`. Raises `StorageCorrupt`."""
        decode = self._decoder.decode
        try:
            return [decode(data) for data in entries]
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StorageCorrupt(
                f"a row of the view {self.name!r} is damaged ({error}). Build the views again: recallog rebuild"
            ) from None

    def encode(self, row: Row) -> bytes:
        """The bytes of `row`. Raises `ProjectionError` if it cannot be encoded or exceeds `limits.ROW_BYTES_MAX`."""
        try:
            data = _encode(row)
        except (msgspec.MsgspecError, TypeError, OverflowError, UnicodeEncodeError) as error:
            raise ProjectionError(f"{self.name!r}: {self.row.__name__} cannot be stored: {error}") from None
        if len(data) > limits.ROW_BYTES_MAX:
            raise ProjectionError(f"{self.name!r}: a row of {len(data):,} bytes, the limit is {limits.ROW_BYTES_MAX:,}")
        return data

    def encode_all(self, rows: Sequence[Row]) -> list[bytes]:
        """The bytes of each of `rows`. Raises as `encode`."""
        try:
            encoded = [_encode(row) for row in rows]
        except (msgspec.MsgspecError, TypeError, OverflowError, UnicodeEncodeError):
            return [self.encode(row) for row in rows]
        if max(map(len, encoded)) > limits.ROW_BYTES_MAX:
            return [self.encode(row) for row in rows]
        return encoded

    def check(self, row: Row) -> None:
        """Raise `ProjectionError` if `row` has another type, or if its bytes cannot be decoded."""
        if type(row) is not self.row:
            raise ProjectionError(f"{self.name!r} holds {self.row.__name__}, not {type(row).__name__}")
        data = self.encode(row)
        try:
            self._decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise ProjectionError(f"{self.name!r}: {self.row.__name__} cannot be read back: {error}") from None


@dataclass(frozen=True)
class Table(_Encoded[Row]):
    """Rows by (space, owner, key)."""

    name: str
    row: type[Row]
    write_only: bool = False
    """Whether its rows are not cached: each is written once, or read by queries alone."""
    add: Callable[[Row, Row], Row] | None = None
    """For rows of the whole partition that are sums over its spaces: adds the rows of folds of different spaces."""
    apart: bool = False
    """Whether each row of the whole partition is written by events of one space, or by all events with one value."""


@dataclass(frozen=True)
class Log(_Encoded[Row]):
    """Entries by (space, owner) in the order of their records. The newest `keep` are retained."""

    name: str
    row: type[Row]
    keep: int = limits.LOG_EVENTS_KEPT


@dataclass(frozen=True, slots=True)
class Tail:
    """The newest entries of one log, oldest first, and the number of entries ever appended to it."""

    entries: Sequence[bytes]
    total: int
