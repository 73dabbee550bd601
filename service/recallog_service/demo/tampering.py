"""Damage done on purpose: one remembered event is changed in the views file, past all of our code."""

import sqlite3
from contextlib import closing
from pathlib import Path

TRUE, FORGED = b" right ", b" wrong "  # of the same length, so that the row stays well-formed


def tamper(views: Path, space: str, agent: str) -> None:
    """Make the newest of the agent's own memories in which something was right say that it was wrong."""
    with closing(sqlite3.connect(views)) as connection, connection:
        place, value = connection.execute(
            "SELECT e.place, e.value FROM entries e JOIN logs l ON e.place >> 32 = l.number "
            "JOIN generations g ON g.number = l.generation AND g.checkpoint IS NOT NULL "
            "WHERE l.name = 'episodic.own' AND l.space = ? AND l.owner = ? AND instr(e.value, ?) "
            "ORDER BY e.place DESC LIMIT 1",
            (space, agent, TRUE),
        ).fetchone()
        connection.execute("UPDATE entries SET value = ? WHERE place = ?", (value.replace(TRUE, FORGED, 1), place))
