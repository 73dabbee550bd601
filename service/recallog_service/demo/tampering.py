"""Damage done on purpose: one remembered event is changed in the views file, past all of our code."""

import sqlite3
from contextlib import closing
from pathlib import Path


def tamper(views: Path, space: str, agent: str) -> None:
    """Make the newest of the agent's own memories say something else."""
    with closing(sqlite3.connect(views)) as connection, connection:
        place, value = connection.execute(
            "SELECT e.place, e.value FROM entries e JOIN logs l ON e.place >> 32 = l.number "
            "JOIN generations g ON g.number = l.generation AND g.checkpoint IS NOT NULL "
            "WHERE l.name = 'episodic.own' AND l.space = ? AND l.owner = ? ORDER BY e.place DESC LIMIT 1",
            (space, agent),
        ).fetchone()
        forged = bytes(value).replace(b" the ", b" THE ", 1)
        if forged == value:
            forged = bytes(value[:-2]) + b"!" + bytes(value[-1:])
        connection.execute("UPDATE entries SET value = ? WHERE place = ?", (forged, place))
