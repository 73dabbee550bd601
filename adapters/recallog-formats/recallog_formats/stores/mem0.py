"""mem0: what `get_all` returns, saved as JSON, and exports whose records have the same fields."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from recallog import InvalidArgument
from recallog_formats.stores.json_files import list_in, load_json
from recallog_formats.stores.store import (
    Destination,
    Fields,
    StoreFormat,
    StoreRow,
    expiry_of,
    json_object,
    left_out_rows,
    make_entry,
    map_row,
    without_nulls,
)

_EXPECTED = 'the saved answer of get_all: {"results": [{"id", "memory", "user_id", ...}]}, a list, or JSON Lines'


def _entry(row: Fields, into: Destination) -> dict[str, Any]:
    user, agent = row.get("user_id"), row.get("agent_id")
    categories = row.get("categories") or []
    if not isinstance(categories, list):
        raise ValueError("categories: should be a list")
    metadata = json_object(row.get("metadata")) | without_nulls(
        categories=categories,
        run_id=row.get("run_id"),
        app_id=row.get("app_id"),
        expires_at=expiry_of(row.get("expiration_date")),
    )
    if into.space is None and not user:
        raise ValueError("it has no user_id, which gives it a space; name a space with --space")
    space = into.space or f"user/{user}"
    return make_entry(
        row,
        replace(into, space=space, agent=agent or into.agent),
        row["memory"],
        category=categories[0] if categories else None,
        source="mem0",
        metadata=metadata,
    )


def _read(path: Path, into: Destination) -> Iterator[StoreRow]:
    document = load_json(path, _EXPECTED)
    rows = list_in(document, "results", "memories")
    if rows is None:
        raise InvalidArgument(f"{path} is not an export of mem0: expected {_EXPECTED}", path="PATH")
    users = {str(row["user_id"]) for row in rows if isinstance(row, dict) and row.get("user_id")}
    if into.space is not None and len(users) > 1:
        message = f"{path} has the memories of {len(users)} users, and each needs a space of its own: leave --space out"
        raise InvalidArgument(message, path="--space")
    for number, row in enumerate(rows, 1):
        key = row.get("id", number) if isinstance(row, dict) else number
        yield map_row(f"memory {key}", row, _entry, into)
    if isinstance(document, dict):
        yield from left_out_rows(
            "relations", document.get("relations"), "the graph of entities follows from the entries"
        )


STORE = StoreFormat(
    "mem0",
    _EXPECTED,
    "memories with categories, metadata and expiry; without --space each user_id gets the space user/ID",
    "vectors, scores, hashes, the history, the graph",
    _read,
    names_spaces=True,
)
