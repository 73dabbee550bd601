"""What items an agent has, and which changes were refused, computed by brute force from the bytes of the ledger.

It shares no code with the fold: JSON is parsed with `json.loads`, and the documented rules are implemented in the
simplest way. It handles the events that the tests write.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Address = tuple[tuple[str, ...], str]
"""Namespace and key."""
QUEUE = "__pending_subagent_summaries__"
NOTE = "\n[...truncated]"


@dataclass(frozen=True)
class Bounds:
    """The limits that the fold under test has."""

    blocks: int = 64
    keys: int = 50
    chars: int = 10_000
    elements: int = 50
    bytes: int = 65_536
    daily: int = 8_000
    """Of a daily document, in characters."""
    lengthy: int = 2_000
    """A longer daily document is compacted."""
    bullet: int = 80
    memory: int = 4_000


@dataclass
class Item:
    """One item; a queue also has the version in which each of its elements was added."""

    value: Any
    version: int
    offset: int
    at: str
    born: list[int] = field(default_factory=list)
    taken: int = 0

    @property
    def sha256(self) -> str:
        text = self.value if isinstance(self.value, str) else _json(self.value, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Shelf:
    """What one agent of a space keeps."""

    items: dict[Address, Item] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)

    def newest(self, namespace: Sequence[str]) -> list[Address]:
        """The items in a namespace and below it, the one that changed last first."""
        found = [each for each in self.items if list(each[0][: len(namespace)]) == list(namespace)]
        return sorted(found, key=lambda each: -self.items[each].offset)

    def keys(self, namespace: Sequence[str]) -> list[str]:
        return sorted(key for names, key in self.items if list(names) == list(namespace))


def shelves(values: Sequence[bytes], bounds: Bounds, until: str = "9999") -> Mapping[tuple[str, str], Shelf]:
    """By space and agent. Events that happened after `until` are left out, and of equal ids the first counts."""
    found: dict[tuple[str, str], Shelf] = defaultdict(Shelf)
    seen: set[tuple[str, str]] = set()
    for offset, data in enumerate(values):
        event = json.loads(data)
        if (event["space"], event["id"]) in seen:
            continue
        seen.add((event["space"], event["id"]))
        if not event["kind"].startswith("item.") or event["at"] > until:
            continue
        shelf = found[event["space"], event["agent"]]
        reason = _apply(shelf, event, offset, bounds)
        if reason is not None:
            shelf.refused.append((event["id"], reason))
    return found


def _apply(shelf: Shelf, event: Any, offset: int, bounds: Bounds) -> str | None:
    """Change the shelf; or the reason why not."""
    payload, what = event["payload"], event["kind"].removeprefix("item.")
    namespace = tuple(payload["namespace"])
    address = (namespace, payload["key"])
    item, base = shelf.items.get(address), payload.get("base")
    is_pad = len(namespace) == 2 and namespace[0] == "session"
    if base is not None:
        state: Any = 0 if item is None else item.version if isinstance(base, int) else item.sha256
        if base != state:
            return "conflict"
    if item is None and what in ("deleted", "moved", "drained"):
        return "unknown"
    version = 1 if item is None else item.version + 1
    if what == "deleted":
        del shelf.items[address]
        return None
    if what == "moved":
        assert item is not None
        target = (namespace, payload["to"])
        replaced = shelf.items.get(target)
        del shelf.items[address]
        item.version = max(version, 1 if replaced is None else replaced.version + 1)
        item.offset, item.at = offset, event["at"]
        shelf.items[target] = item
        return None
    if what == "drained":
        assert item is not None
        if not is_pad or not isinstance(item.value, list):
            return "not_queue"
        if payload["upto"] < item.taken or payload["upto"] > item.version:
            return "conflict"
        left = [(value, born) for value, born in zip(item.value, item.born, strict=True) if born > payload["upto"]]
        if len(left) < len(item.value):
            shelf.items[address] = Item(
                [value for value, _ in left], version, offset, event["at"], [born for _, born in left], version
            )
        return None
    value: Any
    if what == "put":
        value = payload["value"]
        born = [version] * len(value) if isinstance(value, list) and is_pad else []
    else:
        before = item.value if item is not None else [] if is_pad and payload["key"] == QUEUE else ""
        if isinstance(before, str) and payload.get("block"):
            value, born = _with_block(address, item, payload["text"], event["at"][:10], bounds), []
            if value in ("unknown", "too_large"):
                return str(value)
        elif isinstance(before, str):
            value, born = before + payload["text"], []
        elif isinstance(before, list) and is_pad:
            value, born = [*before, payload["text"]], [*(item.born if item is not None else []), version]
        else:
            return "not_text"
    if is_pad and isinstance(value, list):
        value = [_cut(each, bounds) for each in value]
        while len(value) > bounds.elements or (what == "appended" and len(_json(value).encode()) > bounds.bytes):
            value, born = value[1:], born[1:]
    elif is_pad and isinstance(value, str):
        value = _cut(value, bounds)
    elif is_pad and len(_json(value)) > bounds.chars:
        return "too_large"
    if len(_json(value).encode()) > bounds.bytes:
        return "too_large"
    most = bounds.keys if is_pad else bounds.blocks if namespace == ("working",) else None
    if item is None and most is not None and len(shelf.keys(namespace)) == most:
        return "full"
    shelf.items[address] = Item(value, version, offset, event["at"], born, item.taken if item is not None else 0)
    return None


def _with_block(address: Address, item: Item | None, lines: str, day: str, bounds: Bounds) -> str:
    """The text of an item with a block of facts, or the reason why it gets none."""
    namespace, key = address
    text = "" if item is None else item.value
    if namespace == ("workspace",) and key == "MEMORY.md":
        if item is None:
            return "unknown"
        return "too_large" if len(text) >= bounds.memory else f"{text}\n## Auto-extracted ({day})\n{lines}"
    parts = key.removesuffix(".md").removeprefix("memory/").split("-")
    is_daily = key == f"memory/{'-'.join(parts)}.md" and [len(part) for part in parts] == [4, 2, 2]
    if namespace != ("workspace",) or not is_daily or not "".join(parts).isdigit():
        return f"{text}\n{lines}" if text else lines
    text += "\n" if text and text[-1] != "\n" else ""
    text = f"{text}## Session Facts ({day})\n{lines}\n\n"
    if len(text) > bounds.daily:
        return "too_large"
    if len(text) <= bounds.lengthy:
        return text
    first: dict[str, int] = {}
    for number, line in enumerate(text.split("\n")):
        name = line[: bounds.bullet].casefold() if line[:2] == "- " else f"#{number}"
        first.setdefault(name, number)
    return "\n".join(line for number, line in enumerate(text.split("\n")) if number in first.values())


def _cut(value: Any, bounds: Bounds) -> Any:
    if not isinstance(value, str) or len(value) <= bounds.chars:
        return value
    return value[: bounds.chars - len(NOTE)] + NOTE


def _json(value: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
