"""Aragora: the databases of `ContinuumMemory`, `ConsensusMemory` and `MemoryStream`."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recallog_formats.stores import databases
from recallog_formats.stores.store import (
    Destination,
    Fields,
    StoreFormat,
    expiry_of,
    json_object,
    make_entry,
    time_of_row,
    without_nulls,
)

_TYPE = re.compile(r"[a-z][a-z0-9_]*")


def _continuum(row: Fields, into: Destination) -> dict[str, Any]:
    metadata = json_object(row.get("metadata"))
    kind = metadata.get("type")
    more = without_nulls(expires_at=expiry_of(row.get("expires_at")), red_line_reason=row.get("red_line_reason"))
    return make_entry(
        row,
        into,
        row["content"],
        type=kind if isinstance(kind, str) and _TYPE.fullmatch(kind) else None,
        tier=row["tier"],
        importance=row.get("importance"),
        red_line=True if row.get("red_line") else None,
        source=_text(metadata, "source"),
        topic=_text(metadata, "topic"),
        metadata=metadata | more,
    )


def _text(metadata: Mapping[str, Any], field: str) -> str | None:
    value = metadata.get(field)
    return value if isinstance(value, str) and value else None


def _stream(row: Fields, into: Destination) -> dict[str, Any]:
    metadata = json_object(row.get("metadata")) | without_nulls(debate_id=row.get("debate_id"))
    of = replace(into, agent=row["agent_name"])
    kind = row["memory_type"]
    return make_entry(row, of, row["content"], type=kind, importance=row.get("importance"), metadata=metadata)


def _consensus(row: Fields, into: Destination) -> dict[str, Any]:
    data = json_object(row["data"])
    more = without_nulls(
        supporting_evidence=data.get("supporting_evidence"),
        debate_duration_seconds=data.get("debate_duration_seconds"),
        **json_object(data.get("metadata")),
    )
    payload = without_nulls(
        strength=row["strength"],
        dissenting=data.get("dissenting_agents"),
        key_claims=data.get("key_claims"),
        domain=row.get("domain"),
        tags=data.get("tags"),
        rounds=data.get("rounds"),
        supersedes=data.get("supersedes"),
        metadata=more,
    )
    required = {
        "topic": row["topic"],
        "conclusion": row["conclusion"],
        "confidence": row["confidence"],
        "participating": data.get("participating_agents", []),
        "agreeing": data.get("agreeing_agents", []),
    }
    return _event("consensus.recorded", into.agent, row, into, required | payload)


def _dissent(row: Fields, into: Destination) -> dict[str, Any]:
    data = json_object(row["data"])
    payload = without_nulls(
        reasoning=data.get("reasoning"),
        rebuttal=data.get("rebuttal"),
        acknowledged=data.get("acknowledged"),
        metadata=data.get("metadata"),
    )
    required = {
        "consensus": row["debate_id"],
        "type": row["dissent_type"],
        "content": row["content"],
        "confidence": row["confidence"],
    }
    return _event("dissent.recorded", row["agent_id"], row, into, required | payload)


def _event(kind: str, agent: str, row: Fields, into: Destination, payload: dict[str, Any]) -> dict[str, Any]:
    at = time_of_row(row.get("timestamp"))
    return {"id": row["id"], "space": into.space, "agent": agent, "kind": kind, "at": at, "payload": payload}


STORE = StoreFormat(
    "aragora",
    "SQLite databases of ContinuumMemory, ConsensusMemory and MemoryStream, or the folder with them",
    "entries with tier, importance, red line, metadata and expiry; consensus and dissent; memories of streams",
    "scores of surprise and consolidation, counts, embeddings, archives, former moves, proofs",
    databases.reader(
        "Aragora",
        {"continuum_memory": _continuum, "memories": _stream, "consensus": _consensus, "dissent": _dissent},
        {
            "continuum_memory_archive": "archived or deleted there",
            "tier_transitions": "former moves; new plans follow from the entries",
            "meta_learning_state": "learned parameters; the setting tiers has ours",
            "reflection_schedule": "reflections are due by the events of the agent",
            "verified_proofs": "proofs have no counterpart",
        },
        {"surprise_score", "consolidation_score", "update_count", "success_count", "failure_count", "semantic_centroid"}
        | {"updated_at", "last_promotion_at", "topic_hash"},
    ),
)
