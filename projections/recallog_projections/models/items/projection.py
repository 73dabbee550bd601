"""Items view: the values that an agent keeps under a namespace and a key, and the changes that were refused.

A change that relies on a state of the item (`base`) is refused if the item has changed since. The rules are decided in
the order of the ledger and never by an exception: a refused change alters nothing and is noted in the log of its agent.

Two namespaces have rules of their own. The blocks of `working` and the keys of each `session/<id>` (a scratchpad) are
few, and a row lists them. In a session texts are cut, and a list is a queue: a text that is appended becomes its last
element, and it keeps its newest elements. `fact_blocks` adds blocks of facts to documents of
`workspace`.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from recallog_projections.models.items import fact_blocks
from recallog_projections.refusals import Refusal, log_of_refusals
from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_schemas import Record, limits, timestamps
from recallog_schemas.models.items import limits as items_limits

WORKING = "working"
"""The namespace of the blocks of working memory."""
SESSION = "session"
"""The first name of the namespaces of scratchpads; the second is the session."""
PENDING = "__pending_subagent_summaries__"
"""A key of scratchpads that is a queue from its first element on."""
RESULTS = ("subagent_result::", "delegation_result::")
"""How the keys of scratchpads begin that hold results of other agents."""
CUT_MARK = "[...truncated]"
"""The end of a text that was cut."""

# Reasons of refusals.
CONFLICT = "conflict"  # the item is not in the state that the change relies on
UNKNOWN = "unknown"  # there is no such item, and this change creates none
FULL = "full"  # the namespace has the maximum number of keys
NOT_TEXT = "not_text"  # a text can only be added to a text or a queue
NOT_QUEUE = "not_queue"  # only a list in a scratchpad can be drained
TOO_LARGE = "too_large"  # the value would exceed its limit, or that of a document for further facts

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


class ItemRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One item."""

    value: bytes
    """Its value as JSON."""
    version: int
    """The number of its changes, from 1; an item that was deleted begins again."""
    at: int
    """When it last changed, in microseconds since 1970."""
    sha256: str
    """See `sha256_of`."""
    offset: int
    """The offset of its last change."""
    index: bool | None = None
    """Whether it is searched by meaning; None: as its namespace defines."""
    added: tuple[int, ...] = ()
    """For a queue: the version in which each element was added."""
    drained: int = 0
    """For a queue: the version in which elements were last taken."""


class ItemPath(msgspec.Struct, frozen=True, array_like=True, gc=False):
    path: str


class NamespaceRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The keys of a namespace, sorted."""

    keys: tuple[str, ...]


ROWS = Table("items.rows", ItemRow)
"""At (space, agent, `path_of`)."""
NEWEST = Table("items.newest", ItemPath, write_only=True)
"""Items by their last change: at (space, agent, `newest_key`), once for the namespace and for each above it."""
NAMESPACES = Table("items.namespaces", NamespaceRow)
"""The namespaces of `keys_max` that have items, at (space, agent, `prefix_of`)."""
REFUSALS = log_of_refusals("items.refusals")


class _Refused(Exception):
    """Raised and caught within this module: a change breaks a rule."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ItemsProjection:
    """Fold of changes of items. Events that time travel has not reached change nothing."""

    name: ClassVar[str] = "items"
    version: ClassVar[int] = 2
    kinds = frozenset({"item.put", "item.appended", "item.deleted", "item.moved", "item.drained"})
    tables = (ROWS, NEWEST, NAMESPACES, REFUSALS)

    def __init__(self, namespace: Sequence[str] | None = None) -> None:
        """With `namespace` all other items are left out."""
        self._namespace = None if namespace is None else list(namespace)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            event = record.event
            if not record.reached or self._namespace not in (None, event.payload["namespace"]):
                continue
            try:
                _Change(rows, record).apply()
            except _Refused as refused:
                rows.append(REFUSALS, Refusal(event.id, refused.reason), event.space, event.agent)


def prefix_of(namespace: Sequence[str]) -> str:
    """The beginning of the paths of all items in `namespace`, and in the namespaces below it."""
    return "".join(f"{_escape_name(name)}/" for name in namespace)


def path_of(namespace: Sequence[str], key: str) -> str:
    """The key of an item's row: the names of its namespace and its key, each with `/` and `%` escaped."""
    return f"{prefix_of(namespace)}{_escape_name(key)}"


def names_of(path: str) -> tuple[list[str], str]:
    """The namespace and the key in a path."""
    *namespace, key = (name.replace("%2F", "/").replace("%25", "%") for name in path.split("/"))
    return namespace, key


