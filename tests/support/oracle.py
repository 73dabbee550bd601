"""What every view must be, worked out by brute force from the ledger's bytes alone.

It shares no code with the fold: JSON is read with `json.loads`, the rules are those of docs and memory model, written
down once more in the slowest and plainest way. It judges only what the suites write; a full schema it is not.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

SHARED_BY_DEFAULT = {"world.observed", "judge.verdict", "user.injected", "run.started", "agent.reflected"}
BOOKKEEPING = {"agent.configured", "space.configured", "clock.ticked", "reflection.failed"}
NEEDS_TEXT = {
    "world.observed",
    "agent.spoke",
    "agent.thought",
    "oracle.spoke",
    "hypothesis.proposed",
    "clue.found",
    "user.injected",
    "judge.verdict",
    "verdict.final",
}
KNOWN = NEEDS_TEXT | BOOKKEEPING | {"run.started", "agent.reflected", "tool.used", "session.started", "session.ended"}

REQUIRED = {"envelope", "id", "at", "space", "agent", "kind"}
OPTIONAL = {"session", "turn", "schema_version", "payload", "subject", "audience", "causation_id", "correlation_id"}
OLD_NAMES = {"run_id": "space", "actor": "agent", "created_at": "at"}
OLD_FIELDS = {"id", "turn", "kind", "payload", "schema_version", "session_id", *OLD_NAMES}

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@/-]{0,127}")
KIND = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")


@dataclass(frozen=True)
class Said:
    """One event that counts."""

    offset: int
    data: bytes
    space: str
    agent: str
    kind: str
    session: str | None
    audience: list[str] | None
    shared: bool
    """Its kind was shared when it was said, and it is addressed to nobody."""

    def is_seen_by(self, agent: str) -> bool:
        return self.shared or agent == self.agent or agent in (self.audience or [])


@dataclass
class Expected:
    """What the views must say of the records below one offset."""

    counted: list[Said] = field(default_factory=list)
    """All that is neither parked nor a repeat."""
    parked: list[int] = field(default_factory=list)
    future: list[int] = field(default_factory=list)
    """Those of the parked ones that only newer code can judge."""
    repeated: list[int] = field(default_factory=list)
    shared_kinds: dict[str, list[str] | None] = field(default_factory=dict)
    windows: dict[tuple[str, str], int | None] = field(default_factory=dict)

    def visible(self, space: str, agent: str) -> list[tuple[int, bytes]]:
        """What `agent` remembers, in ledger order."""
        return [
            (said.offset, said.data)
            for said in self.counted
            if said.space == space and said.kind not in BOOKKEEPING and said.is_seen_by(agent)
        ]

    @property
    def spaces(self) -> list[str]:
        return sorted({said.space for said in self.counted})

    def agents(self, space: str) -> list[str]:
        """Everybody who acted in `space` or was addressed there."""
        names = {name for said in self.counted if said.space == space for name in [said.agent, *(said.audience or [])]}
        return sorted(names)

    def spans(self, what: str) -> dict[tuple[str, str], tuple[int, int, int]]:
        """By space and `what` ("agent", "kind" or "session"): number of events, first and last offset."""
        offsets: dict[tuple[str, str], list[int]] = {}
        for said in self.counted:
            if getattr(said, what) is not None:
                offsets.setdefault((said.space, getattr(said, what)), []).append(said.offset)
        return {place: (len(found), found[0], found[-1]) for place, found in offsets.items()}

    def totals(self) -> tuple[int, int, int]:
        """Spaces, agents and sessions."""
        return (len(self.spaces), len(self.spans("agent")), len(self.spans("session")))


def expect(
    values: Sequence[bytes], *, unique_ids: bool, refuses: Callable[[dict[str, Any]], bool] = lambda _: False
) -> Expected:
    """The views of a ledger that holds `values` from offset 0 on.

    `refuses` says which events some projection raises on. Those are parked, and their ids stay free.
    """
    expected = Expected()
    content_of: dict[tuple[str, str], str] = {}
    for offset, data in enumerate(values):
        verdict = understood(data)
        if isinstance(verdict, str):
            expected.parked.append(offset)
            if verdict == "future":
                expected.future.append(offset)
            continue
        fields, content = verdict
        space, kind, payload = fields["space"], fields["kind"], fields.get("payload", {})
        if not unique_ids:
            first = content_of.get((space, fields["id"]))
            if first is not None:
                (expected.repeated if content == first else expected.parked).append(offset)
                continue
        if refuses(fields):
            expected.parked.append(offset)
            continue
        content_of[space, fields["id"]] = content
        in_force = expected.shared_kinds.get(space)
        shared = kind in (SHARED_BY_DEFAULT if in_force is None else in_force) and fields.get("audience") is None
        expected.counted.append(
            Said(offset, data, space, fields["agent"], kind, fields.get("session"), fields.get("audience"), shared)
        )
        if kind == "space.configured" and "shared_kinds" in payload:
            expected.shared_kinds[space] = payload["shared_kinds"]
        if kind == "run.started" and payload.get("shared_kinds") is not None:
            expected.shared_kinds[space] = payload["shared_kinds"]
        if kind == "agent.configured" and "window" in payload:
            expected.windows[space, fields["agent"]] = payload["window"]
    return expected


@lru_cache(maxsize=10_000)
def understood(data: bytes) -> "tuple[dict[str, Any], str] | str":
    """Its fields and its content in a form that two writings share; or "bad", or "future"."""
    if len(data) > 256 * 1024:
        return "bad"
    try:
        fields = json.loads(data)
    except ValueError:
        return "bad"
    if not isinstance(fields, dict):
        return "bad"
    content = json.dumps(fields, sort_keys=True)
    if fields.get("envelope", 0) > 1:
        return "future"
    if fields.get("kind") in KNOWN and fields.get("schema_version", 1) > 1:
        return "future"
    if "envelope" not in fields:
        if not fields.keys() <= OLD_FIELDS:
            return "bad"
        fields = {OLD_NAMES.get(name, name): value for name, value in fields.items()} | {"envelope": 1}
        session = fields.pop("session_id", None)
        if session is not None and re.fullmatch(r"[A-Za-z0-9._-]{1,64}", session):
            fields["session"] = session
    return (fields, content) if _is_event(fields) else "bad"


def _is_event(fields: dict[str, Any]) -> bool:
    if not REQUIRED <= fields.keys() <= REQUIRED | OPTIONAL:
        return False
    if not (NAME.fullmatch(fields["space"]) and NAME.fullmatch(fields["agent"]) and KIND.fullmatch(fields["kind"])):
        return False
    kind, payload = fields["kind"], fields.get("payload", {})
    if not isinstance(payload, dict):
        return False
    if kind in NEEDS_TEXT:
        return isinstance(payload.get("text"), str)
    if kind == "agent.reflected":
        return isinstance(payload.get("belief", payload.get("text")), str)
    return True
