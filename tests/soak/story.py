"""Who acts in which space, and what is said: the same for the process that writes and those that ask.

The numbers of spaces, agents, keys and sessions are fixed, so that views which are bounded by them stop growing.
"""

import random
from typing import Any

from recallog_schemas import Event

SPACES = ("village", "harbour", "office", "run-7")
AGENTS = ("baker", "miller", "smith", "widow")
FOLLOWED = SPACES[0]
"""The space whose events a client follows."""
SESSIONS = 12
KEYS = 40

_KINDS = ("agent.spoke", "agent.spoke", "agent.thought", "world.observed", "clue.found", "user.injected")
_WHO = ("the miller", "the smith", "Anna Weber", "the ferryman", "Acme Corp", "the widow", "Bert", "the council")
_DID = ("owes me", "took", "promised", "sold", "lost", "counted", "hid", "returned", "measured", "asked for")
_WHAT = ("sacks of flour", "loaves", "iron rods", "letters", "barrels", "eggs", "candles", "nets", "ledgers", "keys")
_WHERE = ("at the mill", "by the river", "behind the church", "in the cellar", "at the market", "on the bridge", "船上")


def acting(number: int) -> tuple[str, str]:
    """The space and the agent of an action."""
    rng = random.Random(number)
    return rng.choice(SPACES), rng.choice(AGENTS)


def text(number: int) -> str:
    """What is said in an action. Texts differ, as those of users do."""
    rng = random.Random(-number)
    sentences = [
        f"{rng.choice(_WHO)} {rng.choice(_DID)} {rng.randrange(2, 9_000)} {rng.choice(_WHAT)} {rng.choice(_WHERE)}."
        for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    return " ".join(sentences)


def session(number: int) -> str:
    """The session of an action: each is used again after the others."""
    return f"day-{number // 500 % SESSIONS}"


def event(number: int) -> Event:
    """What happens in an action."""
    rng = random.Random(number)
    space, agent = rng.choice(SPACES), rng.choice(AGENTS)
    kind = rng.choice(_KINDS)
    fields: dict[str, Any] = {}
    if kind == "agent.spoke" and rng.random() < 0.2:
        fields["audience"] = [rng.choice(AGENTS)]
    return Event(
        id=f"event-{number}",
        space=space,
        agent=agent,
        kind=kind,
        turn=number // 20,
        session=session(number),
        payload={"text": text(number)},
        **fields,
    )


def settings() -> list[Event]:
    """Settings of all agents, with which reflections fall due and turns are noted."""
    return [
        Event(
            id=f"settings-{space}-{agent}",
            space=space,
            agent=agent,
            kind="agent.configured",
            payload={"persona": f"You live in {space}.", "use_salience": True, "reflection_threshold": 100},
        )
        for space in SPACES
        for agent in AGENTS
    ]
