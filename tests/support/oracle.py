"""The expected content of every view, computed by brute force from the bytes of the ledger.

It shares no code with the fold: JSON is parsed with `json.loads`, and the rules of the documentation are implemented in
the simplest way. It handles the events that the tests write; it is not a complete schema.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

from support.entries_oracle import ExpectedEntries

SHARED_BY_DEFAULT = {"world.observed", "judge.verdict", "user.injected", "run.started", "agent.reflected"}
BOOKKEEPING = {"agent.configured", "space.configured", "clock.ticked", "reflection.failed", "reaction.done"}
BOOKKEEPING |= {
    f"memory.{verb}" for verb in ("updated", "retracted", "archived", "restored", "erased", "transferred", "metered")
}
BOOKKEEPING |= {f"memory.{verb}" for verb in ("accessed", "consolidated", "outcome_reported", "tier_changed")}
ENTRIES = {"memory.retained", "experience.recorded"}
ITEMS = {"item.put", "item.appended", "item.deleted"}
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
KNOWN = NEEDS_TEXT | BOOKKEEPING | ENTRIES | ITEMS
KNOWN |= {"run.started", "agent.reflected", "tool.used", "session.started", "session.ended"}
IMPORTANCE = {
    "run.started": 0.30,
    "world.observed": 0.70,
    "agent.spoke": 0.50,
    "agent.thought": 0.40,
    "oracle.spoke": 0.50,
    "hypothesis.proposed": 0.75,
    "clue.found": 0.80,
    "user.injected": 0.95,
    "judge.verdict": 0.90,
    "verdict.final": 1.00,
    "agent.reflected": 0.85,
    "tool.used": 0.40,
    "session.started": 0.30,
    "session.ended": 0.30,
}
IMPORTANCE_OF_UNKNOWN_KINDS = 0.5
TEXT_FIELDS = {"run.started": ["goal"], "session.started": ["title"], "session.ended": ["outcome"]}
ANSWERS = {"agent.reflected", "reflection.failed"}

EVENTS_KEPT = 2_000
BELIEFS_KEPT = 64
VISITOR_EVENTS = 3
REFLECTION_EVENTS = 20
EVIDENCE_SCANNED = 200
ACTIONS_SHOWN = 15

REQUIRED = {"envelope", "id", "at", "space", "agent", "kind"}
OPTIONAL = {"session", "turn", "schema_version", "payload", "subject", "audience", "causation_id", "correlation_id"}
DEFAULTS = {"turn": 0, "schema_version": 1, "payload": {}}
OLD_NAMES = {"run_id": "space", "actor": "agent", "created_at": "at"}
OLD_FIELDS = {"id", "turn", "kind", "payload", "schema_version", "session_id", *OLD_NAMES}

NAME = re.compile(r"[^\s\x00-\x1f*]([^\x00-\x1f*]*[^\s\x00-\x1f*])?")
TRIGGER = re.compile(r"reflection\.due/[0-9a-f]{32}/\d+|[a-z]+\.due/[0-9a-f]{32}/[0-9a-f]{32}")
KIND = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")


@dataclass(frozen=True)
class ExpectedEvent:
    """One event that the views contain: neither a dead letter nor a repeat."""

    offset: int
    data: bytes
    fields: dict[str, Any]
    shared: bool
    """Whether its kind was shared when it was appended, and it has no audience."""
    happened: bool
    """Whether it happened by the time for which the views are computed."""
    declared: dict[str, Any] = field(default_factory=dict)
    """The space's declaration of its kind when it was appended."""

    @cached_property
    def space(self) -> str:
        return str(self.fields["space"])

    @cached_property
    def agent(self) -> str:
        return str(self.fields["agent"])

    @cached_property
    def kind(self) -> str:
        return str(self.fields["kind"])

    @property
    def session(self) -> str | None:
        return self.fields.get("session")

    @property
    def moment(self) -> datetime:
        return datetime.fromisoformat(self.fields["at"])

    @property
    def turn(self) -> int:
        return int(self.fields.get("turn", 0))

    @property
    def payload(self) -> dict[str, Any]:
        return self.fields.get("payload", {})

    @property
    def audience(self) -> list[str] | None:
        return self.fields.get("audience")

    @property
    def memorable(self) -> bool:
        return self.happened and self.kind not in BOOKKEEPING | ENTRIES | ITEMS

    @property
    def text(self) -> str:
        if self.declared.get("text") is not None:
            return declared_text(self.declared["text"], self.payload)
        if self.kind == "tool.used":
            return tool_text(**self.payload)
        fields = ["belief", "text"] if self.kind == "agent.reflected" else TEXT_FIELDS.get(self.kind, ["text"])
        if self.kind not in KNOWN:
            fields = ["text", "belief", "summary", "goal"]
        found = [self.payload[name] for name in fields if isinstance(self.payload.get(name), str)]
        return found[0] if found else ""

    @property
    def importance(self) -> float:
        declared = self.declared.get("importance")
        return IMPORTANCE.get(self.kind, IMPORTANCE_OF_UNKNOWN_KINDS) if declared is None else float(declared)

    @property
    def role(self) -> str:
        return {"tool.used": "action", "user.injected": "visitor"}.get(self.kind) or self.declared.get("role") or ""

    def is_seen_by(self, agent: str) -> bool:
        return self.shared or agent == self.agent or agent in (self.audience or [])


