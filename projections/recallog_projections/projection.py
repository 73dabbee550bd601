"""What a projection is: a pure fold of records into the rows of its tables and the entries of its logs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from recallog_schemas import Record, limits
from recallog_schemas.errors import ProjectionError, StorageCorrupt

if TYPE_CHECKING:
    from recallog_projections.rows import Rows

Row = TypeVar("Row", bound=msgspec.Struct)

_encode = msgspec.msgpack.Encoder().encode


class RowKey(NamedTuple):
    """The address of one row, or of one log whose total is needed (then without a key).

    `space` is "" for rows of the whole partition.
    """

    table: str
    space: str
    owner: str = ""
    key: str = ""


class LogName(NamedTuple):
    """The address of one log: its entries are ordered, and only the newest are kept."""

    log: str
    space: str
    owner: str = ""


class _Kept(Generic[Row]):
    """Rows of one type and their bytes (msgpack). The type is a frozen `msgspec.Struct`, so that a row which a
    projection has read can be changed only by `put`, and undoing a record costs nothing."""

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
        """The row that `data` holds. Raises `StorageCorrupt`."""
        return self.decode_all([data])[0]

    def decode_all(self, entries: Sequence[bytes]) -> list[Row]:
        """The rows that `entries` hold. Raises `StorageCorrupt`."""
        decode = self._decoder.decode
        try:
            return [decode(data) for data in entries]
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StorageCorrupt(
                f"a row of the view {self.name!r} is damaged ({error}). Build the views again: recallog rebuild"
            ) from None

    def encode(self, row: Row) -> bytes:
        """The bytes of `row`. Raises `ProjectionError` where there are none, or too many."""
        try:
            data = _encode(row)
        except (msgspec.MsgspecError, TypeError, OverflowError, UnicodeEncodeError) as error:
            raise ProjectionError(f"{self.name!r}: {self.row.__name__} cannot be stored: {error}") from None
        if len(data) > limits.ROW_BYTES_MAX:
            raise ProjectionError(f"{self.name!r}: a row of {len(data):,} bytes, the limit is {limits.ROW_BYTES_MAX:,}")
        return data

    def check(self, row: Row) -> None:
        """Raise `ProjectionError` where `row` is none of this table's, or would not be read back as one."""
        if type(row) is not self.row:
            raise ProjectionError(f"{self.name!r} holds {self.row.__name__}, not {type(row).__name__}")
        data = self.encode(row)
        try:
            self._decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise ProjectionError(f"{self.name!r}: {self.row.__name__} cannot be read back: {error}") from None


@dataclass(frozen=True)
class Table(_Kept[Row]):
    """Rows by (space, owner, key)."""

    name: str
    row: type[Row]
    write_only: bool = False
    """Whether no projection reads its rows: then they need not be fetched to be written or deleted, and are not
    cached."""


@dataclass(frozen=True)
class Log(_Kept[Row]):
    """Entries by (space, owner) in the order they came, of which the newest `keep` stay."""

    name: str
    row: type[Row]
    keep: int = limits.LOG_EVENTS_KEPT


@dataclass(frozen=True, slots=True)
class Tail:
    """The newest entries of one log, oldest first, and how many were ever appended to it."""

    entries: Sequence[bytes]
    total: int


class Projection(Protocol):
    """A pure function from records to changes of rows.

    No I/O, no clock, no randomness: time is the record's `at`. The result must not depend on where batches end. A
    projection writes its own tables only and may read those of the others it is folded with, as they stood when its
    turn came. Raising parks the record for all projections: it becomes a dead letter and the fold goes on.

    One that looks at a few kinds of events only may name them in an attribute `kinds`: it is called for no others.

    Where some needs follow from rows, a method `further_needs(rows, record)` may name them. It is called, as a hint,
    once the rows that `needs` names are there.
    """

    @property
    def name(self) -> str:
        """Lower case, unique among the projections that are folded together."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever the same records would give other rows: the views are then rebuilt by themselves."""
        ...

    @property
    def tables(self) -> Sequence[Table[Any] | Log[Any]]:
        """What it writes."""
        ...

    def needs(self, record: Record) -> Iterable[RowKey]:
        """The rows that `apply` will read or write, so that a whole batch's are fetched at once."""
        ...

    def apply(self, rows: "Rows", record: Record) -> None:
        """Fold one record. It may be undone and run again when it touches a row that `needs` did not name."""
        ...
