"""Damage done on purpose: one remembered event is changed in the views file, past all of our code."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

TRUE, FORGED = b" right ", b" wrong "  # of the same length, so that the entry stays well-formed


def tamper(views: Path, space: str, agent: str) -> None:
    """Make the newest of the agent's own memories in which something was right say that it was wrong."""
    with closing(sqlite3.connect(views)) as connection, connection:
        slot, entries = connection.execute(
            "SELECT s.slot, s.entries FROM segments s JOIN logs l ON s.slot >> 32 = l.number "
            "JOIN generations g ON g.number = l.generation AND g.checkpoint IS NOT NULL "
            "WHERE l.name = 'episodic.own' AND l.space = ? AND l.owner = ? AND instr(s.entries, ?) "
            "ORDER BY s.slot DESC LIMIT 1",
            (space, agent, TRUE),
        ).fetchone()
        segment = msgspec.msgpack.decode(entries, type=list[bytes])
        number = max(number for number, entry in enumerate(segment) if TRUE in entry)
        # The first one is in the event's bytes; what follows was worked out from them.
        segment[number] = segment[number].replace(TRUE, FORGED, 1)
        connection.execute("UPDATE segments SET entries = ? WHERE slot = ?", (msgspec.msgpack.encode(segment), slot))