@dataclass(frozen=True)
class Scored:
    """One event with its salience."""

    event: ExpectedEvent
    score: float
    relevance: float
    recency: float
    importance: float


@dataclass(frozen=True)
class ExpectedReflection:
    """The state of an agent's reflections."""

    due: bool
    threshold: int | None
    counted: list[ExpectedEvent]
    """The events since its last answer."""
    since: int | None
    """The offset since which it has been due without interruption."""
    ordinal: int
    last: int | None
    trigger: str | None
    evidence: list[ExpectedEvent]
    """What a reflection may rest on."""


@dataclass
class Expected:
    """The expected views of the records below one offset. No event may be added after the first query."""

    counted: list[ExpectedEvent] = field(default_factory=list)
    """All events that are neither dead letters nor repeats."""
    dead_letters: list[int] = field(default_factory=list)
    future: list[int] = field(default_factory=list)
    """The dead letters that only newer code can read."""
    repeated: list[int] = field(default_factory=list)
    shared_kinds: dict[str, list[str] | None] = field(default_factory=dict)
    declared: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """By space and kind."""
    chain: bytes = bytes(16)
    """The value of the hash chain after the last record."""
    blocks: dict[int, bytes] = field(default_factory=dict)
    """The value of the chain after the last record of each whole block of 1,024, by the offset of that record."""

    @cached_property
    def _by_space(self) -> dict[str, list[ExpectedEvent]]:
        spaces: dict[str, list[ExpectedEvent]] = {}
        for event in self.counted:
            spaces.setdefault(event.space, []).append(event)
        return spaces

    @cached_property
    def entries(self) -> ExpectedEntries:
        """What agents keep on purpose."""
        entries = ExpectedEntries()
        captures: dict[tuple[str, str], dict[str, Any]] = {}
        for event in self.counted:
            owner = event.space, event.agent
            if event.kind == "agent.configured" and "capture" in event.payload:
                captures[owner] = event.payload["capture"] or {}
            if event.happened:
                entries.add(event.fields, event.offset, shared=event.shared)
                if event.kind == "tool.used":
                    setting = captures.get(owner, {})
                    entries.capture(event.fields, event.offset, event.text, setting, shared=event.shared)
        return entries

    def in_space(self, space: str) -> list[ExpectedEvent]:
        """The events of `space` in ledger order."""
        return self._by_space.get(space, [])

    def memories(self, space: str, agent: str) -> list[ExpectedEvent]:
        """The events that `agent` may see, in ledger order."""
        return [event for event in self.in_space(space) if event.memorable and event.is_seen_by(agent)]

    def visible(self, space: str, agent: str) -> list[tuple[int, bytes]]:
        """The offsets and bytes of the events that `agent` may see."""
        return [(event.offset, event.data) for event in self.memories(space, agent)]

    @property
    def spaces(self) -> list[str]:
        return sorted(self._by_space)

    def agents(self, space: str) -> list[str]:
        """The agents that acted in `space` or were in an audience there."""
        return sorted({name for event in self.in_space(space) for name in [event.agent, *(event.audience or [])]})

    def participants(self, space: str) -> dict[str, bool]:
        """The agents with memorable events, in order, and whether one of these is a visitor's."""
        found: dict[str, bool] = {}
        for event in self.in_space(space):
            if event.memorable:
                found[event.agent] = found.get(event.agent, False) or event.role == "visitor"
        return found

    def sessions_of_memories(self, space: str) -> list[str]:
        """The session of each memorable event, "" without one, in ledger order."""
        return [event.session or "" for event in self.in_space(space) if event.memorable]

    def spans(self, what: str) -> dict[tuple[str, str], tuple[int, int, int]]:
        """By space and `what` ("agent", "kind" or "session"): number of events, first and last offset.

        The author of a clock's event is not an agent."""
        offsets: dict[tuple[str, str], list[int]] = {}
        for event in self.counted:
            if getattr(event, what) is not None and (what, event.kind) != ("agent", "clock.ticked"):
                offsets.setdefault((event.space, getattr(event, what)), []).append(event.offset)
        return {place: (len(found), found[0], found[-1]) for place, found in offsets.items()}

    def last_turns(self) -> dict[tuple[str, str], int]:
        """By space and agent: the highest turn in which it acted."""
        turns: dict[tuple[str, str], int] = {}
        for event in (each for each in self.counted if each.kind != "clock.ticked"):
            turns[event.space, event.agent] = max(event.turn, turns.get((event.space, event.agent), 0))
        return turns

    def session_turns(self) -> dict[tuple[str, str], int | None]:
        """By space and session: the highest turn of its memorable events; None without any."""
        turns: dict[tuple[str, str], int | None] = {}
        for event in self.counted:
            if event.session is not None:
                known = turns.setdefault((event.space, event.session), None)
                if event.memorable:
                    turns[event.space, event.session] = max(event.turn, known or 0)
        return turns

    def totals(self) -> tuple[int, int, int]:
        """Spaces, agents and sessions."""
        return (len(self.spaces), len(self.spans("agent")), len(self.spans("session")))

    # Settings: the last word on each field counts, and null is the default.

    def setting(self, space: str, agent: str, field: str) -> Any:
        """What `agent` is set to, None where that is the default."""
        set_to = [
            event.payload[field]
            for event in self.in_space(space)
            if event.kind == "agent.configured" and event.agent == agent and field in event.payload
        ]
        return set_to[-1] if set_to else None

    def scene_kinds(self, space: str) -> list[str]:
        """The kinds of the scene, each once."""
        set_to = [
            event.payload["scene_kinds"]
            for event in self.in_space(space)
            if event.kind == "space.configured" and "scene_kinds" in event.payload
        ]
        kinds = set_to[-1] if set_to and set_to[-1] is not None else ["world.observed", "run.started"]
        return [kind for number, kind in enumerate(kinds) if kind not in kinds[:number]]

    # What is computed from all that.

    def clock(self, space: str) -> int:
        """The highest turn of the space, that of bookkeeping too."""
        return max([event.turn for event in self.in_space(space) if event.happened], default=0)

    def times(self, space: str) -> dict[str, datetime]:
        """By agent: when the newest event happened that it sees, not all agents see, and the memory did not write by
        itself; "": the newest one that all agents see. An entry or item from before the time of an agent is left
        out."""
        found: dict[str, tuple[int, datetime]] = {}
        for number, event in enumerate(self.in_space(space)):
            by_itself = TRIGGER.fullmatch(event.fields.get("causation_id") or "")
            if event.happened and event.kind != "memory.accessed" and not by_itself:
                at, is_entry = datetime.fromisoformat(event.fields["at"]), event.kind in ENTRIES | ITEMS
                is_for_all = event.kind == "clock.ticked" or (event.shared and not is_entry)
                for reader in [""] if is_for_all else [event.agent, *(event.audience or [])]:
                    now = max((found[each] for each in ("", reader) if each in found), default=None)
                    if not (is_entry and now and at < now[1]):
                        found[reader] = number, at
        return {reader: at for reader, (_, at) in found.items()}

    def ranked(self, space: str, agent: str, query: str = "", turn: int | None = None) -> list[Scored]:
        """The newest events that `agent` may see, the strongest first and of equal ones the newer first."""
        now = self.clock(space) if turn is None else turn
        weights = {"relevance": 0.30, "recency": 0.40, "importance": 0.30}
        weights |= self.setting(space, agent, "salience_weights") or {}
        asked = set(query.lower().split())
        scored = []
        for event in self.memories(space, agent)[-EVENTS_KEPT:]:
            words = set(event.text.lower().split())
            relevance = len(asked & words) / len(asked | words) if asked and words else 0.0
            recency = math.exp(-0.1 * max(0, now - event.turn))
            terms = (relevance, recency, event.importance)
            score = sum(weights[name] * term for name, term in zip(weights, terms, strict=True))
            scored.append(Scored(event, score, *terms))
        return sorted(scored, key=lambda one: (-one.score, -one.event.offset))

    def top_k(self, space: str, agent: str) -> int:
        return self.setting(space, agent, "salience_top_k") or 8

    def salient(
        self, space: str, agent: str, query: str = "", turn: int | None = None, top_k: int | None = None
    ) -> list[Scored]:
        """The strongest, in ledger order."""
        strongest = self.ranked(space, agent, query, turn)[: top_k or self.top_k(space, agent)]
        return sorted(strongest, key=lambda one: one.event.offset)

    def reflection(self, space: str, agent: str) -> ExpectedReflection:
        """The state after a count record by record."""
        tally: list[ExpectedEvent] = []
        threshold: int | None = None
        since: int | None = None
        last: int | None = None
        ordinal = 0
        for event in self.in_space(space):
            if event.agent == agent and event.kind in ANSWERS:
                older = [trigger_of(space, agent, number) for number in range(ordinal)]
                if event.happened and event.fields.get("causation_id") not in older:
                    tally, last, ordinal = [], event.offset, ordinal + 1
            elif event.memorable and event.is_seen_by(agent):
                tally.append(event)
            if event.agent == agent and event.kind == "agent.configured" and "reflection_threshold" in event.payload:
                threshold = event.payload["reflection_threshold"]
            if threshold is None or len(tally) < threshold:
                since = None
            elif since is None:
                since = event.offset
        due = since is not None
        return ExpectedReflection(
            due,
            threshold,
            tally,
            since,
            ordinal,
            last,
            trigger_of(space, agent, ordinal) if due else None,
            self.evidence(space, tally[-EVIDENCE_SCANNED:] if due else tally[-REFLECTION_EVENTS:])[-REFLECTION_EVENTS:],
        )

    def evidence(self, space: str, events: Sequence[ExpectedEvent]) -> list[ExpectedEvent]:
        """The events that are not from tools or other outside sources, as the space declares kinds now."""
        return [event for event in events if event.kind not in self.outside(space)]

    def outside(self, space: str) -> set[str]:
        """The kinds of what tools and other outside sources printed."""
        declared = {kind for kind, now in self.declared.get(space, {}).items() if now.get("role") == "action"}
        return (declared - KNOWN) | {"tool.used", "oracle.spoke"}

    def beliefs(self, space: str, agent: str, reader: str | None = None) -> list[ExpectedEvent]:
        """Those of the newest reflections of `agent` that `reader` may see."""
        own = [
            event for event in self.memories(space, agent) if (event.agent, event.kind) == (agent, "agent.reflected")
        ]
        return [event for event in own[-BELIEFS_KEPT:] if reader is None or event.is_seen_by(reader)]

    def scene(self, space: str) -> list[ExpectedEvent]:
        """The newest shared event of each of the scene's kinds, in ledger order."""
        shared = [event for event in self.in_space(space) if event.memorable and event.shared]
        newest = {event.kind: event for event in shared}
        return sorted(
            [newest[kind] for kind in self.scene_kinds(space) if kind in newest], key=lambda event: event.offset
        )

    def visitors(self, space: str, agent: str) -> list[ExpectedEvent]:
        """The newest events of visitors that `agent` may see, those of each session in the order of their times."""
        newest = [event for event in self.memories(space, agent) if event.role == "visitor"][-VISITOR_EVENTS:]
        for _ in newest:
            for session in {event.session for event in newest} - {None}:
                places = [place for place, event in enumerate(newest) if event.session == session]
                for one, other in pairwise(places):
                    if newest[one].moment > newest[other].moment:
                        newest[one], newest[other] = newest[other], newest[one]
        return newest

    def actions(self, space: str, agent: str) -> list[ExpectedEvent]:
        """The newest actions of `agent`, however many other events came since."""
        own = [event for event in self.in_space(space) if event.memorable and event.agent == agent]
        return [event for event in own if event.role == "action"][-ACTIONS_SHOWN:]


