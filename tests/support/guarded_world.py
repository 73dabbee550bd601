"""A memory with spaces and agents that one key may not see, and arguments for every operation that try to see them.

Whatever is hidden from agent `anna` in the spaces `acme/*` has the word HIDDEN in it: texts, sessions, kinds, keys,
labels and topics. Names and ids that an attacker may guess do not have it, so that it is never in the arguments.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.operations.operation import Operation
from recallog_service.access import Grant, Verb

HIDDEN = "hidden"
SPACE, SECOND_SPACE, OTHER_SPACE, UNKNOWN_SPACE = "acme/shop", "acme/farm", "rival/lab", "rival/lob"
ANNA, BERT, UNKNOWN_AGENT = "anna", "bert", "nora"
SEEN_IDS = ["seen-0", "seen-1", "seen-entry"]
FORBIDDEN_IDS = ["secret-0", "secret-1", "secret-entry", "secret-item", "secret-setting"]
UNKNOWN_ID = "nothing-0"

AS_ANNA = Grant(spaces=("acme/*",), agent=ANNA, verbs=frozenset(Verb))
"""Every verb, so that it is not the verbs that hide anything."""
IN_ACME = Grant(spaces=("acme/*",), agent="*", verbs=frozenset(Verb))


def event(kind: str, id_: str, agent: str, space: str = SPACE, **fields: Any) -> Event:
    return Event(**{"space": space, "agent": agent, "kind": kind, "id": id_, **fields})


async def populate(memory: Memory) -> None:
    """Events, entries, items, settings, conversations and consensuses that anna may and may not see."""
    text = {"text": f"{HIDDEN} words about bread"}
    await memory.publish_many(
        [
            event("agent.spoke", "seen-0", ANNA, payload={"text": "Bread is baked at four."}, turn=1),
            event("world.observed", "seen-1", "narrator", payload={"text": "It rains on the bread."}, turn=1),
            event("agent.thought", "secret-0", BERT, payload=text, session=f"{HIDDEN}-session", turn=2),
            event(f"{HIDDEN}.kind", "secret-1", BERT, payload=text, audience=["carl"], turn=3),
            event("agent.configured", "secret-setting", BERT, payload={"persona": f"a {HIDDEN} baker"}),
            event("world.observed", "o-0", f"{HIDDEN}-narrator", OTHER_SPACE, payload=text, turn=9),
            event("agent.spoke", "o-1", ANNA, OTHER_SPACE, payload=text, session=f"{HIDDEN}-session"),
            event("space.configured", "o-2", ANNA, OTHER_SPACE, payload={"kinds": {f"{HIDDEN}.declared": {}}}),
            event("agent.reflected", "o-3", ANNA, OTHER_SPACE, payload={"belief": f"{HIDDEN} belief"}),
            event("world.observed", "f-0", "narrator", SECOND_SPACE, payload={"text": "The cows are out."}),
        ]
    )
    await memory.long_term.retain(SPACE, ANNA, "Bread needs salt.", entry_id="seen-entry")
    for space, agent, entry in ((SPACE, BERT, "secret-entry"), (OTHER_SPACE, ANNA, "o-entry")):
        kept = f"{HIDDEN} recipe of bread"
        await memory.long_term.retain(space, agent, kept, entry_id=entry, audience=[agent], entity=f"{HIDDEN} flour")
        item = "secret-item" if space == SPACE else "o-item"
        await memory.items.put(space, agent, "notes", f"{HIDDEN}-key", f"{HIDDEN} value", event_id=item)
        await memory.working.set(space, agent, f"{HIDDEN} goals", f"{HIDDEN} plan")
        await memory.items.put(space, agent, "workspace", "bread.md", f"# {HIDDEN}\n\n{HIDDEN} bread")
        said = [{"role": "user", "content": f"{HIDDEN} question"}]
        await memory.conversation.add(space, agent, "s-1", said, subject=f"{HIDDEN}-person")
    await memory.consensus.record(OTHER_SPACE, ANNA, "bread", f"{HIDDEN} conclusion", confidence=0.9)


IDS = [*SEEN_IDS, *FORBIDDEN_IDS, "o-0", "o-entry", UNKNOWN_ID]
_TEXTS = ["bread", "recipe of bread", "question"]

POOLS: Mapping[str, Sequence[Any]] = {
    "space": [SPACE, SECOND_SPACE, OTHER_SPACE, UNKNOWN_SPACE],
    "agent": [ANNA, ANNA, BERT, "narrator", UNKNOWN_AGENT],
    "reader": [ANNA, BERT, None],
    "to": [BERT, UNKNOWN_AGENT],
    "event_id": IDS,
    "entry_id": IDS,
    "consensus_id": IDS,
    "by": IDS,
    "ids": [[each] for each in IDS] + [IDS],
    "entry_ids": [[each] for each in IDS],
    "based_on": [[each] for each in IDS],
    "query": _TEXTS,
    "question": _TEXTS,
    "topic": ["bread"],
    "text": ["Bread needs salt.", "recipe of bread", '{"goals": "none"}'],
    "value": ["recipe of bread"],
    "content": ["recipe of bread"],
    "conclusion": ["bread"],
    "confidence": [0.5],
    "action_type": ["bake"],
    "summary": ["baked bread"],
    "namespace": ["notes", "workspace"],
    "key": ["bread.md", "other"],
    "label": ["goals"],
    "session": ["s-1", "s-2"],
    "messages": [[{"role": "user", "content": "question"}]],
    "position": ["0:2", "0:8"],
    "after": ["0:0", "0:7"],
    "as_of": ["0:9", "2999-01-01T00:00:00Z"],
    "author": [BERT, ANNA],
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
