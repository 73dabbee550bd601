"""The JSON Schemas of all data that other programs read or write: the stored event, payloads by kind, and the views."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from recallog_schemas import kinds, limits, views
from recallog_schemas.event import Event

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ON_THE_WIRE = ["envelope", "id", "space", "agent", "kind", "at"]
_VIEWS: tuple[type[BaseModel], ...] = (
    views.EpisodicView,
    views.TimelinePage,
    views.AroundView,
    views.RecallView,
    views.SearchPage,
    views.EntriesView,
    views.SalientView,
    views.BeliefsView,
    views.SceneView,
    views.ReflectionView,
    views.Explanation,
    views.AgentSettingsView,
    views.PendingTrigger,
    views.Reaction,
    views.SpaceDetail,
    views.Catalogue,
    views.KindsView,
    views.Status,
    views.DeadLetterDetail,
    views.VerifyReport,
    views.CopyReport,
    views.RebuildPlan,
    views.RebuildReport,
)


def documents() -> Mapping[str, dict[str, Any]]:
    """File name to JSON Schema (draft 2020-12)."""
    found = {"event.json": _event()}
    found |= {f"kinds/{kind.name}.json": _kind(kind) for kind in kinds.CATALOGUE.values()}
    found |= {f"views/{view.__name__}.json": _schema(view, "serialization") for view in _VIEWS}
    return found


def write(folder: Path) -> list[Path]:
    """Write all documents into `folder`; the files, in order."""
    written = []
    for name, document in documents().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(document))
        written.append(path)
    return written


def text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _event() -> dict[str, Any]:
    schema = _schema(Event, "validation")
    schema["required"] = _ON_THE_WIRE
    schema["description"] = (
        "An event as the ledger stores it: UTF-8 JSON of at most "
        f"{limits.EVENT_BYTES_MAX} bytes. `payload` follows the schema of its kind, kinds/<kind>.json; kinds without "
        "one carry any JSON object."
    )
    return schema


def _kind(kind: kinds.Kind) -> dict[str, Any]:
    schema = _schema(kind.payload, "validation")
    schema["title"] = f"payload of {kind.name}"
    schema["x-recallog"] = {
        "importance": kind.importance,
        "shared": kind.shared,
        "bookkeeping": kind.bookkeeping,
        "schema_version": kind.schema_version,
        "role": kind.role,
        "text": kind.text.__name__,
    }
    return schema


def _schema(model: type[BaseModel], mode: Any) -> dict[str, Any]:
    return {"$schema": _DIALECT, **model.model_json_schema(mode=mode)}