def tool_text(
    tool: str,
    arguments: dict[str, Any] | None = None,
    result: str | None = None,
    ok: bool | None = None,
    **_more: Any,
) -> str:
    """The text of a call of a tool with a short name and string arguments; other fields of its payload are left out."""
    given = ", ".join(f"{name}={value}" for name, value in (arguments or {}).items()).removeprefix("command=")
    said = result.strip() if result else ""
    if ok is False:
        said = f"failed: {said}" if said else "failed"
    elif ok and not said:
        said = "ok"
    frame = tool + ("" if arguments is None else "()") + (": " if said else "")
    room = 800 - len(frame)
    if len(given) + len(said) > room:
        given_chars = min(len(given), max(400, room - len(said)))
        given = given if len(given) == given_chars else given[: given_chars - 1] + "…"
        said_chars = min(len(said), room - given_chars)
        if len(said) > said_chars:
            last = (said_chars - 3) // 2
            said = said[: said_chars - 3 - last] + " … " + said[len(said) - last :]
    return frame.replace("()", f"({given})") + said


def declared_text(rule: str, payload: dict[str, Any]) -> str:
    """The text that a rule makes of a payload, character by character."""
    left, text = (rule if "{" in rule or "}" in rule else f"{{{rule}}}"), ""
    while left:
        if left[:2] in ("{{", "}}"):
            text, left = text + left[0], left[2:]
        elif left[0] == "{":
            path, _, left = left[1:].partition("}")
            value: Any = payload
            for name in path.split("."):
                value = value.get(name) if isinstance(value, dict) else None
            compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            text += "" if value is None else value if isinstance(value, str) else compact
        else:
            text, left = text + left[0], left[1:]
    return text[:8_000]