def newest_prefix(namespace: Sequence[str]) -> str:
    """The beginning of the keys in `NEWEST` of the items in `namespace`, and in the namespaces below it."""
    return f"{prefix_of(namespace)}/"  # no path has an empty name


def newest_key(namespace: Sequence[str], offset: int) -> str:
    """The key of an item by its last change: sorts like the offset."""
    return f"{newest_prefix(namespace)}{offset:020d}"


def session_namespace(session: str) -> tuple[str, str]:
    """The namespace of the scratchpad of a session."""
    return (SESSION, session)


def session_of(namespace: Sequence[str]) -> str | None:
    """The session that a namespace is the scratchpad of; None if it is not a scratchpad."""
    return namespace[1] if len(namespace) == 2 and namespace[0] == SESSION else None


def keys_max(namespace: Sequence[str]) -> int | None:
    """How many keys a namespace may have; None: any number, and no row lists them."""
    if len(namespace) == 1 and namespace[0] == WORKING:
        return limits.WORKING_BLOCKS_MAX
    return items_limits.SCRATCHPAD_KEYS_MAX if session_of(namespace) is not None else None


def sha256_of(value: Any) -> str:
    """The SHA-256 of a value, in hex: of the UTF-8 of a text, of the compact JSON with sorted keys of anything else."""
    return hashlib.sha256(value.encode() if isinstance(value, str) else _encode_sorted(value)).hexdigest()


def value_of(row: ItemRow) -> Any:
    """The value of an item."""
    return _decode(row.value)


def is_in_state(row: ItemRow | None, base: int | str) -> bool:
    """Whether the item is in the state `base`: it has this version (0: there is no such item), or this SHA-256."""
    if row is None:
        return base == 0
    return base == (row.version if isinstance(base, int) else row.sha256)


