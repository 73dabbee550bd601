"""Genesis agents: a checkpoint of a simulation, with its artifacts."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from recallog import InvalidArgument
from recallog_formats.stores.json_files import load_json
from recallog_formats.stores.store import (
    Destination,
    Fields,
    StoreFormat,
    StoreRow,
    json_object,
    left_out_rows,
    make_entry,
    make_item,
    map_row,
)

_EXPECTED = 'a checkpoint: {"artifacts": [...], "balances": {...}, ...}'
_WORKING, _LONG_TERM = "_working_memory", "_longterm"
_TYPES = ("lesson", "strategy", "info", "insight", "note")
_PRIORITIES = ("pinned", "critical", "important", "normal", "low")


def _read(path: Path, into: Destination) -> Iterator[StoreRow]:
    document = load_json(path, _EXPECTED)
    artifacts = document.get("artifacts") if isinstance(document, dict) else None
    if not isinstance(artifacts, list):
        raise InvalidArgument(f"{path} is not a store of genesis agents: expected {_EXPECTED}", path="PATH")
    for number, artifact in enumerate(artifacts, 1):
        yield from _artifact(number, artifact, into)
    yield from left_out_rows("balances", document.get("balances"), "grant units with recallog long-term grant")


def _artifact(number: int, artifact: object, into: Destination) -> Iterator[StoreRow]:
    place = f"artifact {artifact.get('id', number)}" if isinstance(artifact, Mapping) else f"artifact {number}"
    if not isinstance(artifact, Mapping) or not isinstance(artifact.get("id"), str):
        yield map_row(place, None, _entry, into)
        return
    id_ = artifact["id"]
    owner = artifact.get("created_by") or artifact.get("owner_id")
    if id_.endswith(_WORKING):
        yield from _working(place, artifact, replace(into, agent=id_.removesuffix(_WORKING)))
    elif artifact.get("type") == "memory_store":
        yield from _long_term(place, artifact, replace(into, agent=owner or id_.removesuffix(_LONG_TERM)))
    else:
        yield StoreRow(place, left_out="artifacts that are not memories")


def _long_term(place: str, artifact: Fields, into: Destination) -> Iterator[StoreRow]:
    try:
        entries = json_object(artifact.get("content")).get("entries", [])
    except ValueError:
        entries = None
    if not isinstance(entries, list):
        yield map_row(place, None, _entry, into)
        return
    for number, entry in enumerate(entries, 1):
        key = entry.get("id", number) if isinstance(entry, dict) else number
        yield map_row(f"{place} entry {key}", entry, _entry, into)


def _entry(row: Fields, into: Destination) -> dict[str, Any]:
    text, metadata = str(row["text"]), json_object(row.get("metadata"))
    prefix = text.partition(":")[0].strip().lower()
    return make_entry(
        row,
        into,
        text,
        type=prefix if prefix in _TYPES else None,
        priority=_priority(row.get("tier", metadata.get("tier"))),
        preseeded=True if metadata.get("preseeded") is True else None,
        metadata=metadata,
        cost=0,
    )


def _priority(tier: object) -> str | None:
    """The priority of a tier, which is a name or a number from 0 (pinned); None for the tier normal."""
    name = _PRIORITIES[tier] if isinstance(tier, int) and tier in range(len(_PRIORITIES)) else tier
    return name if isinstance(name, str) and name in _PRIORITIES and name != "normal" else None


def _working(place: str, artifact: Fields, into: Destination) -> Iterator[StoreRow]:
    """A block for each field of the document. A document that is not JSON becomes one block."""
    content, at = artifact.get("content"), artifact.get("updated_at")
    try:
        blocks = json_object(content)
    except ValueError:
        blocks = {"working_memory": content}
    for key, value in blocks.items():
        yield map_row(f"{place} {key}", {"key": key, "value": value, "at": at}, _block, into)


def _block(row: Fields, into: Destination) -> dict[str, Any]:
    return make_item(into, ["working"], row["key"], row["value"], row["at"])


STORE = StoreFormat(
    "genesis",
    "a checkpoint of a simulation (checkpoint.json)",
    "entries of memory stores with type, metadata and priority; with --trust agent blocks of working memory",
    "embeddings, balances, other artifacts",
    _read,
)
