"""The expected view of entries, by brute force: plain dicts, searched as a whole for every rule.

It shares no code with the fold. It handles the events that the tests write: texts that fit a row, and fewer dependents
than the limit.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from support.tiers_oracle import ExpectedTiers

PINS_MAX = 5
INTEGER_MAX = 9_223_372_036_854_775_807
COMPARED_BY_VALUE = ("fact", "lesson")
NOT_DEDUPLICATED = ("tool_usage", "summary", "experience")
CHANGES = {f"memory.{verb}" for verb in ("updated", "retracted", "archived", "restored", "erased", "transferred")}
LABELS = ("entity", "category", "source", "topic")

MARKED = re.compile(r"(?i:lesson|strategy|info|insight|note):[ \t\n\r\f\v]*[^ \t\n\r\f\v]", re.ASCII)
"""The beginning of a text that the end of a session may retain."""

Fields = dict[str, Any]


def micros(at: str) -> int:
    return (datetime.fromisoformat(at) - datetime.fromisoformat("1970-01-01T00:00:00+00:00")) // timedelta(
        microseconds=1
    )


def words(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def is_of_rule_3(event: Fields) -> bool:
    return event["payload"].get("rule") == 3


def are_equal(event: Fields, type_: str, one: str, other: str) -> bool:
    """Whether the rule of the event finds two texts equal. Rules 2 and 3 are simplified: of the texts that tests write,
    those that differ in capitals do so in a whole text, or in its first letter."""
    exact = type_ not in COMPARED_BY_VALUE and is_of_rule_3(event)
    if exact or event["payload"].get("rule") in (None, 1):
        return words(one) == words(other)
    ours, theirs = (words(text).lower().removesuffix(".") for text in (one, other))
    return ours.removeprefix("the ") == theirs.removeprefix("the ") if is_of_rule_3(event) else ours == theirs


def value_of(text: str) -> str | None:
    """What a text says of the price of rye; None for another text, of which nothing says the contrary."""
    found = re.fullmatch(r"rye costs (\d(?:(?!\. ).)*?)[. ]*", words(text).lower())
    return None if found is None else found[1]


@dataclass
class ExpectedEntry:
    """An event that would retain an entry, with all that became of it."""

    space: str
    owner: str
    id: str
    offset: int
    status: str
    content: Fields = field(default_factory=dict)
    """Of a live, retracted or archived entry."""
    reason: str | None = None
    of: str | None = None
    similarity: float | None = None
    retracted: list[str] = field(default_factory=list)

    @property
    def readers(self) -> list[str]:
        return ["*"] if self.content["shared"] else self.content["audience"]

    def is_like(self, owner: str, content: Fields) -> bool:
        """Whether it is live and may be a duplicate of another entry with these fields."""
        ours = {name: self.content.get(name) for name in ("type", "audience", "shared", "subject")}
        theirs = {name: content[name] for name in ("type", "audience", "shared", "subject")}
        return self.status == "live" and self.owner == owner and ours == theirs


@dataclass
class Account:
    balance: float | None = None
    spent: float = 0.0
    eur: float = 0.0


@dataclass
class ExpectedEntries:
    """The state after some events. Each event is a dict of its fields, as in JSON."""

    entries: dict[tuple[str, str], ExpectedEntry] = field(default_factory=dict)
    """By space and id."""
    accounts: dict[tuple[str, str], Account] = field(default_factory=dict)
    audit: dict[tuple[str, str], list[tuple[str, str, int, str, str | None]]] = field(default_factory=dict)
    refusals: dict[tuple[str, str], list[tuple[str, dict[str, str]]]] = field(default_factory=dict)
    erasures: dict[tuple[str, str, str], tuple[int, str, str | None]] = field(default_factory=dict)
    uses: dict[tuple[str, str], tuple[int, int, int]] = field(default_factory=dict)
    """By space and id of the entry: how often it was read, and when and at which offset last."""
    lookups: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """By space and agent: its lookups, and how many of them found something."""
    had: set[tuple[str, str, str]] = field(default_factory=set)
    """Space, agent and words of each marked text of which the agent has, or had, an entry."""
    captured: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """By space and agent: when its calls of tools happened that were captured."""
    tiers: ExpectedTiers = field(default_factory=ExpectedTiers)
    changed_ids: list[str] = field(default_factory=list)
    """The entries that the event which is counted has changed."""

    def live(self, space: str, owner: str | None = None) -> Iterator[ExpectedEntry]:
        for entry in self.entries.values():
            if entry.space == space and entry.status == "live" and owner in (None, entry.owner):
                yield entry

    def pinned(self, space: str, owner: str) -> list[str]:
        return [entry.id for entry in self.live(space, owner) if entry.content["priority"] == "pinned"]

    def has(self, space: str, owner: str, text: str) -> None:
        """Note that an agent has an entry with this text now."""
        if MARKED.match(text.strip()):
            self.had.add((space, owner, words(text)))

    def note(self, event: Fields, owner: str, operation: str, id_: str, reason: str | None = None) -> None:
        self.changed_ids.append(id_)
        noted = (operation, id_, micros(event["at"]), event["agent"], reason)
        self.audit.setdefault((event["space"], owner), []).append(noted)

    def add(self, event: Fields, offset: int, *, shared: bool) -> None:
        """Count one event; `shared`: whether all agents of its space see it."""
        kind, owners = event["kind"], self.owners(event["space"])
        self.tiers.happened(event)
        if kind in ("memory.retained", "experience.recorded"):
            self.retain(event, offset, content_of(event, shared=shared))
        elif kind == "memory.metered":
            self.meter(event)
        elif kind == "memory.accessed":
            self.access(event, offset)
        elif kind in CHANGES:
            self.change(event, offset)
        else:
            if kind == "memory.tier_changed" and event["payload"].get("rule") not in (None, 1):
                self.change(event, offset)
            self.tiers.add(self, event, offset)
        self.follow(event, offset, owners)

    def owners(self, space: str) -> dict[str, str]:
        return {id_: entry.owner for (known, id_), entry in self.entries.items() if known == space}

    def follow(self, event: Fields, offset: int, owners: dict[str, str]) -> None:
        changed = dict.fromkeys(self.changed_ids)
        self.changed_ids.clear()
        self.tiers.follow(self, event, offset, {id_: owners.get(id_, "") for id_ in changed})

    def capture(self, event: Fields, offset: int, said: str, setting: Fields, *, shared: bool) -> None:
        """Keep a call of a tool with the text `said`, if the agent's setting `capture` says so."""
        tool, at = event["payload"]["tool"], micros(event["at"])
        names = [setting.get("tools"), setting.get("skip") or []]
        if not setting.get("case_sensitive"):
            tool = tool.lower()
            names = [None if each is None else [name.lower() for name in each] for each in names]
        tools, skip = names
        if not setting.get("enabled") or (tool in skip and tools is None) or (tools is not None and tool not in tools):
            return
        times = self.captured.setdefault((event["space"], event["agent"]), [])
        if sum(at - 60_000_000 < time < at + 60_000_000 for time in times) >= setting.get("max_per_minute", 120):
            return
        # A minute is forgotten when a call is captured in another one, a multiple of 61 minutes away.
        times[:] = [time for time in times if (far := time // 60_000_000 - at // 60_000_000) == 0 or far % 61]
        times.append(at)
        most = setting.get("max_detail_chars", 800)
        payload = {
            "text": said[:most] + ("..." if len(said) > most else ""),
            "type": "tool_usage",
            "importance": setting.get("importance", 0.4),
            "tier": setting.get("tier", "fast"),
            "metadata": {"tool": event["payload"]["tool"]},
        }
        content = content_of(event | {"payload": payload}, shared=shared)
        content |= {"captured": True, "since": offset, "since_at": content["at"]}
        entry = ExpectedEntry(event["space"], event["agent"], event["id"], offset, "live", content)
        owners = self.owners(event["space"])
        self.entries[event["space"], entry.id] = entry
        self.note(event, entry.owner, "retained", entry.id)
        self.follow(event, offset, owners)

    # Retaining.

    def retain(self, event: Fields, offset: int, content: Fields) -> None:
        space, agent, payload = event["space"], event["agent"], event["payload"]
        content |= {"since": offset, "since_at": content["at"]}
        entry = ExpectedEntry(space, agent, event["id"], offset, "live", content)
        content["sources"] = self.sources_of(space, content["sources"])
        known = [self.entries[space, id_] for id_ in content["sources"] if (space, id_) in self.entries]
        classes = [found for each in known if each.content and (found := class_in(each.content)) is not None]
        if classes:
            lower_class(content, least_of(classes))
        self.decide(event, entry, payload)
        if entry.status != "live":
            entry.content = {}
        else:
            self.has(space, agent, content["text"])
            self.note(event, agent, "retained", entry.id)
        self.entries[space, entry.id] = entry

    def sources_of(self, space: str, named: Sequence[str]) -> list[str]:
        found: list[str] = []
        for id_ in named:
            known = self.entries.get((space, id_))
            source = known.of if known is not None and known.status == "duplicate" else id_
            if source is not None and source not in found:
                found.append(source)
        return found

    def is_lost(self, space: str, id_: str) -> bool:
        known = self.entries.get((space, id_))
        return known is not None and (
            known.status == "erased" or (known.status == "retracted" and known.of is not None)
        )

    def decide(self, event: Fields, entry: ExpectedEntry, payload: Fields) -> None:
        content = entry.content
        if any(self.is_lost(entry.space, source) for source in content["sources"]):
            entry.status, entry.reason = "refused", "source_erased"
            return
        like = [other for other in self.live(entry.space) if other.is_like(entry.owner, content)]
        if content["type"] not in NOT_DEDUPLICATED:
            for other in like:
                if self.is_twin(event, other, content):
                    entry.status, entry.reason, entry.of, entry.similarity = "duplicate", "equal", other.id, 1.0
                    return
        if is_migrated(event) and (entry.space, entry.owner, words(content["text"])) in self.had:
            entry.status, entry.reason = "refused", "kept_before"
            return
        if content["type"] not in NOT_DEDUPLICATED and payload.get("rule") in (None, 1):
            nearest = payload.get("nearest") or {"id": None}
            is_fact = content["type"] == "fact"
            for other in like:
                if other.id == nearest["id"] and other.content["version"] == nearest["version"]:
                    if trust_of(content) < trust_of(other.content):
                        continue
                    similarity = round(nearest["similarity"], 6)
                    if similarity > (0.92 if is_fact else 0.85):
                        entry.status, entry.of, entry.similarity = "duplicate", other.id, similarity
                        entry.reason = "updated" if is_fact else "similar"
                        if is_fact:
                            self.merge(event, other, content, payload)
                        return
        account = self.accounts.get((entry.space, entry.owner))
        if account is not None and account.balance is not None and event["kind"] == "memory.retained":
            cost = 1 if payload.get("cost") is None else payload["cost"]
            if cost > 0 and account.balance < cost:
                entry.status, entry.reason = "refused", "balance"
                return
            account.balance -= cost
            account.spent += cost
        if content["priority"] == "pinned" and len(self.pinned(entry.space, entry.owner)) >= PINS_MAX:
            content["priority"], entry.reason = "normal", "pins"

    def merge(self, event: Fields, entry: ExpectedEntry, content: Fields, payload: Fields) -> None:
        entry.content["text"] = content["text"]
        entry.content["version"] += 1
        entry.content["updated_at"] = content["at"]
        entry.content |= {"since": content["since"], "since_at": content["at"], **said_by(event)}
        for name in (*LABELS, "importance", "confidence", "metadata", "sources"):
            if payload.get(name) is not None:
                entry.content[name] = content[name]
        if (known := class_in(content)) is not None:
            lower_class(entry.content, known)
        self.has(entry.space, entry.owner, content["text"])
        self.note(event, entry.owner, "updated", entry.id)

    # Changes.

    def change(self, event: Fields, offset: int) -> None:
        payload = event["payload"]
        many = event["kind"] in ("memory.erased", "memory.transferred")
        refused = {}
        for id_ in dict.fromkeys(payload["entries"] if many else [payload["entry"]]):
            reason = self.changed(event, id_, offset)
            if reason is not None:
                refused[id_] = reason
        if refused:
            self.refusals.setdefault((event["space"], event["agent"]), []).append((event["id"], refused))

    def changed(self, event: Fields, id_: str, offset: int) -> str | None:
        entry = self.entries.get((event["space"], id_))
        if entry is None:
            return "unknown"
        verb = event["kind"].removeprefix("memory.")
        if verb == "retracted" and entry.status == "live":
            lost = [source for source in entry.content["sources"] if self.is_lost(entry.space, source)]
            if lost:
                return self.end(event, entry, "retracted", "source_erased", lost[0])
        if entry.owner != event["agent"]:
            return "not_owner"
        if verb == "erased":
            return self.erase(event, entry)
        if verb == "tier_changed" and entry.status == "live":
            return None
        if verb in ("restored", "tier_changed") and entry.status == "archived":
            return self.restore(event, entry, offset)
        if verb == "restored" or entry.status != "live":
            return entry.status
        if verb in ("retracted", "archived"):
            return self.end(event, entry, verb, event["payload"].get("reason"))
        before = dict(entry.content)
        change = self.transfer if verb == "transferred" else self.update
        reason = change(event, entry)
        form = ("version", "type")
        if reason is None and (verb == "transferred" or any(before[name] != entry.content[name] for name in form)):
            entry.content |= {"since": offset, "since_at": micros(event["at"])}
        return reason

    def end(self, event: Fields, entry: ExpectedEntry, status: str, reason: str | None, of: str | None = None) -> None:
        entry.status, entry.reason, entry.of = status, reason, of or entry.of
        self.note(event, entry.owner, status, entry.id, reason)

    def restore(self, event: Fields, entry: ExpectedEntry, offset: int) -> str | None:
        content = entry.content
        if any(self.is_lost(entry.space, source) for source in content["sources"]):
            return "source_erased"
        if self.has_twin(event, entry, entry.owner, content):
            return "equal"
        if content["priority"] == "pinned" and len(self.pinned(entry.space, entry.owner)) >= PINS_MAX:
            return "pins"
        said_at = content["at"] if content["version"] == 1 else content["updated_at"]
        content |= {"since": offset, "since_at": micros(event["at"]), **said_by(event), "said_at": said_at}
        entry.status, entry.reason, entry.of = "live", None, None
        self.has(entry.space, entry.owner, content["text"])
        self.note(event, entry.owner, "restored", entry.id, event["payload"].get("reason"))
        return None

    def erase(self, event: Fields, entry: ExpectedEntry) -> str | None:
        if entry.status not in ("live", "retracted", "archived"):
            return entry.status
        entry.status, entry.content, entry.reason, entry.of = "erased", {}, None, None
        self.uses.pop((entry.space, entry.id), None)
        for other in list(self.live(entry.space)):
            if entry.id in other.content["sources"]:
                self.end(event, other, "retracted", "source_erased", entry.id)
                entry.retracted.append(other.id)
        reason = event["payload"].get("reason")
        self.erasures[entry.space, entry.owner, entry.id] = (micros(event["at"]), event["agent"], reason)
        self.note(event, entry.owner, "erased", entry.id, reason)
        return None

    def is_twin(self, event: Fields, other: ExpectedEntry, content: Fields) -> bool:
        if trust_of(other.content) < trust_of(content) or (is_of_rule_3(event) and self.is_superseded(other)):
            return False
        return are_equal(event, content["type"], other.content["text"], content["text"])

    def is_superseded(self, entry: ExpectedEntry) -> bool:
        """Whether a later text of rule 3, which is trusted as much, says another price."""
        content, value = entry.content, value_of(entry.content["text"])
        said = (content["said_at"], entry.offset)
        return (
            value is not None
            and content["type"] in COMPARED_BY_VALUE
            and any(
                other.is_like(entry.owner, content)
                and other.content["said_by_rule_3"]
                and (other.content["said_at"], other.offset) > said
                and value_of(other.content["text"]) not in (None, value)
                and trust_of(other.content) >= trust_of(content)
                for other in self.live(entry.space)
            )
        )

    def has_twin(self, event: Fields, entry: ExpectedEntry, owner: str, content: Fields) -> bool:
        return content["type"] not in NOT_DEDUPLICATED and any(
            other is not entry and other.is_like(owner, content) and self.is_twin(event, other, content)
            for other in self.live(entry.space)
        )

    def update(self, event: Fields, entry: ExpectedEntry) -> str | None:
        payload, content = event["payload"], dict(entry.content)
        defaults = {
            "type": "fact", "importance": 0.5, "confidence": 1.0, "priority": "normal", "red_line": False,
            "metadata": {}, **dict.fromkeys(LABELS),
        }  # fmt: skip
        for name, default in defaults.items():
            if name in payload:
                content[name] = default if payload[name] is None else payload[name]
        if payload.get("text") is not None:
            content["version"] += payload["text"] != content["text"]
            content["text"] = payload["text"]
        content["updated_at"] = micros(event["at"])
        if (known := class_in(entry.content)) is not None and class_in(content) != known:
            lower_class(content, known)
        form = ("text", "type")
        is_another = not is_of_rule_3(event) or any(content[name] != entry.content[name] for name in form)
        if is_another and self.has_twin(event, entry, entry.owner, content):
            return "equal"
        if content["text"] != entry.content["text"]:
            content |= said_by(event)
        pinned = self.pinned(entry.space, entry.owner)
        if content["priority"] == "pinned" and entry.id not in pinned and len(pinned) >= PINS_MAX:
            return "pins"
        entry.content = content
        self.has(entry.space, entry.owner, content["text"])
        self.note(event, entry.owner, "updated", entry.id)
        return None

    def transfer(self, event: Fields, entry: ExpectedEntry) -> str | None:
        to = event["payload"]["to"]
        if to == entry.owner:
            return "own"
        changed = {"priority": "normal", "audience": [], "captured": False, "updated_at": micros(event["at"])}
        if self.has_twin(event, entry, to, entry.content | changed):
            return "equal"
        self.note(event, entry.owner, "transferred", entry.id)
        entry.owner, entry.content = to, entry.content | changed
        self.has(entry.space, to, entry.content["text"])
        self.note(event, to, "received", entry.id)
        return None

    def access(self, event: Fields, offset: int) -> None:
        space, agent, payload = event["space"], event["agent"], event["payload"]
        for id_, times in payload.get("counts", {}).items():
            entry = self.entries.get((space, id_))
            if entry is not None and entry.status == "live" and {agent, "*"} & {entry.owner, *entry.readers}:
                before, _, _ = self.uses.get((space, id_), (0, 0, 0))
                self.uses[space, id_] = (min(before + times, INTEGER_MAX), micros(event["at"]), offset)
        hits, misses = payload.get("hits", 0), payload.get("misses", 0)
        if hits + misses:
            lookups, found = self.lookups.get((space, agent), (0, 0))
            self.lookups[space, agent] = (min(lookups + hits + misses, INTEGER_MAX), min(found + hits, INTEGER_MAX))

    def meter(self, event: Fields) -> None:
        account = self.accounts.setdefault((event["space"], event["agent"]), Account())
        units = event["payload"].get("units")
        account.eur += event["payload"].get("eur") or 0
        if units is not None:
            account.spent += -units if units < 0 else 0
            if account.balance is not None or units >= 0:
                account.balance = (account.balance or 0) + units


def said_by(event: Fields) -> Fields:
    """When an event gave an entry its text, and by which rule."""
    return {"said_at": micros(event["at"]), "said_by_rule_3": is_of_rule_3(event)}


def is_migrated(event: Fields) -> bool:
    """Whether the end of a session has retained the text: its id is that of an answer to such a trigger."""
    trigger = event.get("causation_id") or ""
    return trigger.startswith("migration.due/") and event["id"].startswith(f"{trigger}/answer/")


def least_of(classes: Sequence[str]) -> str:
    """The least trusted class."""
    return "import" if "import" in classes else "tool"


def class_in(content: Fields) -> str | None:
    """The class of an entry if it is below that of agents."""
    stated = [content["metadata"].get("trust"), "tool" if content["type"] == "tool_usage" else None]
    classes = [each for each in stated if each in ("tool", "import")]
    return least_of(classes) if classes else None


def trust_of(content: Fields) -> int:
    """How trusted an entry is: a greater number is more trusted."""
    return {None: 2, "tool": 1, "import": 0}[class_in(content)]


def lower_class(content: Fields, known: str) -> None:
    """Give an entry at most the class `known`."""
    own = class_in(content)
    content["metadata"] = content["metadata"] | {"trust": least_of([known, *([own] if own else [])])}


def content_of(event: Fields, *, shared: bool) -> Fields:
    """The fields of the entry that an event would retain."""
    payload = event["payload"]
    audience = event.get("audience")
    content = {
        "at": micros(event["at"]),
        "updated_at": micros(event["at"]),
        "turn": event.get("turn", 0),
        "session": event.get("session"),
        "subject": event.get("subject"),
        "version": 1,
        "audience": sorted(set(audience or []) - {event["agent"]}),
        "shared": shared,
        **said_by(event),
    }
    if event["kind"] == "experience.recorded":
        outcome = payload.get("outcome")
        text = payload["summary"] + (f" → {outcome}" if outcome else "")
        named = ("action_type", "score", "agent_role", "model", "cost")
        payload = {
            "text": text,
            "type": "experience",
            "metadata": {name: payload[name] for name in named if payload.get(name) is not None},
        }
    return content | {
        "text": payload["text"],
        "type": payload.get("type", "fact"),
        **{name: payload.get(name) for name in (*LABELS, "tier")},
        "importance": 0.5 if payload.get("importance") is None else payload["importance"],
        "confidence": 1.0 if payload.get("confidence") is None else payload["confidence"],
        "priority": payload.get("priority") or "normal",
        "red_line": bool(payload.get("red_line")),
        "metadata": payload.get("metadata") or {},
        "sources": payload.get("sources") or [],
        "preseeded": bool(payload.get("preseeded")),
        "captured": False,
    }


def expect(events: Sequence[Fields], happened_by: datetime | None = None) -> ExpectedEntries:
    """The state after `events`, of which those with an id that their space had before count nothing.

    With `happened_by`, as of that time: later events count nothing either, but settings do.
    """
    expected = ExpectedEntries()
    seen = set()
    shared_kinds: dict[str, list[str]] = {}
    captures: dict[tuple[str, str], Fields] = {}
    for offset, event in enumerate(events):
        space, kind = event["space"], event["kind"]
        if (space, event["id"]) in seen:
            continue
        seen.add((space, event["id"]))
        if kind == "space.configured":
            shared_kinds[space] = event["payload"]["shared_kinds"] or []
        if kind == "agent.configured" and "capture" in event["payload"]:
            captures[space, event["agent"]] = event["payload"]["capture"] or {}
        if happened_by is None or datetime.fromisoformat(event["at"]) <= happened_by:
            shared = event.get("audience") is None and kind in shared_kinds.get(space, [])
            expected.add(event, offset, shared=shared)
            if kind == "tool.used":
                said = f"{event['payload']['tool']}: {event['payload']['result'].strip()}"
                expected.capture(event, offset, said, captures.get((space, event["agent"]), {}), shared=shared)
    return expected
