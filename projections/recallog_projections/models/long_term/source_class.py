"""The source class of an entry (`recallog_schemas.kinds.trust`), if it is below that of agents."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from recallog_projections.models.long_term.tables import EntryRow
from recallog_schemas.kinds import SourceClass, trust

_TRUST = b'"' + trust.TRUST.encode() + b'"'
_encode_json = msgspec.json.Encoder().encode


def stored_metadata(metadata: Mapping[str, Any] | None) -> bytes:
    """`metadata` as it is stored."""
    return _encode_json(metadata) if metadata else b""


def class_of(row: EntryRow) -> SourceClass | None:
    """The class of an entry, if it is below that of agents: its type or its metadata have it."""
    if row.type != trust.CALL and _TRUST not in row.metadata:
        return None
    metadata = json.loads(row.metadata) if row.metadata else None
    stated = trust.read_stated({"type": row.type, "metadata": metadata})
    return stated if trust.is_untrusted(stated) else None


def lower_class(row: EntryRow, name: SourceClass) -> EntryRow:
    """The entry with a class that is not above `name`."""
    least = trust.find_least((name, class_of(row) or name))
    metadata = json.loads(row.metadata) if row.metadata else {}
    return msgspec.structs.replace(row, metadata=stored_metadata({**metadata, **trust.state_class(least)}))


def lower_to_stated(row: EntryRow, payload: Mapping[str, Any]) -> EntryRow:
    """The entry with a class that is not above what the payload of its event states, as that of an import does."""
    stated = trust.read_stated(payload)
    return row if not trust.is_untrusted(stated) or class_of(row) == stated else lower_class(row, stated)


def is_less_trusted(name: SourceClass | None, than: SourceClass | None) -> bool:
    """Whether one class is below another; both are as `class_of` gives them."""
    return name is not None and name != than and trust.find_least((name, than or trust.AGENT)) == name