@lru_cache(maxsize=10_000)
def trigger_of(space: str, agent: str, ordinal: int) -> str:
    """The id of the reflection that is due for `agent` after `ordinal` answers."""
    owner = hashlib.blake2b(f"reflection.due\n{space}\n{agent}".encode(), digest_size=16).hexdigest()
    return f"reflection.due/{owner}/{ordinal}"


def expect(
    values: Sequence[bytes],
    *,
    unique_ids: bool,
    refuses: Callable[[dict[str, Any]], bool] = lambda _: False,
    happened_by: datetime | None = None,
) -> Expected:
    """The views of a ledger that contains `values` from offset 0 on.

    `refuses` selects the events for which a projection raises. They become dead letters, and their ids stay free.
    Events that happened after `happened_by` count for identity, settings and visibility only.
    """
    expected = Expected()
    content_of: dict[tuple[str, str], str] = {}
    for offset, data in enumerate(values):
        digest = hashlib.blake2b(expected.chain + offset.to_bytes(8, "big") + data, digest_size=16)
        expected.chain = digest.digest()
        if offset % 1024 == 1023:
            expected.blocks[offset] = expected.chain
        verdict = understood(data)
        if isinstance(verdict, str):
            expected.dead_letters.append(offset)
            if verdict == "future":
                expected.future.append(offset)
            continue
        fields, content = verdict
        space, kind, payload = fields["space"], fields["kind"], fields.get("payload", {})
        if not unique_ids:
            first = content_of.get((space, fields["id"]))
            if first is not None:
                (expected.repeated if content == first else expected.dead_letters).append(offset)
                continue
        if refuses(fields):
            expected.dead_letters.append(offset)
            continue
        content_of[space, fields["id"]] = content
        in_force = expected.shared_kinds.get(space)
        declared = expected.declared.get(space, {}).get(kind, {})
        shared = kind in (SHARED_BY_DEFAULT if in_force is None else in_force) or bool(declared.get("shared"))
        shared = shared and fields.get("audience") is None
        happened = happened_by is None or datetime.fromisoformat(fields["at"]) <= happened_by
        expected.counted.append(ExpectedEvent(offset, data, fields, shared, happened, declared))
        if kind == "space.configured" and "shared_kinds" in payload:
            expected.shared_kinds[space] = payload["shared_kinds"]
        if kind == "space.configured" and "kinds" in payload:
            known = {} if payload["kinds"] is None else expected.declared.get(space, {}) | payload["kinds"]
            expected.declared[space] = {name: what for name, what in known.items() if what is not None}
        if kind == "run.started" and payload.get("shared_kinds") is not None:
            expected.shared_kinds[space] = payload["shared_kinds"]
    return expected


