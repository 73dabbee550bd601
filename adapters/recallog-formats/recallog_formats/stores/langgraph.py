"""LangGraph: the values of a `SqliteStore`, where `RecallogStore` of recallog-langgraph finds them."""

import json
from typing import Any

from recallog_formats.stores import databases
from recallog_formats.stores.store import Destination, Fields, StoreFormat, expiry_of, make_item

_ROOT = "langgraph.store"
"""The first name of the namespaces of `RecallogStore`."""


def _value(row: Fields, into: Destination) -> dict[str, Any]:
    expiry_of(row.get("expires_at"))
    if not isinstance(row["prefix"], str):
        raise ValueError("prefix: should be a text")
    namespace = [_ROOT, *(name for name in row["prefix"].split(".") if name)]
    return make_item(into, namespace, row["key"], json.loads(row["value"]), row.get("updated_at"))


STORE = StoreFormat(
    "langgraph",
    "the SQLite database of SqliteStore",
    "with --trust agent values under their namespaces and keys",
    "vectors, expired values, migrations, checkpoints",
    databases.reader(
        "LangGraph",
        {"store": _value},
        {
            "store_vectors": "put a value again to have it searched by meaning",
            "store_migrations": "versions of the schema there",
            "vector_migrations": "versions of the schema there",
            "checkpoints": "write the states as JSON, and read them with recallog ingest",
            "writes": "parts of checkpoints",
        },
        {"created_at", "ttl_minutes"},
    ),
)
