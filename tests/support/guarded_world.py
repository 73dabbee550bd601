"""A memory with spaces and agents that one key may not see, and arguments for every operation that try to see them.

Whatever is hidden from agent `anna` in the spaces `acme/*` has the word HIDDEN in it: texts, sessions, kinds, keys,
labels and topics. Names and ids that an attacker may guess do not have it, so that it is never in the arguments.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.operations.operation import Operation
from recallog_service.access import Grant, Verb

if TYPE_CHECKING:
    from recallog_schemas.models.consensus.payloads import DissentType

HIDDEN = "covert"
SPACE, SECOND_SPACE, OTHER_SPACE, UNKNOWN_SPACE = "acme/shop", "acme/farm", "rival/lab", "rival/lob"
ANNA, BERT, UNKNOWN_AGENT = "anna", "bert", "nora"
SEEN_IDS = ["seen-0", "seen-1", "seen-3", "seen-entry"]
FORBIDDEN_IDS = [
    f"secret-{name}"
    for name in ("0", "1", "setting", "belief", "entry", "tier", "experience", "item", "consensus", "dissent")
]
UNKNOWN_ID = "nothing-0"

AS_ANNA = Grant(spaces=("acme/*",), agent=ANNA, verbs=frozenset(Verb))
"""Every verb, so that it is not the verbs that hide anything."""
IN_ACME = Grant(spaces=("acme/*",), agent="*", verbs=frozenset(Verb))


def event(kind: str, id_: str, agent: str, space: str = SPACE, **fields: Any) -> Event:
    return Event(**{"space": space, "agent": agent, "kind": kind, "id": id_, **fields})


class Hidden(NamedTuple):
    """What differs between two worlds whose visible parts are equal. A space has one clock for all its agents, so the
    turns and times in it do not differ."""

    word: str
    text: str
    kind: str
    weight: float
    type: "DissentType"


AS_WRITTEN = Hidden(HIDDEN, f"{HIDDEN} words about bread", "agent.thought", 0.1, "risk_warning")
OTHERWISE = Hidden("masked", "masked flour, yeast and bread, bread", "agent.spoke", 0.9, "abstention")


def _believe(text: str, stance: str, *more: str) -> dict[str, Any]:
    return {"belief": text, "about": ["bread", *more], "stance": stance, "based_on": ["secret-entry"]}


async def populate(memory: Memory, hidden: Hidden = AS_WRITTEN) -> None:
    """Events, entries, items, settings, conversations and consensuses that anna may and may not see."""
    word, weight, text = hidden.word, hidden.weight, {"text": hidden.text}
    then, at = "2026-01-02T08:00:00Z", "2026-01-05T08:00:00Z"
    elsewhere: dict[str, Any] = {"turn": int(10 * weight), "at": f"20{int(30 * weight) + 10}-07-01T20:00:00Z"}
    await memory.publish_many(
        [
            event("agent.spoke", "seen-0", ANNA, payload={"text": "Bread is baked at four."}, turn=1, at=then),
            event("world.observed", "seen-1", "narrator", payload={"text": "It rains on the bread."}, turn=1, at=then),
            event("agent.reflected", "seen-2", "carl", payload=_believe("Bread is good.", "for"), turn=1, at=then),
            event("agent.reflected", "seen-4", ANNA, payload=_believe("Bread is dear.", "against"), turn=1, at=then),
            event(hidden.kind, "secret-0", BERT, payload=text, session=f"{word}-session", turn=2, at=at),
            event(f"{word}.kind", "secret-1", BERT, payload=text, audience=["carl"], turn=3, at=at),
            event("agent.configured", "secret-setting", BERT, payload={"persona": f"a {word} baker"}, at=at),
            event(
                "agent.reflected",
                "secret-belief",
                BERT,
                payload=_believe(f"{word} belief", "against", word),
                audience=[],
                at=at,
            ),
            event("world.observed", "o-0", f"{word}-narrator", OTHER_SPACE, payload=text, **elsewhere),
            event("agent.spoke", "o-1", ANNA, OTHER_SPACE, payload=text, session=f"{word}-session", **elsewhere),
            event(
                "space.configured", "o-2", ANNA, OTHER_SPACE, payload={"kinds": {f"{word}.declared": {}}}, **elsewhere
            ),
            event("agent.reflected", "o-3", ANNA, OTHER_SPACE, payload=_believe(f"{word} belief", "for"), **elsewhere),
            event("world.observed", "f-0", "narrator", SECOND_SPACE, payload={"text": "The cows are out."}, at=then),
        ]
    )
    await memory.consensus.record(SPACE, "carl", "bread", "It is good.", confidence=0.9, event_id="seen-3")
    await memory.long_term.retain(SPACE, ANNA, "Bread needs salt.", entry_id="seen-entry")
    for space, agent, prefix in ((SPACE, BERT, "secret"), (OTHER_SPACE, ANNA, "o")):
        await memory.long_term.retain(
            space,
            agent,
            f"{word} recipe of bread",
            entry_id=f"{prefix}-entry",
            audience=[agent],
            entity=f"{word} flour",
            importance=weight,
        )
        await memory.long_term.retain(space, agent, f"{word} oven", entry_id=f"{prefix}-tier", tier="fast")
        await memory.long_term.record_experience(
            space, agent, "bake", f"{word} bread was baked", entry_id=f"{prefix}-experience", score=10 * weight
        )
        await memory.items.put(space, agent, "notes", f"{word}-key", f"{word} value", event_id=f"{prefix}-item")
        await memory.working.set(space, agent, f"{word} goals", f"{word} plan")
        await memory.working.set(space, agent, f"{word} draft", f"{word} plan", session="s-1")
        await memory.items.put(space, agent, "workspace", "bread.md", f"# {word}\n\n{word} bread")
        said = [{"role": "user", "content": f"{word} question"}, {"role": "assistant", "content": hidden.text}]
        await memory.conversation.add(space, agent, "s-1", said, subject=f"{word}-person")
        await memory.consensus.record(
            space,
            agent,
            "bread",
            f"{word} conclusion",
            confidence=weight,
            audience=[agent],
            event_id=f"{prefix}-consensus",
        )
        await memory.consensus.dissent(
            space,
            agent,
            f"{word} objection",
            type=hidden.type,
            confidence=weight,
            audience=[agent],
            consensus_id=f"{prefix}-consensus",
            event_id=f"{prefix}-dissent",
        )
    await memory.consensus.record(OTHER_SPACE, ANNA, "bread", f"{word} conclusion", confidence=0.9)


IDS = [*SEEN_IDS, *FORBIDDEN_IDS, "o-0", "o-entry", UNKNOWN_ID]
_TEXTS = ["bread", "recipe of bread", "question"]

POOLS: Mapping[str, Sequence[Any]] = {
    "space": [SPACE, SECOND_SPACE, OTHER_SPACE, UNKNOWN_SPACE],
    "agent": [ANNA, ANNA, BERT, "narrator", UNKNOWN_AGENT],
    "reader": [ANNA, BERT, None],
    "to": [BERT, UNKNOWN_AGENT],
    "about": ["bread", "flour"],
    "event_id": IDS,
    "entry_id": IDS,
    "entity": [*_TEXTS, "flour"],
    "consensus_id": IDS,
    "by": IDS,
    "ids": [[each] for each in IDS] + [IDS],
    "entry_ids": [[each] for each in IDS],
    "based_on": [[each] for each in IDS],
    "further": [[], [*SEEN_IDS], IDS],
    "depth": [None, 1],
    "supersedes": IDS,
    "query": _TEXTS,
    "question": _TEXTS,
    "topic": ["bread"],
    "text": ["Bread needs salt.", "recipe of bread", '{"goals": "none"}'],
    "value": ["recipe of bread"],
    "content": ["recipe of bread"],
    "conclusion": ["bread"],
    "confidence": [0.5],
    "markers": [["bread"]],
    "units": [1.5],
    "tier": ["slow"],
    "action_type": ["bake"],
    "summary": ["baked bread"],
    "namespace": ["notes", "workspace"],
    "key": ["bread.md", "other"],
    "label": ["goals"],
    "session": ["s-1", "s-2"],
    "messages": [[{"role": "user", "content": "question"}]],
    "position": ["0:2", "0:8"],
    "after": ["0:0", "0:7"],
    "since": ["2020-01-01T00:00:00Z"],
    "as_of": ["0:9", "2999-01-01T00:00:00Z"],
    "author": [BERT, ANNA],
    "containing": ["bread"],
    "limit": [5],
    "top_k": [5],
    "whole": [True],
    "order": ["priority"],
    "what": ["views"],
    "model": ["minilm"],
    "target": ["memory://"],
    "type": ["fact", "risk_warning"],
    "partition": [0],
    "store": [True],
    "audience": [[BERT]],
}
"""Values by the name of a parameter. A new required parameter needs a line here; an optional one may have one."""

_EVENTS: Sequence[Mapping[str, Any]] = [
    {"space": space, "agent": agent, "kind": kind, "payload": payload}
    for space in (SPACE, OTHER_SPACE)
    for agent in (ANNA, BERT)
    for kind, payload in (("agent.spoke", {"text": "bread"}), ("memory.erased", {"entries": ["secret-entry"]}))
]


@st.composite
def arguments(draw: st.DrawFn, operation: Operation) -> dict[str, Any]:
    """Arguments of an operation: all that it requires, and some of the others."""
    found: dict[str, Any] = {}
    for name, field in operation.arguments.model_fields.items():
        if name == "event":
            found[name] = dict(draw(st.sampled_from(_EVENTS)))
        elif name == "events":
            found[name] = [dict(each) for each in draw(st.lists(st.sampled_from(_EVENTS), max_size=3))]
        elif name in POOLS and (field.is_required() or draw(st.booleans())):
            found[name] = draw(st.sampled_from(POOLS[name]))
        elif field.is_required():
            raise KeyError(f"{operation.qualified_name} requires {name}: give POOLS values for it")
    return found


def moved(given: Mapping[str, Any], operation: Operation, space: str) -> dict[str, Any]:
    """The arguments, for another space."""
    found = dict(given)
    if "space" in operation.parameters:
        found["space"] = space
    if "event" in found:
        found["event"] = found["event"] | {"space": space}
    if "events" in found:
        found["events"] = [each | {"space": space} for each in found["events"]]
    return found