def _escape_name(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")


def _cut(value: Any) -> Any:
    """A text as a scratchpad keeps it."""
    most = items_limits.SCRATCHPAD_CHARS_MAX
    if not isinstance(value, str) or len(value) <= most:
        return value
    note = f"\n{CUT_MARK}"
    return value[: most - len(note)] + note


class _Change:
    """One change of an item. A refusal is raised before anything is written."""

    def __init__(self, rows: Rows, record: Record) -> None:
        self._rows = rows
        self._offset = record.offset
        self._kind = record.event.kind
        self._payload = record.event.payload
        self._at = record.time
        self._of = record.event.space, record.event.agent
        self._namespace: Sequence[str] = self._payload["namespace"]

    def apply(self) -> None:
        payload, key = self._payload, self._payload["key"]
        row = self._row(key)
        if (base := payload.get("base")) is not None and not is_in_state(row, base):
            raise _Refused(CONFLICT)
        if self._kind == "item.put":
            index = payload.get("index")
            index = row.index if index is None and row is not None else index
            self._set(key, row, *self._keep_value(payload["value"], row), index)
        elif self._kind == "item.appended":
            self._set(key, row, *self._append_text(key, row, payload["text"]), row.index if row is not None else None)
        elif row is None:
            raise _Refused(UNKNOWN)
        elif self._kind == "item.deleted":
            self._delete(key, row)
        elif self._kind == "item.moved":
            self._move(key, row, payload["to"])
        else:
            self._drain(key, row, payload["upto"])

    def _row(self, key: str) -> ItemRow | None:
        return self._rows.get(ROWS, *self._of, path_of(self._namespace, key))

    def _keep_value(self, value: Any, row: ItemRow | None) -> tuple[Any, Sequence[int]]:
        """A new value as its namespace keeps it; for a queue, with the version of each element."""
        if session_of(self._namespace) is None:
            return value, ()
        if isinstance(value, list):
            elements = [_cut(element) for element in value[-items_limits.QUEUE_VALUES_MAX :]]
            return elements, [_next(row)] * len(elements)
        if not isinstance(value, str) and len(_encode(value).decode()) > items_limits.SCRATCHPAD_CHARS_MAX:
            raise _Refused(TOO_LARGE)
        return _cut(value), ()

    def _append_text(self, key: str, row: ItemRow | None, text: str) -> tuple[Any, Sequence[int]]:
        """The value, followed by `text`; for a queue, with the version of each element."""
        in_session = session_of(self._namespace) is not None
        before = value_of(row) if row is not None else [] if in_session and key == PENDING else ""
        if isinstance(before, str):
            whole = self._with_block(key, row, text) if self._payload.get("block") else before + text
            return (_cut(whole) if in_session else whole), ()
        if not in_session or not isinstance(before, list):
            raise _Refused(NOT_TEXT)
        elements = [*before, _cut(text)][-items_limits.QUEUE_VALUES_MAX :]
        while len(_encode(elements)) > limits.ITEM_VALUE_BYTES_MAX:
            elements = elements[1:]
        added = [*(row.added if row is not None else ()), _next(row)]
        return elements, added[-len(elements) :]

    def _with_block(self, key: str, row: ItemRow | None, lines: str) -> str:
        before = value_of(row) if row is not None else None
        try:
            return fact_blocks.with_block(self._namespace, key, before, lines, timestamps.moment_of(self._at).date())
        except fact_blocks.NoDocument:
            raise _Refused(UNKNOWN) from None
        except fact_blocks.NoRoom:
            raise _Refused(TOO_LARGE) from None

    def _set(self, key: str, before: ItemRow | None, value: Any, added: Sequence[int], index: bool | None) -> None:
        data = _encode(value)
        if len(data) > limits.ITEM_VALUE_BYTES_MAX:
            raise _Refused(TOO_LARGE)
        if before is None:
            self._list(key)
        drained = before.drained if before is not None else 0
        row = ItemRow(data, _next(before), self._at, sha256_of(value), self._offset, index, tuple(added), drained)
        self._write(key, before, row)

    def _drain(self, key: str, row: ItemRow, upto: int) -> None:
        """Take the elements of a queue that it had in version `upto`.

        Of two readers that saw the same elements, the first in the ledger takes them, and the other is refused.
        """
        before = value_of(row)
        if session_of(self._namespace) is None or not isinstance(before, list):
            raise _Refused(NOT_QUEUE)
        if not row.drained <= upto <= row.version:
            raise _Refused(CONFLICT)
        left = [(element, version) for element, version in zip(before, row.added, strict=True) if version > upto]
        if len(left) == len(before):
            return
        row = msgspec.structs.replace(row, drained=_next(row))
        self._set(key, row, [element for element, _ in left], [version for _, version in left], row.index)

    def _move(self, key: str, row: ItemRow, to: str) -> None:
        """Give the item another key; an item that has this key is replaced."""
        replaced = self._row(to)
        self._delete(key, row)
        if replaced is None or to == key:
            self._list(to)
        # Above both versions: no change that relies on a state of the replaced item may be applied to this one.
        version = max(_next(row), _next(replaced))
        moved = msgspec.structs.replace(row, version=version, at=self._at, offset=self._offset)
        self._write(to, None if to == key else replaced, moved)

    def _write(self, key: str, before: ItemRow | None, row: ItemRow) -> None:
        path = path_of(self._namespace, key)
        for above in self._namespaces():
            if before is not None:
                self._rows.delete(NEWEST, *self._of, newest_key(above, before.offset))
            self._rows.put(NEWEST, ItemPath(path), *self._of, newest_key(above, row.offset))
        self._rows.put(ROWS, row, *self._of, path)

    def _delete(self, key: str, row: ItemRow) -> None:
        for above in self._namespaces():
            self._rows.delete(NEWEST, *self._of, newest_key(above, row.offset))
        self._rows.delete(ROWS, *self._of, path_of(self._namespace, key))
        if keys_max(self._namespace) is not None:
            self._write_keys([each for each in self._keys() if each != key])

    def _list(self, key: str) -> None:
        """Add a key to those of its namespace, if these are listed."""
        most = keys_max(self._namespace)
        if most is None:
            return
        keys = self._keys()
        if len(keys) >= most:
            raise _Refused(FULL)
        self._write_keys(sorted((*keys, key)))

    def _keys(self) -> Sequence[str]:
        listed = self._rows.get(NAMESPACES, *self._of, prefix_of(self._namespace))
        return listed.keys if listed is not None else ()

    def _write_keys(self, keys: Sequence[str]) -> None:
        prefix = prefix_of(self._namespace)
        if keys:
            self._rows.put(NAMESPACES, NamespaceRow(tuple(keys)), *self._of, prefix)
        else:
            self._rows.delete(NAMESPACES, *self._of, prefix)

    def _namespaces(self) -> Iterator[Sequence[str]]:
        """The namespace of the item, and all above it."""
        for names in range(len(self._namespace) + 1):
            yield self._namespace[:names]


def _next(row: ItemRow | None) -> int:
    """The version of the next change."""
    return 1 if row is None else row.version + 1
