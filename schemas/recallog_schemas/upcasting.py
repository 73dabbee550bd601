"""Upcasting of old envelopes: pure functions from the fields of one version to those of the next."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from recallog_schemas.errors import InvalidEvent

_SESSION = re.compile(r"[A-Za-z0-9._-]{1,64}")
_RENAMED = {"run_id": "space", "actor": "agent", "created_at": "at"}
_UNCHANGED = {"id", "turn", "kind", "payload", "schema_version"}
_MODEL = {"model_profile", "model_id"}
_KNOWN = {*_RENAMED, *_UNCHANGED, *_MODEL, "session_id"}


def from_document_000(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Envelope 0 (the ledger-view memory document's) to envelope 1.

    `run_id`, `actor` and `created_at` are renamed. An invalid `session_id` is dropped, as that document specifies.
    `model_profile` and `model_id` move into the payload.
    """
    unknown = sorted(set(fields) - _KNOWN)
    if unknown:
        raise InvalidEvent(f"{unknown[0]}: unknown field of envelope 0", path=unknown[0], rule="extra_forbidden")
    event: dict[str, Any] = {"envelope": 1}
    event |= {name: value for name, value in fields.items() if name in _UNCHANGED}
    event |= {_RENAMED[name]: value for name, value in fields.items() if name in _RENAMED}
    session = fields.get("session_id")
    if isinstance(session, str) and _SESSION.fullmatch(session):
        event["session"] = session
    model = {name: fields[name] for name in sorted(_MODEL) if fields.get(name) is not None}
    if model and isinstance(event.get("payload", {}), dict):
        event["payload"] = {**model, **event.get("payload", {})}
    return event


ENVELOPES: Mapping[int, Callable[[Mapping[str, Any]], dict[str, Any]]] = {0: from_document_000}
"""The function from each old version to the next one."""


def upcast(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same event in the current envelope. An absent `envelope` means version 0."""
    event = dict(fields)
    while (step := ENVELOPES.get(event.get("envelope", 0))) is not None:
        event = step(event)
    return event
