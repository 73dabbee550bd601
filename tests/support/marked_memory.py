"""A memory in a folder in which a person has left words everywhere: each place has a word of its own, a marker.

The events are of one subject, and what the models make of them is made: facts, beliefs, a compaction, lines of a daily
log, a summary of archived entries, vectors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recallog import Event, Memory, Settings
from recallog_schemas.views import ScanReport
from support.events import event
from support.toy_embedder import ToyEmbedder

SPACE, AGENT, PERSON = "village", "baker", "alice"
T0 = datetime(2026, 3, 1, 8, tzinfo=UTC)
VIEWS, ROWS, ENGINE, POINTS = "views", "rows of the index", "engine", "points"
"""The stores of a folder that hold plain texts."""
LEDGER, KEYS = "ledger", "keys"
"""Those that hold nothing of a sealed event but its envelope."""
OTHER_WORD = "zqotherperson"
_PARTS = (
    ("the point ", POINTS),
    ("/index/engine/", ENGINE),
    ("/index/rows.db", ROWS),
    ("/ledger.db", LEDGER),
    ("/sealing.db", KEYS),
    ("/views", VIEWS),
)


@dataclass(frozen=True, slots=True)
class Marker:
    """A word that occurs in one place of what was said."""

    word: str
    stores: frozenset[str]
    """Where it is before the erasure."""


def _marker(word: str, *stores: str) -> Marker:
    return Marker(word, frozenset(stores))


_FOUND = (VIEWS, ENGINE, POINTS)
MARKERS = {
    "what was said": _marker("zqsaidvexalon", *_FOUND),
    "what was said in Chinese": _marker("紫霁龘靐", *_FOUND),
    "a name": _marker("Zqnamecorvin", *_FOUND),
    "what was said with accents": _marker("Zqàccéntsüber", *_FOUND),
    "the title of the session": _marker("zqtitleharrow", VIEWS),
    "an argument of a tool": _marker("zqargumentpell", *_FOUND),
    "a result of a tool": _marker("zqresultquorn", *_FOUND),
    "a thought": _marker("zqthoughtimble", *_FOUND),
    "the text of an entry": _marker("zqentrydorrance", ENGINE, POINTS),
    "the entity of an entry": _marker("Zqentitymarlowe", *_FOUND),
    "the metadata of an entry": _marker("zqmetadatafenn", VIEWS),
    "the source of an entry": _marker("zqsourcelath", VIEWS),
    "the text of a changed entry": _marker("zqupdatedgrove", *_FOUND),
    "an experience": _marker("zqexperiencewick", *_FOUND),
    "the value of an item": _marker("zqitemvaluesorn", VIEWS),
    "the key of an item": _marker("zqitemkeytam", VIEWS),
    "a block": _marker("zqblockulver", VIEWS),
    "a document": _marker("zqdocumentnairn", *_FOUND),
    "a scratchpad": _marker("zqscratchpadolm", VIEWS),
    "the topic of a consensus": _marker("zqtopicbrant", *_FOUND),
    "the conclusion of a consensus": _marker("zqconclusionesk", *_FOUND),
    "the tags of a consensus": _marker("zqtagsfirth", VIEWS),
    "a dissent": _marker("zqdissentgarth", *_FOUND),
    "a request of a turn": _marker("zqrequesthythe", *_FOUND),
    "what a fact was made of": _marker("Zqfactizzard", *_FOUND),
    "what a compaction has replaced": _marker("zqcompactedjute", *_FOUND),
    "an entry that a plan archives": _marker("zqarchivedkerf", *_FOUND),
    "what a belief was made of": _marker("zqbelieflorn", *_FOUND),
    "a payload of a kind of the user's own": _marker("zqownkindmere", VIEWS),
}
WORDS = {name: marker.word for name, marker in MARKERS.items()}


def opened(home: Path, **settings: Any) -> Memory:
    """The memory of a folder with an index in this process."""
    return Memory.open(Settings(home=home, index="embedded", **settings), embedder=ToyEmbedder())


def personal(kind: str, payload: dict[str, Any], number: int, **fields: Any) -> Event:
    """An event about the person."""
    fields = {"agent": AGENT, "session": "s1", **fields}
    return event(
        kind, space=SPACE, subject=PERSON, at=T0 + timedelta(minutes=number), turn=1, payload=payload, **fields
    )


def said_by_person() -> list[Event]:
    """The events of the person."""
    words = WORDS
    asked = {"agent": "alice", "audience": (AGENT,)}
    payloads: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("session.started", {"title": f"About {words['the title of the session']}"}, {}),
        ("user.injected", {"text": f"I live beside the {words['what was said']} mill."}, asked),
        ("user.injected", {"text": f"我家在{words['what was said in Chinese']}旁边。"}, asked),
        (
            "user.injected",
            {"text": f"My aunt {words['a name']} Ulmer is {words['what was said with accents']}."},
            asked,
        ),
        ("user.injected", {"text": f"Please remember that I need {words['a request of a turn']} flour."}, asked),
        ("agent.spoke", {"text": f"{words['what a fact was made of']} Bakery prefers rye flour."}, {}),
        ("agent.thought", {"text": f"The {words['a thought']} worries me."}, {}),
        ("agent.spoke", {"text": f"I promised her {words['what a belief was made of']} bread, importance high."}, {}),
        (
            "tool.used",
            {
                "tool": "search",
                "arguments": {"query": words["an argument of a tool"]},
                "result": {"found": words["a result of a tool"]},
                "ok": True,
            },
            {},
        ),
        (
            "memory.retained",
            {
                "text": f"She likes {words['the text of an entry']} cakes.",
                "entity": words["the entity of an entry"],
                "metadata": {"note": words["the metadata of an entry"]},
                "source": words["the source of an entry"],
            },
            {"id": "entry-1"},
        ),
        ("memory.updated", {"entry": "entry-1", "text": f"She likes {words['the text of a changed entry']} pies."}, {}),
        ("experience.recorded", {"action_type": "bake", "summary": f"Baked {words['an experience']} rolls."}, {}),
        ("item.put", _item(["notes"], words["the key of an item"], {"is": words["the value of an item"]}), {}),
        ("item.put", _item(["working"], "Goals", f"Bake {words['a block']} buns"), {}),
        ("item.put", _item(["workspace"], "alice.md", f"# Alice\n\nShe owns a {words['a document']} dog."), {}),
        ("item.put", _item(["scratchpad", "s1"], "Draft", f"Write {words['a scratchpad']} down"), {}),
        (
            "consensus.recorded",
            {
                "topic": f"the {words['the topic of a consensus']} oven",
                "conclusion": f"Use {words['the conclusion of a consensus']} wood.",
                "confidence": 0.5,
                "participating": [AGENT],
                "agreeing": [AGENT],
                "tags": [words["the tags of a consensus"]],
            },
            {},
        ),
        (
            "dissent.recorded",
            {
                "topic": f"the {words['the topic of a consensus']} oven",
                "type": "risk_warning",
                "content": f"Mind the {words['a dissent']} smoke.",
                "confidence": 0.7,
            },
            {},
        ),
        (
            "memory.retained",
            {"text": f"She sold {words['an entry that a plan archives']} eggs.", "tier": "fast"},
            {"id": "entry-2"},
        ),
        ("order.placed", {"who": words["a payload of a kind of the user's own"]}, {}),
    ]
    said = [personal(kind, payload, number, **fields) for number, (kind, payload, fields) in enumerate(payloads)]
    return [*said, event("turn.ended", space=SPACE, agent=AGENT, session="s1", at=T0 + timedelta(hours=1), payload={})]


def said_by_others() -> list[Event]:
    """Events that stay as they are: settings, and what another person said."""
    settings = {"extract_facts": True, "reflection_threshold": 3, "tiers": {"max": {"fast": 1}}}
    spoken = [
        event(
            "user.injected",
            space=SPACE,
            agent="bob",
            audience=(AGENT,),
            session="s2",
            subject="bob",
            at=T0 + timedelta(minutes=number),
            payload={"text": f"Bob counts {OTHER_WORD} sheep, {number} of them, by the river."},
        )
        for number in range(8)
    ]
    return [event("agent.configured", space=SPACE, agent=AGENT, at=T0, payload=settings), *spoken]


async def fill(memory: Memory) -> None:
    """Publish the events, and have the models make what follows from them."""
    await memory.publish_many([*said_by_others()[:4], *said_by_person(), *said_by_others()[4:]])
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"message {n} of hers"} for n in range(23)]
    messages[10]["content"] = f"You must never forget {WORDS['what a compaction has replaced']} bread."
    await memory.conversation.add(SPACE, AGENT, "s3", messages, subject=PERSON)
    compacted = await memory.conversation.compact(SPACE, AGENT, "s3")
    assert compacted.compacted
    for number in range(3):
        await memory.long_term.retain(SPACE, AGENT, f"Eggs cost {number} coins.", tier="fast")
    await memory.tiers.consolidate(SPACE, AGENT, now=T0 + timedelta(days=30))
    while await memory.react():
        pass
    await memory.catch_up()
    await memory.catch_up_index()


def stores_of(report: ScanReport, names: Sequence[str]) -> Mapping[str, set[str]]:
    """The stores in which a scan has found each of its markers."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for place in report.found:
        for each in place.found:
            store = next((store for part, store in _PARTS if part in place.place), place.place)
            found[names[each.marker - 1]].add(store)
    return found


def _item(namespace: Sequence[str], key: str, value: Any) -> dict[str, Any]:
    return {"namespace": [*namespace], "key": key, "value": value}
