"""Random events and invalid records, drawn from one seeded generator."""

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import InvalidEvent
from support.events import MOMENT
from support.oracle import trigger_of

LATER = datetime(2027, 1, 1, tzinfo=UTC)
SPACES = ("village", "city")
AGENTS = ("baker", "miller", "smith", "judge")
KINDS = (
    "agent.spoke",
    "agent.spoke",
    "agent.thought",
    "world.observed",
    "user.injected",
    "judge.verdict",
    "clue.found",
    "agent.reflected",
    "agent.reflected",
    "reflection.failed",
    "shop.opened",
    "order.placed",
    "tool.used",
    "clock.ticked",
    "space.configured",
    "run.started",
    "agent.configured",
    "agent.configured",
)
UNKNOWN_KINDS = ("shop.opened", "order.placed")
"""The kinds among them that the catalogue does not contain."""
WORDS = (
    *("bread", "Bread", "BREAD", "flour", "mill", "the", "the", "of", "river", "BÄCKER", "bäcker", "straße", "STRASSE"),
    *("İstanbul", "istanbul", "ΜΎΛΟΣ", "μύλος", "μύλοσ", "面包", "🥖", "e\u0301", "é"),
)
SPACING = (" ", " ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\x1c", "\u200b")
"""All but the last are white space to `str.split`."""


def random_event(rng: random.Random, spaces: Sequence[str] = SPACES, agents: Sequence[str] = AGENTS) -> Event:
    kind = rng.choice(KINDS)
    space, agent = rng.choice(spaces), rng.choice(agents)
    return Event(
        id=f"{rng.getrandbits(64):x}",
        space=space,
        agent=agent,
        kind=kind,
        turn=random_turn(rng),
        session=rng.choice((None, None, "morning", "evening")),
        payload=_payload(rng, kind),
        audience=random_audience(rng),
        causation_id=random_cause(rng, space, agent) if rng.random() < 0.6 else None,
        at=random_moment(rng),
    )


