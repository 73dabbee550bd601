"""Random events and random poison, all decided by one seeded generator."""

import json
import random
from typing import Any

from recallog_schemas import Event, limits
from support.events import MOMENT

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
    "shop.opened",
    "clock.ticked",
    "space.configured",
    "run.started",
    "agent.configured",
)


def random_event(rng: random.Random) -> Event:
    kind = rng.choice(KINDS)
    return Event(
        id=f"{rng.getrandbits(64):x}",
        space=rng.choice(SPACES),
        agent=rng.choice(AGENTS),
        kind=kind,
        turn=rng.randrange(100),
        session=rng.choice((None, None, "morning", "evening")),
        payload=_payload(rng, kind),
        audience=random_audience(rng),
        at=MOMENT,  # type: ignore[arg-type]
    )


def random_audience(rng: random.Random) -> tuple[str, ...] | None:
    if rng.random() < 0.6:
        return None
    return tuple(rng.choices((*AGENTS, "ghost"), k=rng.randrange(4)))


def _payload(rng: random.Random, kind: str) -> dict[str, Any]:
    if kind == "space.configured":
        return {"shared_kinds": rng.choice((None, [], _some_kinds(rng)))} if rng.random() < 0.8 else {}
    if kind == "run.started":
        return rng.choice(({}, {"goal": "bread"}, {"shared_kinds": _some_kinds(rng)}))
    if kind == "agent.configured":
        return {"window": rng.choice((None, 1, 3, 20))}
    if kind == "agent.reflected":
        return {"belief": f"bread {rng.randrange(10)}"}
    return {"text": f"word {rng.randrange(1000)}"}


def _some_kinds(rng: random.Random) -> list[str]:
    return rng.sample(sorted(set(KINDS)), k=rng.randrange(1, 5))


def bytes_of_an_event(rng: random.Random, **changed: Any) -> bytes:
    """An event as some other program writes it; a field that is changed to None is missing."""
    fields: dict[str, Any] = {
        "envelope": 1,
        "id": f"{rng.getrandbits(64):x}",
        "space": rng.choice(SPACES),
        "agent": rng.choice(AGENTS),
        "kind": "agent.spoke",
        "turn": rng.randrange(100),
        "at": MOMENT,
        "payload": {"text": f"word {rng.randrange(1000)}"},
    } | changed
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


def poison(rng: random.Random) -> bytes:
    """Bytes that are no event today (but for one writing in five, that of document 000, which is one)."""
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
    lambda rng: bytes_of_an_event(rng, space="two words"),
    lambda rng: bytes_of_an_event(rng, envelope=rng.choice((2, 99))),
    lambda rng: bytes_of_an_event(rng, envelope=7, kind="nodot", space=None),
    lambda rng: bytes_of_an_event(rng, schema_version=2),
    lambda rng: bytes_of_an_event(rng, kind="shop.opened", schema_version=2),  # an unknown kind may have any version
    lambda rng: bytes_of_an_event(rng, envelope=None),
    lambda rng: bytes_of_document_000(rng),
    lambda rng: bytes_of_document_000(rng),
    lambda rng: bytes_of_document_000(rng, mood="sour"),
    lambda rng: _TOO_LARGE,
)
_TOO_LARGE = bytes_of_an_event(random.Random(0), payload={"text": "x" * limits.EVENT_BYTES_MAX})