@lru_cache(maxsize=10_000)
def understood(data: bytes) -> "tuple[dict[str, Any], str] | str":
    """The fields of an event, and a form of its content that is equal for repeats; or "bad", or "future".

    `at` is not part of the content; a default that is written out makes no difference.
    """
    if len(data) > 256 * 1024:
        return "bad"
    try:
        fields = json.loads(data)
    except ValueError:
        return "bad"
    if not isinstance(fields, dict):
        return "bad"
    if fields.get("envelope", 0) > 2:
        return "future"
    if fields.get("envelope") == 2:  # of an erased event, which has no payload
        return "bad"
    if fields.get("kind") in KNOWN and fields.get("schema_version", 1) > 1:
        return "future"
    if "envelope" not in fields:
        if not fields.keys() <= OLD_FIELDS:
            return "bad"
        fields = {OLD_NAMES.get(name, name): value for name, value in fields.items()} | {"envelope": 1}
        session = fields.pop("session_id", None)
        if session is not None and re.fullmatch(r"[A-Za-z0-9._-]{1,64}", session):
            fields["session"] = session
    if not _is_event(fields):
        return "bad"
    content = {name: value for name, value in fields.items() if value is not None and name != "at"}
    return fields, _trigger_answered_by(fields) or json.dumps(DEFAULTS | content, sort_keys=True)


def _trigger_answered_by(fields: dict[str, Any]) -> str | None:
    """The trigger whose answer id the event has. Answers with that id count as equal, whatever their content is."""
    ordinal = (fields.get("causation_id") or "").rpartition("/")[2]
    if fields["kind"] not in ANSWERS or re.fullmatch("[0-9]+", ordinal) is None:
        return None
    trigger = trigger_of(fields["space"], fields["agent"], int(ordinal))
    return trigger if (fields["causation_id"], fields["id"]) == (trigger, f"{trigger}/answer") else None


def _is_event(fields: dict[str, Any]) -> bool:
    if not REQUIRED <= fields.keys() <= REQUIRED | OPTIONAL:
        return False
    if not (NAME.fullmatch(fields["space"]) and NAME.fullmatch(fields["agent"]) and KIND.fullmatch(fields["kind"])):
        return False
    kind, payload = fields["kind"], fields.get("payload", {})
    if not isinstance(payload, dict):
        return False
    if kind == "space.configured" and set(payload.get("kinds") or ()) & KNOWN:
        return False
    if kind in NEEDS_TEXT:
        return isinstance(payload.get("text"), str)
    if kind == "agent.reflected":
        return isinstance(payload.get("belief", payload.get("text")), str)
    return True