def random_turn(rng: random.Random) -> int:
    """Turns that jump forward and backward."""
    return rng.choice((rng.randrange(100), rng.randrange(100), rng.randrange(10), 0, 1_000, limits.TURN_MAX // 2))


def random_moment(rng: random.Random) -> datetime:
    """A random minute within one hour."""
    return datetime.fromisoformat(MOMENT) + timedelta(minutes=rng.randrange(60))


def random_cause(rng: random.Random, space: str, agent: str) -> str:
    """A past, present or future trigger of the agent, a trigger of another agent, or another id."""
    own = trigger_of(space, agent, rng.randrange(4))
    another = trigger_of(rng.choice(SPACES), rng.choice(AGENTS), rng.randrange(3))
    nonsense = rng.choice(("e-17", "reflection.due/0/0", f"{own}/answer", f" {own}", own.upper(), own[:-1]))
    return rng.choice((own, own, own, another, nonsense))


def random_text(rng: random.Random) -> str:
    """Repeated words in any case and script, with any white space; sometimes longer than the limits of views."""
    text = "".join(rng.choice(WORDS) + rng.choice(SPACING) for _ in range(rng.randrange(6)))
    if rng.random() < 0.02:
        text += "".join(f"{rng.choice(WORDS)}{number} " for number in range(limits.STORED_TEXT_CHARS_MAX // 6))
    return f"{text}word {rng.randrange(1000)}"


def random_audience(rng: random.Random) -> tuple[str, ...] | None:
    if rng.random() < 0.6:
        return None
    return tuple(rng.choices((*AGENTS, "ghost"), k=rng.randrange(4)))


def _payload(rng: random.Random, kind: str) -> dict[str, Any]:
    if kind == "space.configured":
        return _some_of(
            rng,
            shared_kinds=rng.choice((None, [], _some_kinds(rng))),
            scene_kinds=rng.choice((None, [], _some_kinds(rng))),
            kinds=rng.choice((None, {}, *(_declarations(rng) for _ in range(6)))),
        )
    if kind == "run.started":
        return rng.choice(({}, {"goal": random_text(rng)}, {"goal": "", "shared_kinds": _some_kinds(rng)}))
    if kind == "agent.configured":
        return _some_of(
            rng,
            window=rng.choice((None, 1, 3, 20)),
            use_salience=rng.choice((None, True, False)),
            salience_weights=rng.choice((None, {}, {"recency": 0}, _weights(rng), _weights(rng))),
            salience_top_k=rng.choice((None, 1, 2, 5, 30)),
            reflection_threshold=rng.choice((None, 1, 2, 3, 5, 8, 20)),
            persona=rng.choice((None, "Proud.")),
            goal=rng.choice((None, "Bread for all.")),
        )
    if kind == "agent.reflected":
        return {rng.choice(("belief", "belief", "text")): random_text(rng)}
    if kind == "reflection.failed":
        return {"trigger": "any", "reason": "the model was silent"}
    if kind == "tool.used":
        arguments = rng.choice((None, {}, {"command": random_text(rng)}, {"path": "a", "text": random_text(rng)}))
        given = _some_of(rng, arguments=arguments, ok=rng.choice((None, True, False)))
        return given | {"tool": "oven", "result": rng.choice((None, random_text(rng)))}
    if kind in UNKNOWN_KINDS:
        return {"text": random_text(rng)} | _some_of(rng, note=random_text(rng), order=_order(rng), text=7)
    return {"text": random_text(rng)}


def _order(rng: random.Random) -> Any:
    return rng.choice((None, "bread", {"item": rng.choice(WORDS), "count": rng.choice((1, 2.5, None, [True]))}))


def _declarations(rng: random.Random) -> dict[str, Any]:
    """Declarations of kinds that the catalogue does not contain: complete ones, partial ones, and null."""
    return {
        kind: rng.choice((None, {}, *(_declaration(rng) for _ in range(4))))
        for kind in UNKNOWN_KINDS
        if rng.random() < 0.6
    }


def _declaration(rng: random.Random) -> dict[str, Any]:
    return _some_of(
        rng,
        importance=rng.choice((None, 0, 1, 0.05, 0.8)),
        shared=rng.choice((None, False, True, True)),
        text=rng.choice((None, "note", "order.item", "{order} for {note}", "{{{order.count}}} of {order.item}{none}")),
        role=rng.choice((None, "memory", "action", "visitor")),
    )


def _some_of(rng: random.Random, **fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if rng.random() < 0.5}


def _weights(rng: random.Random) -> dict[str, float]:
    """Weights, some of them integers: some languages write 1.0 as 1 in JSON."""
    return {name: rng.choice((0, 1, 0.5, rng.random())) for name in ("relevance", "recency", "importance")}


def _some_kinds(rng: random.Random) -> list[str]:
    return rng.choices(sorted(set(KINDS)), k=rng.randrange(1, 7))


def random_answer(rng: random.Random) -> bytes:
    """An answer with the answer id of its trigger: of several answers to one trigger the first counts."""
    space, agent = rng.choice(SPACES), rng.choice(AGENTS)
    trigger = trigger_of(space, agent, rng.randrange(3))
    answers = {
        "agent.reflected": {"belief": random_text(rng)},
        "reflection.failed": {"trigger": trigger, "reason": "?"},
    }
    kind, payload = rng.choice(list(answers.items()))
    named = {"id": f"{trigger}/answer", "causation_id": trigger}
    return bytes_of_an_event(rng, space=space, agent=agent, kind=kind, payload=payload, **named)


def random_ledger(rng: random.Random, size: int, *, unique_ids: bool) -> list[bytes]:
    """Records with settings, audiences, reflections and invalid bytes; repeats and conflicts if ids are not unique.

    Some ledgers have only two agents, so that each has many events.
    """
    spaces, agents = rng.choice(((SPACES, AGENTS), (SPACES[:1], AGENTS[:2])))
    values: list[bytes] = []
    for _ in range(size):
        chance = rng.random()
        if chance < 0.8 or (unique_ids and chance < 0.92) or not values:
            values.append(codec.encode(random_event(rng, spaces, agents)))
        elif chance < 0.84:
            values.append(repeated(rng, rng.choice(values)))
        elif chance < 0.88:
            write = rng.choice((bytes_of_an_event, bytes_of_document_000))
            values.append(write(rng, id=f"taken-{rng.randrange(3)}"))
        elif chance < 0.92:
            values.append(random_answer(rng))
        else:
            values.append(poison(rng))
    return values


def repeated(rng: random.Random, data: bytes) -> bytes:
    """The same record, or one that only writes the same event in another way and at another time."""
    try:
        event = codec.decode(data)
    except InvalidEvent:
        return data
    return rng.choice((data, codec.encode(event.model_copy(update={"at": LATER}))))


def bytes_of_an_event(rng: random.Random, **changed: Any) -> bytes:
    """An event as another program may write it. A field changed to None is absent."""
    fields: dict[str, Any] = {
        "envelope": 1,
        "id": f"{rng.getrandbits(64):x}",
        "space": rng.choice(SPACES),
        "agent": rng.choice(AGENTS),
        "kind": "agent.spoke",
        "turn": random_turn(rng),
        "at": MOMENT,
        "payload": {"text": f"word {rng.randrange(1000)}"},
    } | changed
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


def poison(rng: random.Random) -> bytes:
    """Bytes that are not an event of the present envelope; a fifth of them are events of document 000."""
    return rng.choice(_POISON)(rng)


def bytes_of_document_000(rng: random.Random, **changed: Any) -> bytes:
    fields: dict[str, Any] = {
        "id": f"{rng.getrandbits(64):x}",
        "run_id": rng.choice(SPACES),
        "actor": rng.choice(AGENTS),
        "kind": rng.choice(("agent.spoke", "world.observed")),
        "turn": 7,
        "payload": {"text": "from long ago"},
        "created_at": "2025-01-01T00:00:00Z",
        "schema_version": 1,
        "session_id": rng.choice((None, "morning", "not a session!")),
    } | changed
    return json.dumps(fields).encode()


_POISON = (
    lambda rng: rng.choice((b"", b"\x00" * 8, b"{", b"hello", b"\xff\xfe\xfd", b"[1]", b"null", b'"event"', b"42")),
    lambda rng: bytes_of_an_event(rng)[:-9],
    lambda rng: bytes_of_an_event(rng).replace(b"word", b"\x00ord"),
    lambda rng: bytes_of_an_event(rng, **{rng.choice(("id", "at", "space", "agent", "kind")): None}),
    lambda rng: bytes_of_an_event(rng, mood="sour"),
    lambda rng: bytes_of_an_event(rng, payload={"words": "none"}),
    lambda rng: bytes_of_an_event(rng, kind="nodot"),
    lambda rng: bytes_of_an_event(rng, kind="space.configured", payload={"kinds": {"agent.spoke": {}}}),
    lambda rng: bytes_of_an_event(rng, space=" two words"),
    lambda rng: bytes_of_an_event(rng, envelope=rng.choice((2, 99))),
    lambda rng: bytes_of_an_event(rng, envelope=7, kind="nodot", space=None),
    lambda rng: bytes_of_an_event(rng, schema_version=2),
    lambda rng: bytes_of_an_event(
        rng, kind="shop.opened", schema_version=2
    ),  # a kind outside the catalogue may have any version
    lambda rng: bytes_of_an_event(rng, envelope=None),
    lambda rng: bytes_of_document_000(rng),
    lambda rng: bytes_of_document_000(rng),
    lambda rng: bytes_of_document_000(rng, mood="sour"),
    lambda rng: _TOO_LARGE,
)
_TOO_LARGE = bytes_of_an_event(random.Random(0), payload={"text": "x" * limits.EVENT_BYTES_MAX})
