"""Tramontane: the database of `TramontaneMemory`."""

from dataclasses import replace
from typing import Any

from recallog_formats.stores import databases
from recallog_formats.stores.store import (
    Destination,
    Fields,
    LeftOutRow,
    StoreFormat,
    expiry_of,
    make_entry,
    make_item,
    without_nulls,
)


def _fact(row: Fields, into: Destination) -> dict[str, Any]:
    if row.get("erased_at"):
        raise LeftOutRow("erased there")
    return make_entry(
        row,
        into,
        row["content"],
        entity=row.get("entity") or None,
        category=row.get("category") or None,
        source=row.get("source") or None,
        confidence=row.get("confidence"),
        metadata=without_nulls(expires_at=expiry_of(row.get("expires_at"))),
    )


def _experience(row: Fields, into: Destination) -> dict[str, Any]:
    payload = without_nulls(
        outcome=row.get("outcome"),
        score=row.get("outcome_score"),
        agent_role=row.get("agent_role"),
        model=row.get("model_used"),
        cost=row.get("cost_eur"),
        insight=row.get("insight"),
        context_tags=row.get("context_tags"),
    )
    required = {"action_type": row["action_type"], "summary": row["action_summary"]}
    return make_entry(row, into, "") | {"kind": "experience.recorded", "payload": required | payload}


def _block(row: Fields, into: Destination) -> dict[str, Any]:
    of = replace(into, agent=row.get("agent_id") or into.agent)
    return make_item(of, ["working"], row["label"], row["content"], row.get("updated_at"))


STORE = StoreFormat(
    "tramontane",
    "the SQLite database of TramontaneMemory (db_path)",
    "facts with entity, category, source, confidence, expiry; experiences; with --trust agent blocks of working memory",
    "erased facts, embeddings, counts of reads, entity links, logs of erasures and operations",
    databases.reader(
        "Tramontane",
        {"factual_memory": _fact, "experiential_memory": _experience, "working_memory": _block},
        {
            "entity_links": "the graph of entities follows from the facts",
            "memory_erasure_log": "what was erased there was never here",
            "memory_audit": "the audit begins with the import",
        },
        {"embedding", "access_count", "updated_at", "max_tokens"},
    ),
)
