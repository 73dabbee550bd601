"""Ledger-view memory: the SQLite ledger of a simulation, whose events have the envelope of `run_id` and `actor`."""

from typing import Any

from recallog_formats.stores import databases
from recallog_formats.stores.store import (
    Destination,
    Fields,
    StoreFormat,
    json_object,
    time_of_row,
    without_nulls,
)


def _event(row: Fields, into: Destination) -> dict[str, Any]:
    run, session = row["run_id"], row.get("session_id")
    payload = json_object(row["payload"]) | without_nulls(
        model_profile=row.get("model_profile"), model_id=row.get("model_id")
    )
    return {
        "id": row["id"],
        "space": into.space or run,
        "session": session or (run if into.space else None),
        "agent": row["actor"],
        "kind": row["kind"],
        "turn": row["turn"],
        "at": time_of_row(row["created_at"]),
        "payload": payload,
    }


STORE = StoreFormat(
    "ledger-view",
    "the SQLite ledger of a run (DB_PATH), with a table events",
    "every event; without --space each run is a space, else each run is a session",
    "with --trust import reflections, which direct an agent",
    databases.reader("ledger-view memory", {"events": _event}, {}, {"offset", "schema_version"}),
    names_spaces=True,
)
