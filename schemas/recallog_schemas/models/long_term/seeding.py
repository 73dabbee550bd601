"""Seeding: events that give an agent entries to begin with, whose ids make a second seeding a repeat.

An id follows from the space, the agent and the text. Everything in the event except its time follows from the text
and its type, so that two processes that seed at once write the same events.
"""

import hashlib

from recallog_schemas.event import Event

LESSONS = (
    "LESSON: Look for what you already know before you ask others or try again.",
    "LESSON: Keep one fact in one entry, and name whom or what it is about.",
    "LESSON: Correct an entry that turned out to be wrong; do not keep a second one beside it.",
    "LESSON: After a failure keep its cause and what helped, not only that it happened.",
    "LESSON: Check what an action costs, and what you own, before you commit yourself to it.",
)
"""The default lessons."""


def event(space: str, agent: str, text: str, entry_type: str = "lesson") -> Event:
    """The `memory.retained` that seeds `text`; it costs nothing."""
    # Names contain no line break, so that two different owners never give the same text.
    digest = hashlib.blake2b(f"{space}\n{agent}\n{entry_type}\n{text}".encode(), digest_size=16).hexdigest()
    return Event(
        id=f"seed/{digest}",
        space=space,
        agent=agent,
        kind="memory.retained",
        payload={"text": text, "type": entry_type, "preseeded": True, "cost": 0},
    )
